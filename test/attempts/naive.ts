import { type Attribution, classify } from '../../src/attempts/rules.js';
import type { SlotEvent } from '../../src/attempts/slot-event.js';
import { attemptId, type SlotRules } from '../../src/attempts/slot-state.js';
import type { Digest } from '../../src/core/digest.js';

/**
 * The rules of DESIGN §9 a second time, written from its prose and not from the machine: each event is judged by
 * predicates over all that was accepted before it. There is no state and no phase.
 */

type Of<T extends SlotEvent['type']> = Extract<SlotEvent, { type: T }>;

function all<T extends SlotEvent['type']>(history: readonly SlotEvent[], type: T): Of<T>[] {
  return history.filter((event): event is Of<T> => event.type === type);
}

/** What is known of the newest attempt. */
interface Newest {
  readonly start: Of<'attempt.started'>;
  readonly candidate: Digest | null;
  readonly report: Of<'graded'> | undefined;
  /** It failed, or its process died with nothing made. */
  readonly failure: Of<'failed'> | 'process gone' | undefined;
  readonly ended: boolean;
  /** By the rules, by the death of the process, or by the last verdict that was in time. */
  readonly fault: Attribution | undefined;
  readonly judged: boolean;
  /** Settled or given up, and no verdict in time has reopened it since. */
  readonly closed: boolean;
  /** Whether it was ever declared unresolved for want of an attribution. */
  readonly openToJudgement: boolean;
}

function newest(history: readonly SlotEvent[]): Newest | null {
  const at = history.findLastIndex((event) => event.type === 'attempt.started');
  const begin = history[at];
  if (begin?.type !== 'attempt.started') return null;
  const since = history.slice(at);
  const verdicts = all(since, 'attribution.recorded').filter((one) => one.by === 'adjudicator' && !one.late);
  const byRule = all(since, 'attribution.recorded').find((one) => one.by === 'rule');
  const gone = all(since, 'attempt.recovered').some((one) => one.found === 'nothing');
  const unresolved = all(since, 'slot.unresolved');
  return {
    start: begin,
    candidate: begin.candidate ?? all(since, 'generated')[0]?.candidate ?? null,
    report: all(since, 'graded')[0],
    failure: all(since, 'failed')[0] ?? (gone ? 'process gone' : undefined),
    ended: all(since, 'attempt.finished').length > 0,
    fault: verdicts.at(-1)?.attribution ?? byRule?.attribution ?? (gone ? 'infrastructure' : undefined),
    judged: verdicts.length > 0,
    closed: since.findLastIndex(closes) > since.findLastIndex(reopens),
    openToJudgement: unresolved.some((one) => one.reason === 'undetermined'),
  };
}

function closes(event: SlotEvent): boolean {
  return event.type === 'slot.settled' || event.type === 'slot.unresolved';
}

function reopens(event: SlotEvent): boolean {
  return event.type === 'attribution.recorded' && event.by === 'adjudicator' && !event.late;
}

function kindsSoFar(history: readonly SlotEvent[], kind: 'replacement' | 'regrade'): number {
  return all(history, 'attempt.started').filter((one) => one.kind === kind).length;
}

/** What the retry rules allow after the newest attempt; null when none. */
function retry(
  history: readonly SlotEvent[],
  last: Newest,
  rules: SlotRules,
): 'replacement' | 'regrade' | null {
  if (last.closed || !last.ended || last.fault !== 'infrastructure') return null;
  const kind = last.candidate === null ? 'replacement' : 'regrade';
  const limit = kind === 'replacement' ? rules.replacements : rules.regrades;
  return kindsSoFar(history, kind) < limit ? kind : null;
}

function mayStart(history: readonly SlotEvent[], event: Of<'attempt.started'>, rules: SlotRules): boolean {
  const count = all(history, 'attempt.started').length;
  if (event.samplingSeed !== rules.samplingSeed) return false;
  if (event.attempt !== attemptId(rules.slot, count + 1)) return false;
  const last = newest(history);
  if (last === null) return event.kind === 'first' && event.of === null && event.candidate === null;
  if (event.of !== last.start.attempt) return false;
  const kind = retry(history, last, rules);
  if (kind === null || event.kind !== kind) return false;
  return kind === 'replacement' ? event.candidate === null : event.candidate === last.candidate;
}

function mayAttribute(event: Of<'attribution.recorded'>, last: Newest, rules: SlotRules): boolean {
  if (last.failure === undefined) return false;
  if (event.by === 'rule') {
    if (event.late || last.failure === 'process gone' || last.fault !== undefined) return false;
    const due = classify(rules.rules, last.failure.signals);
    return due.attribution === event.attribution && due.rule === event.rule;
  }
  return event.rule === null && (last.openToJudgement || last.judged);
}

function maySettle(event: Of<'slot.settled'>, last: Newest): boolean {
  if (last.closed || !last.ended) return false;
  const { basis, value } = event;
  if (basis.attempt !== last.start.attempt) return false;
  if (basis.kind === 'report') return basis.report === last.report?.report && value === last.report.value;
  return last.fault === 'model' && value === 0;
}

function mayGiveUp(
  history: readonly SlotEvent[],
  event: Of<'slot.unresolved'>,
  last: Newest,
  rules: SlotRules,
): boolean {
  if (last.closed || !last.ended || last.failure === undefined) return false;
  if (event.reason === 'undetermined') return last.fault === 'undetermined';
  return last.fault === 'infrastructure' && retry(history, last, rules) === null;
}

/** Whether `event` may follow `history`, a list of accepted events. */
export function isLawful(history: readonly SlotEvent[], event: SlotEvent, rules: SlotRules): boolean {
  if (event.type === 'attempt.started') return mayStart(history, event, rules);
  const last = newest(history);
  if (last === null) return false;
  if ('attempt' in event && event.attempt !== last.start.attempt) return false;
  const over = last.report !== undefined || last.failure !== undefined;
  switch (event.type) {
    case 'generated':
      return !over && last.candidate === null;
    case 'graded':
      return (
        !over &&
        last.candidate === event.candidate &&
        event.value >= rules.reward.min &&
        event.value <= rules.reward.max
      );
    case 'failed':
      return !over && (event.signals.stage === 'generate') === (last.candidate === null);
    case 'attempt.recovered':
      return !over && (event.found === 'end' || (event.found === 'candidate') === (last.candidate !== null));
    case 'attribution.recorded':
      return mayAttribute(event, last, rules);
    case 'attempt.finished':
      if (last.ended) return false;
      return event.outcome === 'report'
        ? last.report !== undefined
        : last.failure !== undefined && last.fault !== undefined;
    case 'slot.settled':
      return maySettle(event, last);
    case 'slot.unresolved':
      return mayGiveUp(history, event, last, rules);
  }
}
