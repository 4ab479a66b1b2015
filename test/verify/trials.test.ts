import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { auditBundle } from '../../src/audit/audit.js';
import { TRIALS } from '../support/conformance/cases/trials.js';
import { hasPython, python, VERIFIER } from './python.js';

/** The cases of Harbor trials in the conformance folder: both verifiers give the same codes, not only the same verdict. */

const FOLDER = join(import.meta.dirname, '../conformance');
const scratch = mkdtempSync(join(tmpdir(), 'boundbook-trials-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const bundles = TRIALS.map(({ name }) => join(FOLDER, name, 'bundle'));
const due = TRIALS.map(({ name, codes }) => [name, codes]);

const told = (codes: readonly string[]) => [...new Set(codes)].sort().join(' ');

test('the audit finds what was forged in a trial, and nothing else', async () => {
  const found: [string, string][] = [];
  for (const [i, bundle] of bundles.entries()) {
    const { findings } = await auditBundle(bundle, { keys: [] });
    found.push([TRIALS[i]?.name ?? '', told(findings.map(({ code }) => code))]);
  }
  expect(found).toEqual(due);
});

test.skipIf(!hasPython)('the second verifier finds the same', () => {
  const program = `
import io, json, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, ${JSON.stringify(join(VERIFIER, '..'))})
import boundbook_verify
def told(bundle):
    out = io.StringIO()
    boundbook_verify.main([bundle, "--json"], out)
    return json.loads(out.getvalue())
print(json.dumps([told(bundle) for bundle in json.load(sys.stdin)]))`;
  const run = python(['-c', program], JSON.stringify(bundles));
  const documents = JSON.parse(run.stdout) as { findings: { code: string }[] }[];
  const found = documents.map(({ findings }, i) => [TRIALS[i]?.name, told(findings.map(({ code }) => code))]);
  // It tells one finding for each entry.
  expect(found).toEqual(
    due.map(([name, codes]) => [name, codes?.replace('REPORT_DIFFERS VALUE_DIFFERS', 'REPORT_DIFFERS')]),
  );
});
