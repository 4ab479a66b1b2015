import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { auditBundle } from '../../src/audit/audit.js';
import { BoundbookError } from '../../src/core/errors.js';
import { parsePolicy } from '../../src/ledger/witness-policy.js';
import { parseVerifierKey } from '../../src/signing/keys.js';
import { CASES } from '../support/conformance/cases/index.js';
import { Generator } from '../support/conformance/generate.js';
import { filesBelow } from '../support/loose-bundle.js';
import { hasPython, NO_PYTHON, VERIFIER } from './python.js';

/**
 * Every folder of test/conformance is a bundle with a line that says why it passes or fails; a name that ends in `_fail` must fail. The
 * audit and the second verifier must agree on each of them, with the keys and the policy that lie beside the bundle. `BOUNDBOOK_UPDATE=1` writes the folders anew from
 * `test/support/conformance`.
 */

const FOLDER = join(import.meta.dirname, '../conformance');
const UPDATE = process.env.BOUNDBOOK_UPDATE === '1';
const names = readdirSync(FOLDER, { withFileTypes: true })
  .filter((item) => item.isDirectory())
  .map(({ name }) => name);
const scratch = mkdtempSync(join(tmpdir(), 'boundbook-conformance-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const expected = (name: string): string => (name.endsWith('_fail') ? 'findings' : 'clean');

test('the folder holds the cases, byte for byte as they are made', { timeout: 300_000 }, async () => {
  const generator = new Generator();
  const into = UPDATE ? FOLDER : scratch;
  if (UPDATE) for (const name of names) rmSync(join(FOLDER, name), { recursive: true });
  for (const one of CASES) await generator.write(one, into);
  generator.close();
  const made = readdirSync(into, { withFileTypes: true }).filter((item) => item.isDirectory());
  expect(made.map(({ name }) => name).sort()).toEqual(CASES.map(({ name }) => name).sort());
  if (UPDATE) return;
  expect([...names].sort()).toEqual(CASES.map(({ name }) => name).sort());
  for (const name of names) {
    const [kept, fresh] = [join(FOLDER, name), join(scratch, name)];
    expect(filesBelow(kept), name).toEqual(filesBelow(fresh));
    const differing = filesBelow(kept).filter(
      (path) => !readFileSync(join(kept, path)).equals(readFileSync(join(fresh, path))),
    );
    expect(differing, name).toEqual([]);
  }
});

describe.skipIf(UPDATE)('verdicts', () => {
  test.each(names)('audit: %s', async (name) => {
    const { verdict, findings } = await audited(name);
    expect([verdict, verdict === expected(name) ? [] : findings]).toEqual([expected(name), []]);
  });

  test.skipIf(!hasPython)(`the second verifier: the same (${NO_PYTHON})`, { timeout: 600_000 }, () => {
    const statuses = verify(names);
    const verdicts = statuses.map((status) => ({ 0: 'clean', 4: 'findings' })[status] ?? `exit ${status}`);
    const told = names.map((name, i) => [name, verdicts[i]]);
    expect(told).toEqual(names.map((name) => [name, expected(name)]));
  });
});

/** What makes an audit impossible ends it with the exit status of findings. */
async function audited(name: string): Promise<{ verdict: string; findings: readonly unknown[] }> {
  const policy = policyOf(name);
  const keys = keysOf(name).map(parseVerifierKey);
  try {
    return await auditBundle(bundleOf(name), {
      keys,
      ...(policy === null ? {} : { policy: parsePolicy(readFileSync(policy)) }),
    });
  } catch (error) {
    if (!(error instanceof BoundbookError) || error.exitCode !== 4) throw error;
    return { verdict: 'findings', findings: [error.message] };
  }
}

function bundleOf(name: string): string {
  return join(FOLDER, name, 'bundle');
}

/** Verifier keys of the reader, one a line. */
function keysOf(name: string): readonly string[] {
  const file = join(FOLDER, name, 'keys');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

function policyOf(name: string): string | null {
  const file = join(FOLDER, name, 'policy');
  return existsSync(file) ? file : null;
}

/** Runs the second verifier on all bundles in one process. @returns its exit statuses */
function verify(cases: readonly string[]): readonly number[] {
  const runs = cases.map((name) => {
    const policy = policyOf(name);
    const keys = keysOf(name).flatMap((key) => ['--key', key]);
    return [bundleOf(name), ...keys, ...(policy === null ? [] : ['--policy', policy])];
  });
  const program = `
import io, json, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, ${JSON.stringify(dirname(VERIFIER))})
import boundbook_verify
print(json.dumps([boundbook_verify.main(run, io.StringIO()) for run in json.load(sys.stdin)]))`;
  const run = spawnSync('python3', ['-c', program], {
    encoding: 'utf8',
    input: JSON.stringify(runs),
    timeout: 600_000,
  });
  if (run.status !== 0) throw new Error(run.stderr);
  return JSON.parse(run.stdout) as number[];
}
