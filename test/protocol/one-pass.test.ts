import { describe, expect, test } from 'vitest';
import { asJson } from '../../src/core/canonical-json.js';
import type { JsonValue } from '../../src/core/json.js';
import { valueAt } from '../../src/protocol/issues.js';
import { type Path, pointerOf } from '../../src/protocol/json-pointer.js';
import { faults, read, spoil, VALID } from './support.js';

type Edit = readonly [string, string];

/** Edits and the pointer of the fault that each makes by itself. */
const FORM: readonly (readonly [Edit, string])[] = [
  [['blinding: masked', 'blinding: masked\nblindng: none'], '/blindng'],
  [['revision: 1', 'revision: one'], '/revision'],
  [['restarts: 3', 'restarts: -1'], '/runner/service/restarts'],
  [['max_tokens: 16', 'max_tokens: 0'], '/conditions/default/decoding/max_tokens'],
  [
    ['    - { id: broken, when: { cause: connection_lost }', '    - { id: broken, when: { cause: lost }'],
    '/attempts/rules/0/when/cause',
  ],
  [['breaker: 10', 'breaker: 0'], '/attempts/breaker'],
  [['level: 0.95', 'level: 2'], '/analysis/interval/level'],
  [['bits: 31', 'bits: 99'], '/sampling/bits'],
  [['ids: tasks/half.txt, count: 2', 'ids: tasks/half.txt, count: two'], '/task_sets/half/count'],
];
const REFERENCES: readonly (readonly [Edit, string])[] = [
  [['O: { model: O,', 'O: { model: P,'], '/arms/O/model'],
  [
    ['queues:\n', 'queues:\n  more: { tasks: none, reps: 1, arms: [O], role: exploratory }\n'],
    '/queues/more/tasks',
  ],
  [['minuend: O', 'minuend: Q'], '/analysis/contrasts/0/minuend'],
  [['contrast: O-base, comparator', 'contrast: no-such, comparator'], '/analysis/decisions/0/contrast'],
  [['- { queue: main, assumed', '- { queue: man, assumed'], '/precision/0/queue'],
  [['http_status: [429, 5xx]', 'http_status: [429], text: "("'], '/attempts/rules/1/when/text'],
  [['"{weights}", "{port}"]', '"{weights}", "{port}", "{prt}"]'], '/runner/service/argv/3'],
];

describe('all faults are found in one pass', () => {
  test.each(FORM)('a fault of form by itself: %j', (edit, pointer) => {
    expect(faults(spoil(edit)).map(({ where }) => where)).toEqual([pointer]);
  });

  for (const [form, formPointer] of FORM) {
    test.each(REFERENCES)(`${formPointer} and a reference: %j`, (reference, pointer) => {
      const found = faults(spoil(form, reference));
      // Settings of a part that was read in a neutral form can't be judged.
      expect(found.map(({ where }) => where).sort()).toEqual([formPointer, pointer].sort());
      const lines = found.map(({ line }) => line ?? 0);
      expect(lines).toEqual([...lines].sort((a, b) => a - b));
    });
  }

  test('members of a list keep their places', () => {
    const found = faults(
      spoil(['scores:\n', 'scores:\n    - { id: 7, queue: main }\n    - { id: side, queue: sid }\n']),
    );
    expect(found.map(({ where }) => where)).toEqual(['/analysis/scores/0/id', '/analysis/scores/1/queue']);
  });

  /** Every place of a protocol: replaced by what fits nowhere, it is the only thing that is faulted. */
  const value = asJson(read(VALID).protocol);
  test.each(places(value, []).map((path) => [pointerOf(path), path] as const))(
    'nothing else is faulted for %s',
    (pointer, path) => {
      const found = faults(`${JSON.stringify(replaced(value, path, [[true]]))}\n`);
      expect(found.length).toBeGreaterThan(0);
      for (const { where } of found) expect(`${where}/`.startsWith(`${pointer}/`), where).toBe(true);
    },
  );
});

describe('a value of another kind', () => {
  test('is told to lose its quotes only where it has some', () => {
    const hint = (edit: Edit) => faults(spoil(edit))[0]?.hint;
    expect(hint(['revision: 1', 'revision: "1"'])).toMatch(/^Remove the quotes/);
    expect(hint(['revision: 1', 'revision: one'])).toBe('Give a number here.');
  });

  test.each(['hello\n', 'boundbook\n', '- 1\n', '12\n'])('a file that is no mapping: %j', (text) => {
    expect(faults(text)[0]?.hint).toContain('Is this the right file, and whole?');
  });
});

function places(value: JsonValue, path: Path): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.keys(value).flatMap((key) => {
    const step = [...path, Array.isArray(value) ? Number(key) : key];
    return places(valueAt(value, [step.at(-1) ?? '']) ?? null, step);
  });
  return path.length === 0 ? inner : [path, ...inner];
}

function replaced(value: JsonValue, path: Path, by: JsonValue): JsonValue {
  const [first, ...rest] = path;
  if (first === undefined) return by;
  const inner = replaced(valueAt(value, [first]) ?? null, rest, by);
  if (Array.isArray(value)) return value.map((item: JsonValue, i) => (i === first ? inner : item));
  return { ...(value as object), [first]: inner };
}
