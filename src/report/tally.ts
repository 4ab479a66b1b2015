import type { Entry, EntryOf } from '../ledger/entries/entry.js';
import { ServiceTrail } from '../ledger/service-trail.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { RegradingTally } from './regradings.js';
import type { FailureCount, GenerationCount, Incident } from './report-input.js';

/** Counts over the entries of a lawful ledger that its fold does not keep by arm. */
export interface LedgerTally {
  readonly failures: readonly FailureCount[];
  readonly generations: readonly GenerationCount[];
  readonly incidents: readonly Incident[];
  /** Services that did not stay what they were. */
  readonly regradings: RegradingTally;
  readonly services: Pick<ServiceTrail, 'changes' | 'doubts' | 'swaps'>;
}

type Failure = Omit<FailureCount, 'attempts'>;

/** Ends of a session that the operator chose, or that follow from there being nothing left to do. */
const PLANNED_ENDS: ReadonlySet<string> = new Set(['finished', 'limit', 'signal']);

/**
 * @param armOf the arm of a slot
 */
export function tallyEntries(
  entries: Iterable<Entry>,
  armOf: (slot: string) => string,
  protocol: Protocol,
): LedgerTally {
  const trail = new ServiceTrail(protocol);
  const failures = new Map<string, Failure>();
  const generations = new Counter<Omit<GenerationCount, 'generations'>>();
  const regradings = new RegradingTally();
  const incidents = new Counter<{ readonly what: string }>();
  for (const entry of entries) {
    trail.take(entry);
    const incident = incidentOf(entry);
    if (incident !== null) incidents.add({ what: incident });
    switch (entry.type) {
      case 'regrading.recorded':
        regradings.take(entry);
        break;
      case 'stage.finished':
        if (entry.result.kind === 'failure') failures.set(entry.attempt, failureOf(entry, armOf));
        else if (entry.stage === 'generate') {
          generations.add({ arm: armOf(entry.slot), finish_reason: entry.finish_reason });
        }
        break;
      case 'attempt.recovered':
        if (entry.found === 'nothing') failures.set(entry.attempt, goneProcess(armOf(entry.slot)));
        break;
      case 'attribution.recorded': {
        const failure = failures.get(entry.attempt);
        if (failure !== undefined && !entry.late) {
          failures.set(entry.attempt, { ...failure, attribution: entry.attribution });
        }
        break;
      }
      default:
    }
  }
  const counted = new Counter<Failure>();
  for (const failure of failures.values()) counted.add(failure);
  return {
    regradings,
    services: { changes: trail.changes, doubts: trail.doubts, swaps: trail.swaps },
    failures: counted.entries().map(([failure, attempts]) => ({ ...failure, attempts })),
    generations: generations.entries().map(([each, count]) => ({ ...each, generations: count })),
    incidents: incidents
      .entries()
      .map(([{ what }, count]) => ({ what, count }))
      .sort((a, b) => (a.what < b.what ? -1 : 1)),
  };
}

function failureOf(entry: EntryOf<'stage.finished'>, armOf: (slot: string) => string): Failure {
  const cause = entry.result.kind === 'failure' ? entry.result.signals.cause : 'none';
  return { arm: armOf(entry.slot), stage: entry.stage, cause, attribution: 'pending' };
}

/** DESIGN §9: that the process is gone is infrastructure by itself, without an attribution of its own. */
function goneProcess(arm: string): Failure {
  return { arm, stage: 'generate', cause: 'process_gone', attribution: 'infrastructure' };
}

/** What happened beside the plan, without arm or outcome (law 8). */
function incidentOf(entry: Entry): string | null {
  switch (entry.type) {
    case 'gate.refused':
      return 'gate refusals';
    case 'run.paused':
      return PLANNED_ENDS.has(entry.reason) ? null : `sessions ended by ${entry.reason.replaceAll('_', ' ')}`;
    case 'service.stopped':
      return entry.reason === 'done' || entry.reason === 'run_ended'
        ? null
        : `services stopped: ${entry.reason.replaceAll('_', ' ')}`;
    case 'attempt.recovered':
      return entry.evidence.reason === 'abandoned' ? 'attempts given up by a second stop or a fault' : null;
    case 'attribution.recorded':
      if (entry.late) return 'attributions recorded after unblinding, which change nothing';
      return entry.by === 'adjudicator' ? 'attributions by an adjudicator' : null;
    default:
      return null;
  }
}

/** Counts equal keys. */
class Counter<Key extends object> {
  readonly #counts = new Map<string, [Key, number]>();

  add(key: Key): void {
    const name = JSON.stringify(key);
    const counted = this.#counts.get(name);
    if (counted === undefined) this.#counts.set(name, [key, 1]);
    else counted[1]++;
  }

  entries(): readonly (readonly [Key, number])[] {
    return [...this.#counts.values()];
  }
}
