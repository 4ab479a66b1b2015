import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BoundbookError } from '../../src/core/errors.js';
import { resolveTaskSets, taskFiles } from '../../src/protocol/tasks.js';
import { read, spoil, VALID } from './support.js';

const TASKS = [1, 2, 3, 4].map((i) => `{"id":"t${i}","question":"${i}?","answer":"${i}"}\n`).join('');
const SHARED = new URL('../../../shared/data/', import.meta.url);

/** Resolves the sets of a protocol from texts; `all` and `half` are the two files of the small protocol. */
function resolve(all: string | Buffer | null, half: string | Buffer | null = 't3\nt1\n', text = VALID) {
  const files = new Map<string, Uint8Array>();
  if (all !== null) files.set('tasks/all', Buffer.from(all));
  if (half !== null) files.set('tasks/half', Buffer.from(half));
  return resolveTaskSets(read(text).protocol, files);
}

function faultsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'TASKS_INVALID') {
      return error.faults.map((fault) => `${fault.where} ${fault.message}`);
    }
    throw error;
  }
  throw new Error('the tasks were accepted');
}

describe('task sets', () => {
  test('have files by binding name, unions none', () => {
    const text = spoil(['models:\n', '  both: { union_of: [all, half], count: 6 }\nmodels:\n']);
    expect(taskFiles(read(text).protocol)).toEqual([
      { binding: 'tasks/all', path: 'tasks/all.jsonl' },
      { binding: 'tasks/half', path: 'tasks/half.txt' },
    ]);
  });

  test('keep the order of their files and all fields', () => {
    const sets = resolve(TASKS);
    expect(sets.ids.get('all')).toEqual(['t1', 't2', 't3', 't4']);
    expect(sets.ids.get('half')).toEqual(['t3', 't1']);
    expect(sets.tasks.get('half')?.get('t3')).toEqual({
      id: 't3',
      fields: { id: 't3', question: '3?', answer: '3' },
    });
  });

  test('may lack the last line break', () => {
    expect(resolve(TASKS.slice(0, -1), 't3\nt1').ids.get('half')).toEqual(['t3', 't1']);
  });

  test('merge parts one after another (C2)', () => {
    const text = spoil(
      ['{ file: tasks/all.jsonl, id: id, count: 4 }', '{ union_of: [I, II], count: 4 }'],
      ['  half: {', '  I: { file: a, id: id, count: 2 }\n  II: { file: b, id: id, count: 2 }\n  half: {'],
    );
    const lines = TASKS.trimEnd().split('\n');
    const files = new Map([
      ['tasks/I', Buffer.from(`${lines.slice(2).join('\n')}\n`)],
      ['tasks/II', Buffer.from(`${lines.slice(0, 2).join('\n')}\n`)],
      ['tasks/half', Buffer.from('t3\nt1\n')],
    ]);
    expect(resolveTaskSets(read(text).protocol, files).ids.get('all')).toEqual(['t3', 't4', 't1', 't2']);
    files.set('tasks/II', Buffer.from(`${lines.slice(1, 3).join('\n')}\n`));
    expect(faultsOf(() => resolveTaskSets(read(text).protocol, files))[0]).toMatch(
      /"t3" is in more than one part/,
    );
  });
});

