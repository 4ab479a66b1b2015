import { step } from '../attempts/machine.js';
import { nextAction } from '../attempts/next-action.js';
import { classify } from '../attempts/rules.js';
import type { FailureSignals } from '../attempts/signals.js';
import type { SlotRules, SlotState } from '../attempts/slot-state.js';
import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { DraftOf, EntryDraft } from '../ledger/entries/entry.js';
import { toSlotEvent } from '../ledger/entries/slot-event.js';
import { type LedgerObject, toObject } from '../ledger/objects.js';
import type { Evidence, GenerateEnd, GradeEnd } from './adapters/adapter.js';
import type { StageRecord } from './adapters/stage-record.js';

export interface Recorded {
  readonly drafts: readonly EntryDraft[];
  readonly objects: readonly LedgerObject[];
}

type Names = { readonly attempt: string; readonly slot: string };
type Ended<T> = Exclude<T, { kind: 'abandoned' }>;
type StageDraft = DraftOf<'stage.finished'>;

/** The entry for the end of `generate`, with the objects that it names. */
export function generateRecord(names: Names, end: Ended<GenerateEnd>): StageRecord {
  const kept = keep(end.objects);
  if (end.kind === 'failure') {
    return stageRecord(names, 'generate', { kind: 'failure', signals: end.signals }, end, kept);
  }
  const candidate = toObject(end.bytes);
  const result = { kind: 'candidate', candidate: candidate.digest } as const;
  const record = stageRecord(names, 'generate', result, end, [...kept, ['', candidate]]);
  return end.cut === undefined ? record : { ...record, cut: end.cut };
}

/** The entry for the end of `grade`, with the objects that it names. */
export function gradeRecord(
  names: Names,
  candidate: LedgerObject['digest'],
  end: Ended<GradeEnd>,
): { readonly draft: StageDraft; readonly objects: readonly LedgerObject[] } {
  const kept = keep(end.objects);
  if (end.kind === 'failure') {
    return stageRecord(names, 'grade', { kind: 'failure', signals: end.signals }, end, kept);
  }
  const report = toObject(end.bytes);
  const result = { kind: 'report', candidate, report: report.digest, value: end.value } as const;
  return stageRecord(names, 'grade', result, end, [...kept, ['', report]]);
}

/** Named objects; the empty name is for those that the result itself names. */
type Kept = readonly (readonly [string, Digest | LedgerObject])[];

function keep(objects: Readonly<Record<string, Evidence>>): Kept {
  return Object.entries(objects).map(([name, one]) => [name, 'stored' in one ? one.stored : toObject(one)]);
}

function stageRecord(
  { attempt, slot }: Names,
  stage: StageDraft['stage'],
  result: StageDraft['result'],
  end: Ended<GenerateEnd> | Ended<GradeEnd>,
  kept: Kept,
): { draft: StageDraft; objects: LedgerObject[] } {
  const named = kept
    .filter(([name]) => name !== '')
    .map(([name, one]) => [name, typeof one === 'string' ? one : one.digest] as const);
  const draft: StageDraft = {
    type: 'stage.finished',
    attempt,
    slot,
    stage,
    result,
    objects: Object.fromEntries(named),
    usage: end.usage,
    finish_reason: end.finishReason?.toWellFormed() ?? null,
    seconds: end.seconds,
    queue_seconds: end.queueSeconds,
    ...(end.firstTokenSeconds === undefined ? {} : { first_token_seconds: end.firstTokenSeconds }),
  };
  return { draft, objects: kept.flatMap(([, one]) => (typeof one === 'string' ? [] : [one])) };
}

/**
 * Everything that follows from a slot's state without any further observation: attribution by rule, end of the
 * attempt, settlement or the finding that it stays unresolved.
 *
 * @param seconds what the end of the attempt, if one follows, says of its length
 */
export function conclusions(state: SlotState, rules: SlotRules, seconds: number): EntryDraft[] {
  const drafts: EntryDraft[] = [];
  let at = state;
  for (;;) {
    const draft = conclusion(at, rules, seconds);
    if (draft === null) return drafts;
    drafts.push(draft);
    at = stateAfter(at, [draft], rules);
  }
}

/** The state after some drafts. @throws {BoundbookError} INTERNAL when one of them is unlawful. */
export function stateAfter(state: SlotState, drafts: readonly EntryDraft[], rules: SlotRules): SlotState {
  let at = state;
  for (const draft of drafts) {
    const event = toSlotEvent(draft)?.event;
    const result = event === undefined ? null : step(at, event, rules);
    if (result?.ok !== true) {
      throw new BoundbookError(
        'INTERNAL',
        `${draft.type} would break ${result?.violation.clause ?? 'the form'}: ${result?.violation.message ?? ''}`,
      );
    }
    at = result.state;
  }
  return at;
}

function conclusion(state: SlotState, rules: SlotRules, seconds: number): EntryDraft | null {
  const action = nextAction(state, rules);
  const { slot } = rules;
  switch (action?.do) {
    case 'attribute':
      return attribution(slot, action.attempt, rules, signalsOf(state));
    case 'finish':
      return { type: 'attempt.finished', attempt: action.attempt, slot, outcome: action.outcome, seconds };
    case 'settle':
      return { type: 'slot.settled', slot, value: action.value, basis: action.basis };
    case 'unresolve':
      return { type: 'slot.unresolved', slot, reason: action.reason };
    default:
      return null;
  }
}

function attribution(
  slot: string,
  attempt: string,
  rules: SlotRules,
  signals: FailureSignals | null,
): EntryDraft | null {
  if (signals === null) return null;
  const { attribution, rule } = classify(rules.rules, signals);
  return {
    type: 'attribution.recorded',
    attempt,
    slot,
    attribution,
    by: 'rule',
    rule,
    late: false,
    reason: null,
  };
}

function signalsOf(state: SlotState): FailureSignals | null {
  return state.phase === 'failed' ? state.signals : null;
}
