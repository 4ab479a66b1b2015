import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { command as check } from '../../src/commands/check.js';
import type { CommandDefinition, CommandResult } from '../../src/commands/command.js';
import { command as init } from '../../src/commands/init.js';
import { command as plan } from '../../src/commands/plan.js';
import { command as schema } from '../../src/commands/schema.js';
import type { JsonObject } from '../../src/core/json.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plan-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function run(
  command: CommandDefinition,
  args: readonly string[],
  options: Readonly<Record<string, string>> = {},
  root = folder,
): Promise<CommandResult & { readonly json: JsonObject }> {
  const result = await command.run(args, options, {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    force: new AbortController().signal,
    now: () => '2026-09-27T00:00:00.000Z',
  });
  for (const line of result.text.split('\n')) {
    if (command !== schema) expect([...line].length, line).toBeLessThanOrEqual(100);
  }
  return { ...result, json: JSON.parse(JSON.stringify(result.json)) as JsonObject };
}

describe('init', () => {
  test('starts a workspace whose protocol passes check', async () => {
    const { json, text } = await run(init, []);
    expect(json.created).toEqual([
      'protocol/',
      'tasks/',
      'manifests/',
      'ledger/',
      'protocol/example.yaml',
      'tasks/example.jsonl',
    ]);
    expect(text).toMatch(/Next: boundbook check protocol\/example\.yaml$/);
    expect((await run(check, ['protocol/example.yaml'])).json).toMatchObject({ ok: true, slots: 192 });
    rmSync(join(folder, 'tasks/example.jsonl'));
    await expect(run(check, ['protocol/example.yaml'])).rejects.toMatchObject({ code: 'TASKS_INVALID' });
  });

  test('overwrites nothing, and writes nothing when a file is in the way', async () => {
    mkdirSync(join(folder, 'tasks'));
    writeFileSync(join(folder, 'tasks/example.jsonl'), 'mine\n');
    await expect(run(init, [])).rejects.toMatchObject({ code: 'FILE_EXISTS', exitCode: 2 });
    expect(readFileSync(join(folder, 'tasks/example.jsonl'), 'utf8')).toBe('mine\n');
    expect(readdirSync(folder)).toEqual(['tasks']);
  });

  test('makes the named folder', async () => {
    await run(init, ['a/b']);
    expect(existsSync(join(folder, 'a/b/protocol/example.yaml'))).toBe(true);
  });
});

describe('check', () => {
  test('says that the demonstration holds, and what comes next', async () => {
    const { json, text } = await run(check, ['protocol/demo.yaml'], {}, ROOT);
    expect(json).toMatchObject({
      ok: true,
      slots: 5720,
      // Its server answers from numbers: there is nothing to render.
      remarks: [
        {
          about: 'template',
          message: expect.stringMatching(/^no chat template lies with |^chat templates were not/),
        },
      ],
      sampling_seeds: { cells: 520, repeated: 0, repeated_in_task: 0 },
      decisions: [{ decision: 'adopt-M', lowest: -1, highest: 1, can_be_met: true, can_fail: true }],
    });
    expect(text).toMatch(
      /\nNext: boundbook plan protocol\/demo\.yaml, then boundbook freeze protocol\/demo\.yaml$/,
    );
  });

  test('refuses a file that is not there, a folder, an empty file', async () => {
    writeFileSync(join(folder, 'empty.yaml'), '');
    await expect(run(check, ['none.yaml'])).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(run(check, ['.'])).rejects.toMatchObject({ code: 'FILE_NOT_REGULAR' });
    await expect(run(check, ['empty.yaml'])).rejects.toMatchObject({ code: 'FILE_EMPTY' });
  });

  test('lists every task file that is missing, not the first alone', async () => {
    mkdirSync(join(folder, 'protocol'));
    cpSync(join(ROOT, 'protocol/demo.yaml'), join(folder, 'protocol/demo.yaml'));
    await expect(run(check, ['protocol/demo.yaml'])).rejects.toMatchObject({
      code: 'TASKS_INVALID',
      faults: [
        { where: 'demo/tasks/demo100.txt' },
        { where: 'demo/tasks/demo40.txt' },
        { where: 'demo/tasks/official500.jsonl' },
      ],
    });
  });
});

describe('plan', () => {
  test('shows counts, standard errors, first slots and shards', async () => {
    const { json, text } = await run(plan, ['protocol/demo.yaml'], { shards: '3', first: '2' }, ROOT);
    expect(json).toMatchObject({
      plan: { count: 5720 },
      queues: [
        { queue: 'broad100x2', role: 'exploratory', slots: 2200 },
        { queue: 'holdout40x8', role: 'confirmatory', slots: 3520 },
      ],
    });
    expect(json.rows).toHaveLength(22);
    expect(json.first).toHaveLength(2);
    const shards = json.shards as readonly number[];
    expect(shards.reduce((sum, slots) => sum + slots, 0)).toBe(5720);
    // sqrt(0.25 / 320) = 2.795 points
    expect(text).toMatch(/holdout40x8 +40 +8 .* 2\.80 /);
  });

  test('takes one assumed accuracy', async () => {
    const { json } = await run(plan, ['protocol/obme-mini.yaml'], { assume: '0.8', first: '0' }, ROOT);
    // sqrt(0.16 / 1600) = 0.01
    expect(json.standard_errors).toMatchObject([
      { queue: 'holdout100x16', errors: [{ accuracy: 0.8, standard_error: 0.01 }] },
      {},
    ]);
  });

  test('writes the slots file, whose SHA-256 is the plan digest, and never over another', async () => {
    const slots = join(folder, 'slots.jsonl');
    const { json } = await run(plan, ['protocol/demo.yaml'], { slots, first: '0' }, ROOT);
    const bytes = readFileSync(slots);
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    expect(json.plan).toEqual({ count: 5720, digest });
    expect(bytes.toString('utf8').split('\n')).toHaveLength(5721);
    await expect(run(plan, ['protocol/demo.yaml'], { slots }, ROOT)).rejects.toMatchObject({
      code: 'FILE_EXISTS',
    });
    expect(readFileSync(slots)).toEqual(bytes);
    expect(readdirSync(folder)).toEqual(['slots.jsonl']);
  });

  test.each([
    [{ assume: '1.5' }],
    [{ assume: '1e-1' }],
    [{ shards: '0' }],
    [{ first: '-1' }],
    [{ first: 'many' }],
  ])('refuses %o', async (options) => {
    await expect(
      run(plan, ['protocol/demo.yaml'], options as Record<string, string>, ROOT),
    ).rejects.toMatchObject({
      code: 'USAGE',
      exitCode: 2,
    });
  });
});

describe('schema', () => {
  test('prints one JSON document', async () => {
    const { text, json } = await run(schema, []);
    expect(JSON.parse(text)).toEqual(json);
    expect(json.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
  });
});
