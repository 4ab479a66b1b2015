import fc from 'fast-check';
import { expect, test } from 'vitest';
import { entryDraftSchema } from '../../src/ledger/entries.js';
import { hasCommonForm } from '../../src/ledger/entry-form.js';

/**
 * The quick check says yes only to what the schema accepts, and to every common entry: held together by taking sound
 * entries apart. Each member is replaced by other values, removed, and joined by a stranger, at every depth.
 */
const HEX = 'a1'.repeat(16);
const DIGEST = `sha256:${'0f'.repeat(32)}`;
const SIGNALS = {
  ...{ stage: 'generate', phase: 'body', cause: 'body_error', http_status: 200, embedded_status: 503 },
  ...{ exit_status: null, signal: 'SIGKILL', service_alive: true, exception: 'E', text: null },
};
const KEY = { queue: 'q', arm: 'M', training_seed: 42, evaluation_seed: 0, task: 't', rep: 0 };
const STAGE = {
  ...{ type: 'stage.finished', attempt: HEX, slot: HEX, stage: 'generate', objects: { response: DIGEST } },
  ...{
    usage: { prompt_tokens: 1, completion_tokens: null },
    finish_reason: 'stop',
    seconds: 0.5,
    queue_seconds: 0,
  },
};

const SOUND: readonly Record<string, unknown>[] = [
  {
    ...{ type: 'attempt.started', session: HEX, attempt: HEX, slot: HEX, key: KEY, kind: 'first', of: null },
    ...{ sampling_seed: 7, candidate: null, request: DIGEST },
  },
  {
    ...{
      type: 'attempt.started',
      session: HEX,
      attempt: HEX,
      slot: HEX,
      key: { ...KEY, training_seed: null },
    },
    ...{ kind: 'regrade', of: HEX, sampling_seed: 7, candidate: DIGEST, request: null },
  },
  { ...STAGE, result: { kind: 'candidate', candidate: DIGEST } },
  {
    ...STAGE,
    stage: 'grade',
    usage: null,
    result: { kind: 'report', candidate: DIGEST, report: DIGEST, value: 1 },
  },
  { ...STAGE, finish_reason: null, result: { kind: 'failure', signals: SIGNALS } },
  { type: 'attempt.finished', attempt: HEX, slot: HEX, outcome: 'failure', seconds: 0 },
  { type: 'slot.settled', slot: HEX, value: 0, basis: { kind: 'report', attempt: HEX, report: DIGEST } },
  { type: 'slot.settled', slot: HEX, value: 0, basis: { kind: 'model_failure', attempt: HEX } },
];

const VALUES: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    1,
    -1,
    0.5,
    -0.5,
    7,
    1e300,
    2 ** 53,
    '',
    'x',
    'first',
    'report',
    'failure',
    'grade',
  ],
  ...[
    HEX,
    HEX.toUpperCase(),
    HEX.slice(1),
    `${HEX}0`,
    DIGEST,
    DIGEST.slice(1),
    `${DIGEST}0`,
    `sha256:${'g'.repeat(64)}`,
  ],
  ...[
    'collect',
    'report_missing',
    'SIGTERM',
    [],
    [HEX],
    {},
    { kind: 'report' },
    KEY,
    SIGNALS,
    { a: DIGEST },
    { a: 1 },
  ],
];

const framed = (draft: Record<string, unknown>) => ({ ...draft, seq: 1, prev: HEX, time: 't' });
const bySchema = (draft: unknown) => entryDraftSchema.safeParse(draft).success;

/** Every value that differs from `value` in one place. */
function* changed(value: unknown): Generator<unknown> {
  yield* VALUES;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  yield { ...value, stranger: null };
  yield Object.defineProperty({ ...value }, '__proto__', { value: DIGEST, enumerable: true });
  for (const [key, member] of Object.entries(value)) {
    const { [key as never]: _, ...rest } = value as Record<string, unknown>;
    yield rest;
    for (const other of changed(member)) yield { ...value, [key]: other };
  }
}

test('every common entry is recognised', () => {
  for (const draft of SOUND) {
    expect(bySchema(draft)).toBe(true);
    expect(hasCommonForm(framed(draft))).toBe(true);
  }
});

test('one change anywhere: never a yes where the schema says no', () => {
  let tried = 0;
  let recognised = 0;
  for (const draft of SOUND) {
    for (const other of changed(draft)) {
      if (typeof other !== 'object' || other === null || Array.isArray(other)) continue;
      tried++;
      if (!hasCommonForm(framed(other as Record<string, unknown>))) continue;
      recognised++;
      expect(bySchema(other), JSON.stringify(other)).toBe(true);
    }
  }
  expect(tried).toBeGreaterThan(3000);
  expect(recognised).toBeGreaterThan(100);
});

test('property: many changes at once', () => {
  const value = fc.constantFrom(...VALUES);
  const draft = fc.constantFrom(...SOUND).chain((base) =>
    fc
      .record(
        Object.fromEntries(
          Object.keys(base).map((key) => [key, fc.option(value, { freq: 3, nil: undefined })]),
        ),
      )
      .map((edits) => {
        const kept = Object.entries(edits).filter(([, edit]) => edit !== undefined);
        return { ...base, ...Object.fromEntries(kept) };
      }),
  );
  fc.assert(
    fc.property(draft, (entry) => {
      if (hasCommonForm(framed(entry))) expect(bySchema(entry)).toBe(true);
    }),
    { seed: 20260927, numRuns: 3000 },
  );
});
