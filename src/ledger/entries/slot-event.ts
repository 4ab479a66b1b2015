import type { SlotEvent } from '../../attempts/slot-event.js';
import type { DraftOf, EntryDraft } from './entry.js';

/** The slot that an entry speaks of, and what it means for the slot's state machine; null for other entries. */
export function toSlotEvent(entry: EntryDraft): { readonly slot: string; readonly event: SlotEvent } | null {
  switch (entry.type) {
    case 'attempt.started':
      return { slot: entry.slot, event: startEvent(entry) };
    case 'stage.finished': {
      const { attempt, result } = entry;
      if (result.kind === 'failure')
        return { slot: entry.slot, event: { type: 'failed', attempt, signals: result.signals } };
      if (result.kind === 'candidate') {
        return { slot: entry.slot, event: { type: 'generated', attempt, candidate: result.candidate } };
      }
      const { candidate, report, value } = result;
      return { slot: entry.slot, event: { type: 'graded', attempt, candidate, report, value } };
    }
    case 'attempt.finished':
      return {
        slot: entry.slot,
        event: { type: entry.type, attempt: entry.attempt, outcome: entry.outcome },
      };
    case 'attempt.recovered':
      return { slot: entry.slot, event: { type: entry.type, attempt: entry.attempt, found: entry.found } };
    case 'attribution.recorded':
      return {
        slot: entry.slot,
        event: {
          type: entry.type,
          attempt: entry.attempt,
          attribution: entry.attribution,
          by: entry.by,
          rule: entry.rule,
          late: entry.late,
        },
      };
    case 'slot.settled':
      return { slot: entry.slot, event: { type: entry.type, value: entry.value, basis: entry.basis } };
    case 'slot.unresolved':
      return { slot: entry.slot, event: { type: entry.type, reason: entry.reason } };
    default:
      return null;
  }
}

export function startEvent(entry: DraftOf<'attempt.started'>): SlotEvent {
  const { attempt, kind, of, sampling_seed: samplingSeed, candidate } = entry;
  return { type: 'attempt.started', attempt, kind, of, samplingSeed, candidate };
}
