import type { JsonObject } from '../core/json.js';
import type { Book } from '../ledger/book.js';
import type { StopCause } from './stop.js';

/** What a session says at its end. Coverage and work, never an outcome by arm (law 8). */
export interface RunSummary {
  readonly reason: StopCause['reason'];
  readonly detail: string | null;
  /** What the command ends with; null when the session did what it was asked to. */
  readonly error: StopCause['error'];
  readonly text: string;
  readonly json: JsonObject;
}

export interface SummaryFacts {
  readonly book: Book;
  readonly session: string;
  readonly cause: StopCause;
  readonly selected: number;
  readonly done: number;
  /** Slots that this session closed. */
  readonly closed: number;
  readonly recovered: number;
  readonly seconds: number;
  /** Slots that a living other process has under way. */
  readonly elsewhere: number;
}

export function summarize(facts: SummaryFacts): RunSummary {
  const { book, session, cause, selected, done, closed, recovered, seconds, elsewhere } = facts;
  const { fold } = book;
  const slots = fold.slots.total();
  const { size, leaf, root } = book.head();
  const next = nextStep(facts);
  const json: JsonObject = {
    manifest: `manifests/${book.stored.file}`,
    digest: book.manifestDigest,
    session,
    reason: cause.reason,
    detail: cause.detail,
    selected: { slots: selected, done },
    closed_now: closed,
    recovered_attempts: recovered,
    under_way_elsewhere: elsewhere,
    slots: { ...slots },
    attempts: { ...fold.attempts },
    seconds,
    head: { size, leaf, root },
    next,
  };
  const { first, replacement, regrade } = fold.attempts;
  const rows: readonly (readonly [string, string])[] = [
    ['manifest', `manifests/${book.stored.file}`],
    ['ended', cause.detail === null ? cause.reason : `${cause.reason}: ${cause.detail}`],
    ['slots', `${done} of ${selected} selected are closed, ${closed} in this session (${seconds} s)`],
    [
      'plan',
      `${slots.planned} slots: ${slots.settled} settled, ${slots.unresolved} unresolved, ${slots.open} open, ${slots.pending} pending`,
    ],
    [
      'attempts',
      `${first} first, ${replacement} replacements, ${regrade} regrades; ${recovered} recovered now`,
    ],
    ['head', `${size} entries, leaf ${leaf ?? 'none'}`],
    ['', `root ${root}`],
    ['next', next],
  ];
  const text = rows.map(([label, value]) => `${label.padEnd(12)}${value}`).join('\n');
  return { reason: cause.reason, detail: cause.detail, error: cause.error, text, json };
}

function nextStep({ book, cause, elsewhere }: SummaryFacts): string {
  const { pending, open } = book.fold.slots.total();
  if (cause.error !== null) return 'boundbook run, when the cause is dealt with';
  if (elsewhere > 0) return `boundbook run, when the other process is done with its ${elsewhere} slots`;
  if (pending + open > 0) return 'boundbook run, for the rest of the plan';
  return book.fold.outcomesVisible ? 'boundbook report' : 'boundbook unblind, then boundbook report';
}