describe('task files are refused', () => {
  const line = (id: string) => `{"id":${id},"question":"?","answer":"1"}\n`;
  test.each([
    ['missing', null, /tasks\/all\.jsonl the task file is missing/],
    ['empty', '', /empty \(0 bytes\)/],
    ['cut short by a line', TASKS.split('\n').slice(0, 3).join('\n'), /has 3 tasks, not the declared 4/],
    ['with a task too many', `${TASKS}${line('"t5"')}`, /has 5 tasks, not the declared 4/],
    ['cut inside a line', TASKS.slice(0, -10), /all\.jsonl:4 line 4 is not JSON/],
    [
      'with an id twice',
      TASKS.replace('t2', 't1'),
      /all\.jsonl:2 the task id "t1" occurs again \(first in line 1\)/,
    ],
    ['with a number as id', TASKS.replace('"t2"', '2'), /all\.jsonl:2 the id 2 is no text/],
    ['without the id field', TASKS.replaceAll('"id"', '"key"'), /all\.jsonl:1 the id field "id" is missing/],
    ['with a decomposed id (F-17)', TASKS.replace('t2', 'cafe\u0301'), /:2 .*not in normal form NFC/],
    ['with a control character (F-93)', TASKS.replace('t2', 't\\u0000'), /:2 .*U\+0000/],
    ['with an id of 300 characters (F-93)', TASKS.replace('t2', 'a'.repeat(300)), /:2 .*300 characters/],
    ['with a lone surrogate', TASKS.replace('t2', '\\ud800'), /:2 .*surrogate/],
    ['with a lone surrogate in another field', TASKS.replace('"2?"', '"\\udc00"'), /:2 .*surrogate/],
    [
      'with a lone surrogate in a key',
      TASKS.replace('{"id":"t2"', '{"\\ud83d":1,"id":"t2"'),
      /:2 .*surrogate/,
    ],
    ['with __proto__ as id', TASKS.replace('t2', '__proto__'), /:2 .*__proto__/],
    ['with a key twice', TASKS.replace('"question":"2?"', '"answer":"9"'), /:2 .*occurs twice/],
    ['with an inexact integer (F-01)', TASKS.replace('"2?"', '9007199254740993'), /:2 .*exactly/],
    ['with NaN', TASKS.replace('"2?"', 'NaN'), /:2 line 2 is not JSON/],
    ['with a line that is a list', TASKS.replace(/^.*\n/, '[]\n'), /:1 the line is not a JSON object/],
    ['with CR LF', TASKS.replaceAll('\n', '\r\n'), /:1 the line ends with a carriage return/],
    ['with a blank line', TASKS.replace('\n', '\n\n'), /:2 the line is blank/],
    ['with a byte-order mark (F-13)', `\ufeff${TASKS}`, /:1 .*byte-order mark/],
    ['not UTF-8', Buffer.concat([Buffer.from(TASKS), Buffer.from([0xff])]), /not UTF-8/],
    [
      'a Git LFS pointer',
      'version https://git-lfs.github.com/spec/v1\noid sha256:35\nsize 446564\n',
      /Git LFS pointer/,
    ],
    ['a git-annex pointer', '/annex/objects/SHA256E-s123--abc.jsonl\n', /git-annex pointer/],
    [
      'without a field of the prompt',
      TASKS.replace('"question":"2?",', ''),
      /task "t2" of all the field "question" is missing/,
    ],
    ['with null for a field of the prompt', TASKS.replace('"2?"', 'null'), /"question" is null/],
    ['without the reference answer', TASKS.replace(',"answer":"2"', ''), /"answer" is missing/],
    ['with an empty reference answer', TASKS.replace('"answer":"2"', '"answer":" "'), /"answer" is empty/],
    [
      'with a reference answer that is no text',
      TASKS.replace('"answer":"2"', '"answer":2.5'),
      /"answer" is no text/,
    ],
  ])('%s', (_name, all, message) => {
    const found = faultsOf(() => resolve(all));
    expect(found.join('\n')).toMatch(message);
  });

  test.each([
    ['an id outside the set', 't3\nt9\n', /tasks\/half\.txt the task "t9" is not in the task set "all"/],
    ['an id twice', 't3\nt3\n', /half\.txt:2 the task id "t3" occurs again/],
    ['a space at the end', 't3 \nt1\n', /half\.txt:1 .*white space/],
    ['too few', 't3\n', /has 1 tasks, not the declared 2/],
  ])('id lists with %s', (_name, half, message) => {
    expect(faultsOf(() => resolve(TASKS, half)).join('\n')).toMatch(message);
  });

  test('with a reference that is no integer, for the integer grader only', () => {
    const text = spoil(['kind: exact', 'kind: integer']);
    expect(resolve(TASKS.replace('"answer":"2"', '"answer":-7'), undefined, text).ids.size).toBe(2);
    for (const answer of ['"2.0"', '2.5', '"two"', '""', 'true', '"\u00a07"']) {
      const all = TASKS.replace('"answer":"2"', `"answer":${answer}`);
      expect(faultsOf(() => resolve(all, undefined, text))[0]).toMatch(/"answer" is no integer/);
    }
  });

  test('with a partition outside its queue', () => {
    const text = spoil(['queue: main, partitions: [half]', 'queue: side, partitions: [all]']);
    expect(faultsOf(() => resolve(TASKS, undefined, text))).toEqual([
      'table parts 2 tasks of the partition "all" do not run in the queue "side", "t2" among them',
    ]);
  });

  test('with fifty faults listed and all counted', () => {
    const all = Array.from({ length: 80 }, () => 'x\n').join('');
    try {
      resolve(all);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'TASKS_INVALID', evidence: { total: 80 } });
      expect((error as BoundbookError).faults).toHaveLength(50);
      expect((error as BoundbookError).message).toBe(
        'the task files have 80 faults; the first 50 are listed',
      );
    }
  });

  test('but ids that look like paths are data (F-93)', () => {
    const ids = ['../../x', '/etc/x', 'con', 'constructor'];
    const all = ids.map((id) => line(JSON.stringify(id))).join('');
    expect(resolve(all, 'con\n/etc/x\n').ids.get('all')).toEqual(ids);
  });
});

/** What the publishers ship, where the shared folder is at hand. Ids are missing or numbers; that must be said. */
describe.skipIf(!existsSync(SHARED))('public task files (skipped: ../shared is not there)', () => {
  const suite = (path: string) => readFileSync(new URL(path, SHARED));
  const protocolFor = (id: string, count: number) =>
    spoil(['id: id, count: 4', `id: ${id}, count: ${count}`], ['{question}', '{problem}']);

  test.each([
    ['suites/aime24.jsonl', 'id', /:1 the id 60 is no text/],
    ['suites/amc23.jsonl', 'id', /:1 the id 0 is no text/],
    ['suites/gsm8k.jsonl', 'idx', /:1 the id 0 is no text/],
    ['suites/cmath.jsonl', 'id', /:1 the id field "id" is missing/],
    ['odd/math500-pointer.jsonl', 'id', /is a Git LFS pointer/],
  ])('%s is refused by its ids', (path, id, message) => {
    expect(faultsOf(() => resolve(suite(path), undefined, protocolFor(id, 10)))[0]).toMatch(message);
  });

  test('aime24 with its ids as texts is read whole', () => {
    const lines = suite('suites/aime24.jsonl')
      .toString('utf8')
      .replaceAll(/^\{"id":(\d+)/gm, '{"id":"$1"');
    const half = ['60', '61'].join('\n');
    const sets = resolve(lines, half, protocolFor('id', 30));
    expect(sets.ids.get('all')).toHaveLength(30);
    expect(sets.tasks.get('half')?.get('60')?.fields.answer).toBe('204');
  });
});
