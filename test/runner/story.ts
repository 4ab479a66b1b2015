import type { Entry, EntryOf } from '../../src/ledger/entries/entry.js';
import type { Trial } from './fixture.js';

/** What the ledger says of a task's one slot: each entry as a short text, in order. */
export async function story(plan: Trial, task: string): Promise<string[]> {
  const entries = await plan.entries();
  const slot = entries.find((one) => one.type === 'attempt.started' && one.key.task === task);
  if (slot?.type !== 'attempt.started') return [];
  return entries.flatMap((entry) => ('slot' in entry && entry.slot === slot.slot ? [brief(entry)] : []));
}

function brief(entry: Entry): string {
  switch (entry.type) {
    case 'attempt.started':
      return `started ${entry.kind}`;
    case 'stage.finished': {
      const { stage, result } = entry;
      return `${stage} ${result.kind}${result.kind === 'failure' ? ` ${observed(result.signals)}` : ''}`;
    }
    case 'attempt.recovered':
      return `recovered ${entry.found} ${entry.evidence.reason}`;
    case 'attribution.recorded':
      return `${entry.attribution} by ${entry.rule}`;
    case 'attempt.finished':
      return `finished ${entry.outcome}`;
    case 'slot.settled':
      return `settled ${entry.value} on ${entry.basis.kind}`;
    case 'slot.unresolved':
      return `unresolved ${entry.reason}`;
    default:
      return entry.type;
  }
}

type FailureSignals = Extract<EntryOf<'stage.finished'>['result'], { kind: 'failure' }>['signals'];

export function observed(signals: FailureSignals): string {
  const { phase, cause, http_status, embedded_status, exit_status, signal, service_alive } = signals;
  if (service_alive === null) return `${phase} ${cause} ${exit_status ?? signal ?? '-'}`;
  return `${phase} ${cause} ${http_status ?? '-'}/${embedded_status ?? '-'} ${service_alive ? 'alive' : 'dead'}`;
}

export const settled = (value: number): readonly string[] => [
  'started first',
  'generate candidate',
  'grade report',
  'finished report',
  `settled ${value} on report`,
];

/** A failure that no rule attributes. */
export const undetermined = (signals: string): readonly string[] => [
  'started first',
  `generate failure ${signals}`,
  'undetermined by null',
  'finished failure',
  'unresolved undetermined',
];

/** An infrastructure failure, and then what `after` says. */
export const replaced = (signals: string, rule: string, after: readonly string[]): readonly string[] => [
  'started first',
  `generate failure ${signals}`,
  `infrastructure by ${rule}`,
  'finished failure',
  'started replacement',
  ...after,
];

/** The same infrastructure failure in the first attempt and in its replacement. */
export const twice = (signals: string, rule: string): readonly string[] =>
  replaced(signals, rule, [
    `generate failure ${signals}`,
    `infrastructure by ${rule}`,
    'finished failure',
    'unresolved limit_reached',
  ]);
