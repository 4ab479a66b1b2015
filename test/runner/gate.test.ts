import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Digest } from '../../src/core/digest.js';
import { parseFilters } from '../../src/slots/selector.js';
import { shardOf } from '../../src/slots/slot.js';
import { put, type Trial, trial } from './fixture.js';

const PROMPTS = { a: 'right a', b: 'right b', c: 'right c' };

interface Refused {
  readonly code: string;
  readonly exitCode: number;
  readonly evidence: { readonly mismatches: readonly { readonly binding: string; readonly path: string }[] };
}

async function refused(plan: Trial): Promise<Refused> {
  const error: unknown = await plan.run().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: 'GATE_REFUSED', exitCode: 3 });
  expect(plan.requests()).toEqual([]);
  return error as Refused;
}

/** What is done to the host, and the binding and path that the refusal names. */
const CHANGES: Readonly<Record<string, readonly [(plan: Trial) => void, string, string]>> = {
  'one byte of a weight file': [
    ({ root }) => {
      const file = join(root, 'models/M-42/model.safetensors');
      const bytes = readFileSync(file);
      bytes[bytes.length - 1] = 99;
      writeFileSync(file, bytes);
    },
    'weights/M@42',
    'models/M-42/model.safetensors',
  ],
  'the tokenizer of another model': [
    ({ root }) =>
      copyFileSync(join(root, 'models/B-42/tokenizer.json'), join(root, 'models/M-42/tokenizer.json')),
    'tokenizer/M@42',
    'models/M-42/tokenizer.json',
  ],
  "the runner's source": [
    ({ root }) => void put(root, 'runner/stub-server.mjs', '// improved\n'),
    'runner/stub',
    'runner/stub-server.mjs',
  ],
  'the task list': [
    ({ root }) =>
      void put(root, 'tasks/all.jsonl', `${readFileSync(join(root, 'tasks/all.jsonl'), 'utf8')}\n`),
    'tasks/all',
    'tasks/all.jsonl',
  ],
};

for (const [what, [change, binding, path]] of Object.entries(CHANGES)) {
  test(`${what} changed: refused, named, and nothing is made`, async () => {
    const plan = await trial({ prompts: PROMPTS, models: ['B', 'M'] });
    change(plan);
    const error = await refused(plan);
    expect(error.evidence.mismatches.map((one) => [one.binding, one.path])).toContainEqual([binding, path]);
    expect(readdirSync(join(plan.root, 'ledger'))).toEqual([]);
  });
}

test('with a ledger there, the refusal is recorded in it, with every mismatch', async () => {
  const plan = await trial({ prompts: PROMPTS });
  await plan.run({ limit: 1 });
  const before = plan.requests().length;
  put(plan.root, 'models/M-42/config.json', '{}');
  put(plan.root, 'models/M-42/tokenizer.json', '{}');
  await plan.run().catch(() => undefined);
  expect(plan.requests()).toHaveLength(before);
  const [refusal] = await plan.of('gate.refused');
  expect(refusal?.mismatches.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['models/M-42/config.json', 'models/M-42/tokenizer.json']),
  );
  expect(refusal?.total).toBe(refusal?.mismatches.length);
});

test('an edited manifest is refused', async () => {
  const plan = await trial({ prompts: PROMPTS });
  const file = join(plan.root, 'manifests', plan.stored.file);
  chmodSync(file, 0o644);
  writeFileSync(file, readFileSync(file, 'utf8').replace('"max_tokens":8', '"max_tokens":9'));
  const error: unknown = await plan.run().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'GATE_REFUSED', exitCode: 3 });
  expect(readdirSync(join(plan.root, 'ledger'))).toEqual([]);
});

test('a ledger of another manifest in the place of this one is refused', async () => {
  const plan = await trial({ prompts: PROMPTS });
  const other = await trial({ prompts: { ...PROMPTS, d: 'right d' } });
  await other.run();
  cpSync(other.ledger, plan.ledger, { recursive: true });
  await refused(plan);
});

test('a second ledger of the same manifest is refused', async () => {
  const plan = await trial({ prompts: PROMPTS });
  await plan.run({ limit: 1 });
  renameSync(plan.ledger, `${plan.ledger}-old`);
  const error: unknown = await plan.run().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'GATE_REFUSED', exitCode: 3 });
  expect(existsSync(plan.ledger)).toBe(false);
});

test('a text file in the place of the ledger is refused and left alone', async () => {
  const plan = await trial({ prompts: PROMPTS });
  const file = put(plan.ledger, 'ledger.sqlite', 'my notes\n'.repeat(1000));
  const error: unknown = await plan.run().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'LEDGER_FOREIGN', exitCode: 4 });
  expect(readFileSync(file, 'utf8')).toBe('my notes\n'.repeat(1000));
});

