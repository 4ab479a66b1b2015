import type { SlotState } from '../attempts/slot-state.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import type { Entry, EntryOf } from './entries/entry.js';

/** Stands for what is not shown before unblinding (law 8). */
export const MASK = '(masked until unblinding)';

/**
 * An entry as it may be shown while outcomes are blinded. Where a slot has an outcome, of everything that its last attempt
 * left nothing is shown but a position, and not whose it is: an attempt that failed leaves other entries than one that was
 * graded, at other times, and that it failed says as much as the value 0.
 *
 * @param state the present state of the slot that the entry names; null for entries that name none
 */
export function maskEntry(entry: Entry, state: SlotState | null): JsonObject {
  const { seq, prev, time, type } = entry;
  if (entry.type === 'regrading.opened') return { ...asJson(entry), slots: MASK };
  if (entry.type === 'regrading.closed')
    return {
      ...asJson(entry),
      changed: MASK,
      same: MASK,
      truncated: MASK,
      ...(entry.failed === undefined ? {} : { failed: MASK }),
    };
  if (entry.type === 'recheck.declared') return { ...asJson(entry), stopped: MASK, sample: MASK };
  if (isRecheck(entry)) return { seq, prev, time, type, recheck: entry.recheck, masked: true };
  if (state === null || !('slot' in entry)) return asJson(entry);
  if (entry.type === 'slot.carried') return maskCarried(entry);
  if (bearsOutcome(entry, state)) return { seq, prev, type: MASK, masked: true };
  if (entry.type === 'attempt.started') return maskStart(entry);
  if (type !== 'stage.finished') return asJson(entry);
  const { result } = entry;
  return {
    ...asJson(entry),
    result: result.kind === 'failure' ? maskFailure(result) : { kind: result.kind, candidate: MASK },
    objects: Object.fromEntries(
      Object.keys(entry.objects)
        // Whether an artifact was made may say as much as the value.
        .filter((name) => name !== 'capture' && !name.startsWith('artifact/'))
        .map((name) => [name, MASK]),
    ),
    // An empty answer has no first token.
    ...(result.kind === 'failure' ? {} : { usage: MASK, finish_reason: MASK, first_token_seconds: MASK }),
  };
}

/**
 * The entries of one slot, in order, as they may be shown while outcomes are blinded. Of an attempt that an outcome rests on
 * the start is shown, without its position and time, and one mark stands for all the rest.
 */
export function maskHistory(entries: readonly Entry[], state: SlotState): readonly JsonObject[] {
  const shown: JsonObject[] = [];
  let masked: JsonObject | null = null;
  for (const entry of entries) {
    if (!bearsOutcome(entry, state)) {
      shown.push(maskEntry(entry, state));
      continue;
    }
    if (entry.type === 'attempt.started') {
      const { seq: _, prev: __, time: ___, ...rest } = maskStart(entry);
      shown.push(rest);
    } else if ('slot' in entry) masked = { type: MASK, slot: entry.slot, masked: true };
  }
  return masked === null ? shown : [...shown, masked];
}

function maskStart(entry: EntryOf<'attempt.started'>): JsonObject {
  return { ...asJson(entry), candidate: entry.candidate === null ? null : MASK };
}

/** What a grader or a log says of a failure may tell how much of the answer was right; what was measured does not. */
function maskFailure({
  kind,
  signals,
}: Extract<EntryOf<'stage.finished'>['result'], { kind: 'failure' }>): JsonObject {
  return { kind, signals: { ...asJson(signals), text: signals.text === null ? null : MASK } };
}

/** That a slot is settled or unresolved is shown, as it is for others; neither its value nor what it rests on, and where, is. */
function maskCarried(entry: EntryOf<'slot.carried'>): JsonObject {
  if (entry.outcome.kind === 'unresolved') return asJson(entry);
  return { ...asJson(entry), closed_by: MASK, outcome: { kind: entry.outcome.kind, value: MASK } };
}

/** Whether an entry shows which slots the stop rule ended, or what came of them without it. */
export function isRecheck(
  entry: Entry,
): entry is EntryOf<'recheck.started' | 'recheck.finished' | 'recheck.closed'> {
  return ['recheck.started', 'recheck.finished', 'recheck.closed'].includes(entry.type);
}

/** The state of a slot as it may be shown while outcomes are blinded. */
export function maskState(state: SlotState): JsonObject {
  const { attempts, replacements, regrades } = state;
  const shown: JsonObject = { attempts, replacements, regrades };
  if (isJudged(state)) return { ...shown, phase: MASK };
  switch (state.phase) {
    case 'settled':
      return { ...shown, phase: state.phase, value: MASK };
    case 'unresolved':
      return { ...shown, phase: state.phase, reason: state.reason };
    case 'planned':
    case 'generating':
    case 'grading':
      return { ...shown, phase: state.phase };
    default:
      return isOutcome(state) ? { ...shown, phase: MASK } : { ...shown, phase: state.phase };
  }
}

/** Whether an entry of a slot belongs to what the slot's outcome rests on. */
function bearsOutcome(entry: Entry, state: SlotState): boolean {
  if (!isOutcome(state) || entry.type === 'slot.carried') return false;
  return !('attempt' in entry) || entry.attempt === state.attempts.at(-1);
}

/** Whether the slot's value is fixed, or about to be. */
function isOutcome(state: SlotState): boolean {
  if (isJudged(state)) return true;
  if (state.phase === 'attributed') return state.attribution === 'model';
  return state.phase === 'settled' || state.phase === 'reported' || state.phase === 'failed';
}

/**
 * Whether an adjudicator's verdict has the last word on a slot. What it was must not show: of a slot that had no report, to be
 * settled by it means 0.
 */
function isJudged(state: SlotState): boolean {
  return 'by' in state && state.by === 'adjudicator';
}

/** Entries come out of JSON, so they are JSON. */
export function asJson(value: object): JsonObject {
  return value as { readonly [key: string]: JsonValue };
}
