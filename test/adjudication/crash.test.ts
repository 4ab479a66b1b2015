import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command as adjudicate } from '../../src/commands/adjudicate.js';
import type { OptionValue } from '../../src/commands/command.js';
import { command as status } from '../../src/commands/status.js';
import { openBook } from '../../src/ledger/book.js';
import { commandContext } from '../commands/context.js';
import { recordArgv, type Step, straceArgv, straceMissing } from '../crash/strace.js';
import { type Desk, listed, makeDesk } from './support.js';

const CLI = join(import.meta.dirname, '../../dist/cli.js');
/** Steps that make something durable; between two of them a kill finds what it finds at the second. */
const DURABLE = ['fsync', 'fdatasync', 'rename', 'unlink'] as const satisfies readonly Step[];
const missing = straceMissing();

const REASON = 'the proxy closed the connection';
/** The last verdict, as a script, the terminal and the page commit it; and the end of the round, as all three close it. */
const LAST = (alias: string) => ['--item', alias, '--verdict', 'model', '--reason', REASON];
const CLOSE = ['--close'];

let desk: Desk;
let folder: string;
let alias: string;
/** Before the last verdict, and behind it. */
let stages: { readonly verdict: string; readonly close: string };

beforeAll(async () => {
  folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'boundbook-round-'));
  desk = await makeDesk([1, 4]);
  const { questions } = await listed(desk, { duplicates: '0.5' });
  const [last, ...others] = questions.map((one) => one.alias);
  alias = last ?? '';
  for (const other of others) await desk.run({ item: other, verdict: 'model', reason: REASON });
  stages = { verdict: copyOf(desk.root), close: copyOf(desk.root) };
  await adjudicate.run([], { item: alias, verdict: 'model', reason: REASON }, commandContext(stages.close));
});

afterAll(() => {
  desk.remove();
  rmSync(folder, { recursive: true, force: true });
});

function copyOf(root: string): string {
  const copy = join(mkdtempSync(join(folder, 'ws-')), 'ws');
  cpSync(root, copy, { recursive: true, preserveTimestamps: true });
  return copy;
}

/** Every durable step of a command in the files of the round and of the ledger, as it is counted in one thread. */
function stepsOf(root: string, args: readonly string[]): readonly (readonly [Step, number])[] {
  const log = join(folder, 'steps.log');
  const [program = '', ...argv] = recordArgv(log, [process.execPath, CLI, 'adjudicate', ...args]);
  expect(spawnSync(program, argv, { cwd: copyOf(root), env: ENV }).status).toBe(0);
  const seen = new Map<string, number>();
  const found: [Step, number][] = [];
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [, thread, name] = /^(\d+) +([a-z0-9]+)\(/.exec(line) ?? [];
    const step = DURABLE.find((each) => name?.startsWith(each));
    if (step === undefined) continue;
    const count = (seen.get(`${thread} ${step}`) ?? 0) + 1;
    seen.set(`${thread} ${step}`, count);
    // What follows at the end of a process moves what is durable already.
    if (line.includes('.lock-journal')) break;
    if (/round\.json|ledger\.sqlite-wal/.test(line)) found.push([step, count]);
  }
  return found;
}

/** Calls that go through a ring would not be seen. */
const ENV = { ...process.env, UV_USE_IO_URING: '0' };

function kill(root: string, args: readonly string[], step: Step, nth: number): void {
  const argv = [process.execPath, CLI, 'adjudicate', ...args];
  const [program = '', ...rest] = straceArgv({ step, nth, what: 'kill' }, join(root, '../log'), argv);
  const { signal } = spawnSync(program, rest, { cwd: root, env: ENV });
  expect([step, nth, signal]).toEqual([step, nth, 'SIGKILL']);
}

/** Does what was interrupted once more; what was done already is refused in words of its own. */
async function again(root: string, options: Record<string, OptionValue>, done: RegExp): Promise<void> {
  await adjudicate.run([], options, commandContext(root)).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'ADJUDICATION_REFUSED', message: expect.stringMatching(done) });
  });
}

async function expectWhole(root: string): Promise<void> {
  const book = await openBook(root, undefined, 'read');
  const all = [...book.store.entries()].map(({ entry }) => entry);
  const left = existsSync(join(book.folder, 'adjudication/round.json'));
  book.close();
  const count = (type: string) => all.filter((entry) => entry.type === type).length;
  expect({
    committed: count('verdict.committed'),
    revealed: count('adjudication.revealed'),
    opened: count('verdict.opened'),
    closed: count('adjudication.closed'),
    left,
  }).toEqual({ committed: 3, revealed: 1, opened: 3, closed: 1, left: false });
  expect(
    all.filter((entry) => entry.type === 'attribution.recorded' && entry.by === 'adjudicator'),
  ).toHaveLength(2);
  expect((await audit(root, undefined)).findings).toEqual([]);
}

describe.skipIf(missing !== null)(`a round whose adjudicator is killed (${missing ?? 'strace'})`, () => {
  it('at each durable step of the last verdict: it is committed once', { timeout: 120_000 }, async () => {
    const args = LAST(alias);
    const steps = stepsOf(stages.verdict, args);
    expect(steps.length).toBeGreaterThan(2);
    for (const [step, nth] of steps) {
      const root = copyOf(stages.verdict);
      kill(root, args, step, nth);
      await again(root, { item: alias, verdict: 'model', reason: REASON }, /is committed already/);
      await adjudicate.run([], { close: true }, commandContext(root));
      await expectWhole(root);
    }
  });

  it('at each durable step of its end: it is closed once, and nothing is lost', {
    timeout: 120_000,
  }, async () => {
    const steps = stepsOf(stages.close, CLOSE);
    expect(steps.length).toBeGreaterThan(2);
    for (const [step, nth] of steps) {
      const root = copyOf(stages.close);
      kill(root, CLOSE, step, nth);
      await again(root, { close: true }, /no round of adjudication is open/);
      await expectWhole(root);
    }
  });
});

it('`status` tells the intra-rater figure of a round that has ended', async () => {
  const root = copyOf(stages.close);
  await adjudicate.run([], { close: true }, commandContext(root));
  const { json, text } = await status.run([], {}, commandContext(root));
  expect(json).toMatchObject({
    ledger: {
      adjudication: {
        open: null,
        closed: [{ items: 2, verdicts: 3, pairs: 1, agreeing: 1, abandoned: null }],
      },
    },
  });
  // Wilson's interval for 1 of 1 at 95 %: 1/(1 + 1.96²) = 0.2065 to 1.
  expect(text.replace(/\s+/g, ' ')).toMatch(
    /judged round [0-9a-f]{8}, closed by entry \d+: 3 verdicts; intra-rater: 1 of 1 pairs agree \(95 % interval 0\.21 to 1\.00\)/,
  );
});