test('a bound file that is touched in mid-run ends the session and is named', async () => {
  const plan = await trial({ prompts: { ...PROMPTS, x: 'later x' }, reps: 40 });
  const running = plan.run({ workers: 1, watchMs: 100 }).catch((thrown: unknown) => thrown);
  while (plan.requests().length < 5) await new Promise((resolve) => setTimeout(resolve, 20));
  put(plan.root, 'models/M-42/config.json', '{"model_type":"stub"}');
  expect(await running).toMatchObject({
    code: 'GATE_REFUSED',
    exitCode: 3,
    faults: expect.arrayContaining([
      expect.objectContaining({ where: expect.stringContaining('models/M-42/config.json') }),
    ]),
  });
  expect(await plan.of('run.paused')).toMatchObject([
    { reason: 'bindings_changed', detail: expect.stringContaining('config.json') },
  ]);
  // The same bytes were written again: the next session hashes them, and goes on.
  const before = (await plan.of('slot.settled')).length;
  expect(before).toBeLessThan(160);
  await plan.run({ workers: 16 });
  expect(await plan.of('slot.settled')).toHaveLength(160);
});

test('a shard takes its slots and no others; shards together take all', async () => {
  const plan = await trial({ prompts: PROMPTS, reps: 8 });
  for (const index of [0, 1, 2]) {
    const summary = await plan.run({ selection: { shard: { index, count: 3 }, only: new Map() } });
    const sessions = await plan.of('gate.passed');
    const session = sessions.at(-1)?.session;
    const started = (await plan.of('attempt.started')).filter((entry) => entry.session === session);
    expect(new Set(started.map(({ slot }) => shardOf(slot, 3)))).toEqual(new Set([index]));
    expect(summary.json.selected).toEqual({ slots: started.length, done: started.length });
  }
  expect(await plan.of('slot.settled')).toHaveLength(24);
});

test('filters choose slots; a limit ends the session with work left and exit 0', async () => {
  const plan = await trial({ prompts: PROMPTS, reps: 4, models: ['B', 'M'] });
  const only = parseFilters(['arm=M,task=a,b']);
  const limited = await plan.run({ selection: { shard: null, only }, limit: 3 });
  expect(limited.reason).toBe('limit');
  expect(await plan.of('slot.settled')).toHaveLength(3);
  const rest = await plan.run({ selection: { shard: null, only } });
  expect(rest.reason).toBe('finished');
  const started = await plan.of('attempt.started');
  expect(new Set(started.map(({ key }) => `${key.arm} ${key.task}`))).toEqual(new Set(['M a', 'M b']));
  expect(await plan.of('slot.settled')).toHaveLength(8);
});

test('a filter that names nothing planned says what there is', async () => {
  const plan = await trial({ prompts: PROMPTS });
  const error: unknown = await plan
    .run({ selection: { shard: null, only: parseFilters(['arm=N']) } })
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'SLOT_NOT_PLANNED', exitCode: 2, hint: expect.stringContaining('M') });
  expect(() => parseFilters(['colour=red'])).toThrowError(expect.objectContaining({ code: 'USAGE' }));
  expect(() => parseFilters(['M'])).toThrowError(expect.objectContaining({ code: 'USAGE' }));
});

/** Damage to an object inside the ledger's file, as a broken disk leaves it. */
function damageObject(plan: Trial, digest: Digest, how: 'altered' | 'missing'): void {
  const db = new Database(join(plan.ledger, 'ledger.sqlite'));
  const trigger = how === 'altered' ? 'object_update' : 'object_delete';
  const text = db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').pluck().get(trigger) as string;
  db.exec(`DROP TRIGGER ${trigger}`);
  const change =
    how === 'altered'
      ? 'UPDATE object SET bytes = zeroblob(4) WHERE digest = ?'
      : 'DELETE FROM object WHERE digest = ?';
  const { changes } = db.prepare(change).run(Buffer.from(digest.slice('sha256:'.length), 'hex'));
  expect(changes).toBe(1);
  db.exec(text);
  db.close();
}

test.each(['altered', 'missing'] as const)(
  'what the ledger was opened for is %s in it: refused, exit 4',
  async (how) => {
    for (const which of ['manifest', 'tasks'] as const) {
      const plan = await trial({ prompts: PROMPTS });
      await plan.run({ limit: 1 });
      const [opened] = await plan.of('ledger.opened');
      const digest =
        which === 'manifest' ? opened?.manifest_object : Object.values(opened?.task_objects ?? {})[0];
      damageObject(plan, digest as Digest, how);
      const before = plan.requests().length;
      const code = how === 'altered' ? 'OBJECT_ALTERED' : 'OBJECT_MISSING';
      await expect(plan.run()).rejects.toMatchObject({ code, exitCode: 4 });
      expect(plan.requests()).toHaveLength(before);
    }
  },
);
