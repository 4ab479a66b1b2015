import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalText } from '../../src/core/canonical-json.js';
import { decodeEntry } from '../../src/ledger/codec.js';
import { entryDraftSchema } from '../../src/ledger/entries.js';
import { commonText } from '../../src/ledger/entry-form.js';

/**
 * The text written out member by member is the canonical text of what the schema accepts, and of every common entry:
 * held together by taking sound entries apart. Each member is replaced by other values, removed, and joined by a stranger, at every depth.
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

const framed = (draft: Record<string, unknown>) => ({
  ...draft,
  ...{ seq: 1, prev: HEX + HEX, time: '2026-11-30T00:00:00.000Z' },
});

const bySchema = (draft: unknown) => entryDraftSchema.safeParse(draft).success;

/** Whether the quick way takes an entry. */
function isRecognised(entry: Record<string, unknown>): boolean {
  const text = commonText(entry);
  if (text === null) return false;
  try {
    return text === canonicalText(entry);
  } catch {
    return false;
  }
}

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
    expect(commonText(framed(draft))).toBe(canonicalText(framed(draft)));
  }
});

test('one change anywhere: never a yes where the schema says no', () => {
  let tried = 0;
  let recognised = 0;
  for (const draft of SOUND) {
    for (const other of changed(draft)) {
      if (typeof other !== 'object' || other === null || Array.isArray(other)) continue;
      tried++;
      if (!isRecognised(framed(other as Record<string, unknown>))) continue;
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
      if (isRecognised(framed(entry))) expect(bySchema(entry)).toBe(true);
    }),
    { seed: 20260927, numRuns: 3000 },
  );
});

test('frames and texts that only look right are left to the schema and the renderer, which refuse them', () => {
  const draft = SOUND[4] as Record<string, unknown>;
  const sound = canonicalText(framed(draft));
  expect(decodeEntry(Buffer.from(sound)).ok).toBe(true);
  const broken = [
    sound.replace('"seq":1', '"seq":-1'),
    sound.replace('"seq":1', '"seq":1.0'),
    sound.replace('"seq":1', '"seq":"1"'),
    sound.replace('"seconds":0.5', '"seconds":5e-1'),
    sound.replace('"seconds":0.5', '"seconds":-0'),
    sound.replace('2026-11-30T', '2026-11-30 '),
    sound.replace(`"prev":"${HEX}`, `"prev":"${HEX.toUpperCase()}`),
    sound.replace('"exception":"E"', '"exception":"\\u0045"'),
    sound.replace('"exception":"E"', '"exception":"\\ud800"'),
    sound.replace('"exception":"E"', '"exception":"E","exception":"E"'),
    sound.replace('{', '{ '),
    `${sound}\n`,
    sound.replace('"type"', '"__proto__":1,"type"'),
  ];
  for (const text of broken) {
    expect(text).not.toBe(sound);
    expect(decodeEntry(Buffer.from(text)).ok, text).toBe(false);
  }
  const quoted = {
    ...draft,
    result: { kind: 'failure', signals: { ...SIGNALS, text: 'a "quote", \\ud800, é, 😀 \u0007' } },
  };
  expect(decodeEntry(Buffer.from(canonicalText(framed(quoted))))).toEqual({
    ok: true,
    entry: framed(quoted),
  });
});
