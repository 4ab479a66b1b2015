import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalText } from '../../src/core/canonical-json.js';
import { decodeEntry } from '../../src/ledger/codec.js';
import { entryDraftSchema } from '../../src/ledger/entries/entry.js';
import { readCommonEntry } from '../../src/ledger/entry-form.js';

/**
 * The quick way takes only what renderer and schema take, and every common entry: held together by taking sound entries
 * apart. Each member is replaced by other values, removed, and joined by a stranger, at every depth.
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

function textOrNull(value: unknown): string | null {
  try {
    return canonicalText(value);
  } catch {
    return null;
  }
}

/** Whether the quick way takes an entry. */
function isRecognised(entry: Record<string, unknown>): boolean {
  const text = textOrNull(entry);
  const read = text === null ? null : readCommonEntry(text);
  // Members and their order are those that the parser gives.
  if (read !== null) expect(JSON.stringify(read)).toBe(text);
  return read !== null;
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
    // Failures are left to the schema.
    expect(isRecognised(framed(draft))).toBe(
      (draft.result as { kind?: string } | undefined)?.kind !== 'failure',
    );
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
  const draft = SOUND[2] as Record<string, unknown>;
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
    sound.replace('"stop"', '"\\u0045"'),
    sound.replace('"stop"', '"\\ud800"'),
    sound.replace('"stop"', '"a\u0001b"'),
    sound.replace('"finish_reason":"stop"', '"finish_reason":"stop","finish_reason":"stop"'),
    sound.replace('"seconds":0.5', '"seconds":0.50'),
    sound.replace('"seconds":0.5', '"seconds":1e400'),
    sound.replace('"seconds":0.5', '"seconds":1-2'),
    sound.replace('"completion_tokens":null', '"completion_tokens":9007199254740993'),
    sound.replace('{', '{ '),
    `${sound}\n`,
    sound.replace('"type"', '"__proto__":1,"type"'),
    // Schemas pass over such a key in a map of free names.
    canonicalText(
      framed({ ...draft, objects: JSON.parse(`{"__proto__":"${DIGEST}","response":"${DIGEST}"}`) }),
    ),
    canonicalText(framed({ ...draft, objects: JSON.parse(`{"__proto__":"${DIGEST}"}`) })),
  ];
  for (const text of broken) {
    expect(text).not.toBe(sound);
    expect(decodeEntry(Buffer.from(text)).ok, text).toBe(false);
  }
  const quoted = framed({ ...draft, objects: { 'x"__proto__': DIGEST }, finish_reason: '"__proto__":' });
  expect(decodeEntry(Buffer.from(canonicalText(quoted))).ok).toBe(true);
  const reason = 'a "quote", \\ud800, é, 😀 \u0007\u2028\u007f';
  for (const finish_reason of [reason, 'é 😀 \u2028\u007f', '']) {
    const entry = framed({ ...draft, finish_reason });
    expect(decodeEntry(Buffer.from(canonicalText(entry)))).toEqual({ ok: true, entry });
  }
});

test('property: no text that differs in a few characters is taken unless renderer and schema take it', () => {
  const edit = fc.record({
    at: fc.nat(700),
    cut: fc.nat(3),
    put: fc.constantFrom(...'"{}:,0123456789aefn-+. \\u', ''),
  });
  let recognised = 0;
  fc.assert(
    fc.property(fc.constantFrom(...SOUND), fc.array(edit, { minLength: 1, maxLength: 3 }), (draft, edits) => {
      const text = edits.reduce(
        (all, { at, cut, put }) => all.slice(0, at) + put + all.slice(at + cut),
        canonicalText(framed(draft)),
      );
      const read = readCommonEntry(text);
      if (read === null) return;
      recognised++;
      expect(JSON.stringify(read)).toBe(text);
      const { seq: _seq, prev: _prev, time: _time, ...rest } = JSON.parse(text) as Record<string, unknown>;
      expect(canonicalText(JSON.parse(text))).toBe(text);
      expect(bySchema(rest)).toBe(true);
    }),
    { seed: 7, numRuns: 20_000 },
  );
  expect(recognised).toBeGreaterThan(200);
});
