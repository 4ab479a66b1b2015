import seedrandom from 'seedrandom';
import { describe, expect, it, test } from 'vitest';
import { twoWayBootstrap } from '../../src/analysis/bootstrap.js';
import { type Bound, differenceBound, meanBound, scoreBound } from '../../src/analysis/bounds.js';
import { decide } from '../../src/analysis/decision.js';
import { fromNumber, fromText, toNumber, toText } from '../../src/analysis/rational.js';
import { tally } from '../../src/analysis/score.js';
import { step } from '../../src/attempts/machine.js';
import { classify } from '../../src/attempts/rules.js';
import type { FailureSignals } from '../../src/attempts/signals.js';
import { PLANNED, type SlotState } from '../../src/attempts/slot-state.js';
import { digestOf } from '../../src/core/digest.js';
import { gradeAnswer } from '../../src/grading/answer.js';
import { answerReport } from '../../src/grading/report.js';
import { validateReport } from '../../src/grading/validate-report.js';
import { entryDraftSchema } from '../../src/ledger/entries/entry.js';
import { toSlotEvent } from '../../src/ledger/entries/slot-event.js';
import { readAnswer } from '../../src/runner/adapters/openai-answer.js';
import { buildRequest } from '../../src/runner/adapters/openai-request.js';
import { samplingSeed } from '../../src/slots/slot.js';
import { vectors } from './vectors.js';

describe('vectors of docs/formats/vectors.md: attempts', () => {
  it.each(vectors.attribution.flatMap(({ rules, cases }) => cases.map((each) => ({ rules, ...each }))))(
    'attribution by $rule',
    ({ rules, signals, attribution, rule }) => {
      expect(classify(rules, signals as unknown as FailureSignals)).toEqual({ attribution, rule });
    },
  );

  const lives = vectors.life.flatMap(({ lives: each, ...plan }) => each.map((life) => ({ plan, ...life })));
  it.each(lives)('$what', ({ plan, steps }) => {
    const { key, slot, replacements, regrades, rules, reward } = plan;
    const seed = samplingSeed(plan, { ...key, evaluationSeed: key.evaluation_seed });
    const slotRules = { slot, samplingSeed: seed, replacements, regrades, rules, reward };
    let state: SlotState = PLANNED;
    for (const [entry, phase] of steps) {
      expect(entryDraftSchema.safeParse(entry).success, JSON.stringify(entry)).toBe(true);
      const named = toSlotEvent(entry);
      if (named === null) throw new Error(`${entry.type} speaks of no slot`);
      const result = step(state, named.event, slotRules);
      expect(result.ok ? result.state.phase : null, JSON.stringify(entry)).toBe(phase);
      if (result.ok) state = result.state;
    }
  });
});

describe('vectors of docs/formats/vectors.md: evidence', () => {
  it.each(vectors.request)(
    'request of $endpoint',
    ({ endpoint, condition, model, fields, seed, text, digest }) => {
      const bytes = buildRequest(endpoint, condition, model, fields, seed);
      expect(bytes.toString('utf8')).toBe(text);
      expect(digestOf(bytes)).toBe(digest);
    },
  );

  it.each(vectors.answer)('answer $body', ({ endpoint, model, body, ...expected }) => {
    const reading = readAnswer(Buffer.from(body), endpoint, model);
    expect(
      reading.ok
        ? { text: reading.text, finish_reason: reading.finishReason, usage: reading.usage }
        : { cause: reading.cause, embedded_status: reading.embeddedStatus, exception: reading.exception },
    ).toEqual(expected);
  });

  it.each(vectors.grading)('$kind: $answer_hex for $reference', (vector) => {
    const candidate = Buffer.from(vector.answer_hex, 'hex');
    const grader = { kind: vector.kind, answer: 'a' };
    const grade = gradeAnswer(grader, { a: vector.reference }, candidate.toString('utf8'));
    expect(grade).toMatchObject({ value: vector.value, outcome: vector.outcome });
    const report = answerReport(grader, 't1', digestOf(candidate), grade);
    expect(report.toString('utf8')).toBe(vector.report);
    expect(digestOf(report)).toBe(vector.digest);
  });

  test('reports of commands', () => {
    const { task, candidate, expected_tests: tests, reward, valid, invalid } = vectors.command_report;
    const verdict = (text: string) =>
      validateReport(Buffer.from(text), { task, candidate, tests, reward, schema: null }).ok;
    for (const text of valid) expect(verdict(text), text).toBe(true);
    for (const text of invalid) expect(verdict(text), text).toBe(false);
  });
});

describe('vectors of docs/formats/vectors.md: results', () => {
  it.each(vectors.bound)('bounds of uneven reps', ({ arms, difference, mean, values, decisions }) => {
    const ends = ({ lower, upper }: Bound) => [toText(lower), toText(upper)];
    const bounds = arms.map(({ reward, tasks }) =>
      scoreBound(
        tasks.map((task) => tally(task.values, task.planned)),
        { min: fromNumber(reward.min), max: fromNumber(reward.max) },
      ),
    );
    expect(bounds.map(ends)).toEqual(arms.map(({ bound }) => bound));
    const [minuend, subtrahend] = bounds;
    if (minuend === undefined || subtrahend === undefined) throw new Error('two arms are needed');
    const contrast = differenceBound(minuend, subtrahend);
    expect(ends(contrast)).toEqual(difference);
    expect([toNumber(contrast.lower), toNumber(contrast.upper)]).toEqual(values);
    expect(ends(meanBound(bounds))).toEqual(mean);
    for (const { comparator, threshold, status } of decisions) {
      expect(decide(contrast, comparator, fromNumber(threshold)), `${comparator} ${threshold}`).toBe(status);
    }
  });

  it.each(vectors.draw)('draws of seed $seed', ({ seed, u }) => {
    const random = seedrandom(String(seed));
    expect(u.map(() => random())).toEqual(u);
  });

  it.each(vectors.interval)(
    'interval over $differences.length pairs',
    ({ differences, exact, ...expected }) => {
      const { resamples, seed, level, lower, upper, resampled } = expected;
      const matrix = differences.map((row) => row.map(fromText));
      const [interval] = twoWayBootstrap([matrix], { resamples, seed, level });
      expect(interval).toMatchObject({ lower, upper, variance: { resampled } });
      const { seeds, tasks, interaction, total } = interval?.variance.exact ?? {};
      expect([seeds, tasks, interaction, total].map((part) => part && toText(part))).toEqual(exact);
    },
  );
});
