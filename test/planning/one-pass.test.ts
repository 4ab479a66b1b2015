import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BoundbookError } from '../../src/core/errors.js';
import { loadPlan } from '../../src/planning/load.js';
import { spoil } from '../protocol/support.js';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'one-pass-'));
  mkdirSync(join(root, 'tasks'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): void {
  writeFileSync(join(root, path), text);
}

const TASKS = ['a', 'b', 'c', 'd'].map((id) => `{"id":"${id}","question":"q","answer":"1"}\n`).join('');

async function refusal(): Promise<BoundbookError> {
  const error: unknown = await loadPlan(root, 'p.yaml').then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof BoundbookError) return error;
  throw new Error(`no refusal: ${String(error)}`);
}

test('form, references, a missing task file and a wrong line of another one, at once', async () => {
  write(
    'p.yaml',
    spoil(['blinding: masked', 'blinding: masked\nblindng: none'], ['O: { model: O,', 'O: { model: P,']),
  );
  write('tasks/all.jsonl', `${TASKS}{"id":"e"\n`);
  const error = await refusal();
  expect(error.code).toBe('PROTOCOL_INVALID');
  expect(error.message).toBe('p.yaml has 2 faults, and its task files have 2');
  expect(error.faults.map(({ where }) => where)).toEqual([
    '/arms/O/model',
    '/blindng',
    'tasks/half.txt',
    'tasks/all.jsonl:5',
  ]);
});

test('a missing task file does not hide the faults of another', async () => {
  write('p.yaml', spoil());
  write('tasks/all.jsonl', TASKS.repeat(2));
  const error = await refusal();
  expect(error.code).toBe('TASKS_INVALID');
  expect(error.faults.map(({ where }) => where)).toEqual([
    'tasks/half.txt',
    ...[5, 6, 7, 8].map((line) => `tasks/all.jsonl:${line}`),
  ]);
});

test.each([
  ['a circle', 'subset_of: all', 'subset_of: half', '/task_sets/half'],
  ['an unknown set', 'subset_of: all', 'subset_of: al', '/task_sets/half/subset_of'],
  ['a count in another form', 'id: id, count: 4', 'id: id, count: four', '/task_sets/all/count'],
])('task files are not judged against sets with faults: %s', async (_, from, to, where) => {
  write('p.yaml', spoil([from, to]));
  write('tasks/all.jsonl', TASKS);
  write('tasks/half.txt', 'a\nb\n');
  expect((await refusal()).faults.map((fault) => fault.where)).toEqual([where]);
});
