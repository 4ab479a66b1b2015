import type { JsonObject } from '../core/json.js';
import { labelled } from '../core/labelled.js';
import type { Book } from '../ledger/book.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import { notePath } from '../ledger/note-files.js';
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
  /** The fraction of stopped outputs that was to be generated again; null in a session that works on the plan. */
  readonly recheck: string | null;
  readonly selected: number;
  readonly done: number;
  /** Slots that this session closed. */
  readonly closed: number;
  readonly recovered: number;
  /** Attempts that this session gave up. */
  readonly abandoned: number;
  readonly seconds: number;
  /** Slots that a living other process has under way. */
  readonly elsewhere: number;
  /** The newest checkpoint of this session; null when none could be written. */
  readonly checkpoint: EntryOf<'checkpoint'> | null;
  /** What services did that speaks against what they answered. */
  readonly warnings: readonly string[];
}

export function summarize(facts: SummaryFacts): RunSummary {
  const { book, session, cause, selected, done, closed, recovered, abandoned, seconds, elsewhere } = facts;
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
    abandoned_attempts: abandoned,
    under_way_elsewhere: elsewhere,
    slots: { ...slots },
    attempts: { ...fold.attempts },
    ...(facts.recheck === null ? {} : { recheck: recheckJson(facts) }),
    seconds,
    warnings: [...facts.warnings],
    head: { size, leaf, root },
    checkpoint: checkpointJson(facts),
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
      `${first} first, ${replacement} replacements, ${regrade} regrades; ${recovered} recovered now, abandoned ${abandoned}`,
    ],
    ...(facts.recheck === null ? [] : [['recheck', recheckText(facts)] as const]),
    ...facts.warnings.map((line) => ['warning', line] as const),
    ['head', `${size} entries`],
    ['leaf', leaf ?? 'none'],
    ['root', root],
    ['checkpoint', checkpointText(facts)],
    ['next', next],
  ];
  return { reason: cause.reason, detail: cause.detail, error: cause.error, text: labelled(rows), json };
}

/** How many outputs were stopped, and what came of them, is an outcome (law 8). */
function recheckJson({ book }: SummaryFacts): JsonObject | null {
  const recheck = book.fold.rechecks.all.at(-1);
  if (recheck === undefined) return null;
  const { id, fraction, closed, stopped, sample, counts } = recheck;
  const shown = book.fold.outcomesVisible;
  return {
    id,
    fraction,
    closed,
    stopped: shown ? stopped.count : null,
    sample: shown ? sample.count : null,
    recovered: shown ? counts.recovered : null,
    not_recovered: shown ? counts.not_recovered : null,
    failed: shown ? counts.failed : null,
  };
}

function recheckText({ book }: SummaryFacts): string {
  const recheck = book.fold.rechecks.all.at(-1);
  if (recheck === undefined) return 'none was declared';
  const { fraction, closed, stopped, sample, counts } = recheck;
  const head = `${fraction} of the stopped outputs, ${closed ? 'done' : 'not finished'}`;
  return book.fold.outcomesVisible
    ? `${head}: ${sample.count} of ${stopped.count}; ${counts.recovered} recovered, ${counts.not_recovered} not, ${counts.failed} failed`
    : `${head}; what came of it is masked until unblind`;
}

function checkpointJson({ book, checkpoint }: SummaryFacts): JsonObject | null {
  if (checkpoint === null) return null;
  const { size, root, note } = checkpoint;
  return { size, root, note, file: note === null ? null : notePath(book.folder, size) };
}

function checkpointText({ book, checkpoint }: SummaryFacts): string {
  if (checkpoint === null) return 'none could be written';
  const { size, note } = checkpoint;
  return note === null
    ? `${size} entries, not signed (--key FILE signs it)`
    : `${size} entries, signed: ${notePath(book.folder, size)}`;
}

function nextStep({ book, cause, elsewhere, abandoned, recheck }: SummaryFacts): string {
  if (recheck !== null && book.fold.rechecks.open !== null)
    return `boundbook run --recheck-stopped ${recheck} goes on`;
  const { pending, open } = book.fold.slots.total();
  if (cause.reason === 'signal') {
    const costs = 'an abandoned attempt without a candidate is replaced once, and never again';
    return abandoned === 0 ? 'boundbook run goes on' : `boundbook run goes on; ${costs}`;
  }
  if (cause.error !== null) return 'boundbook run, when the cause is dealt with';
  if (elsewhere > 0) return `boundbook run, when the other process is done with its ${elsewhere} slots`;
  if (pending + open > 0) return 'boundbook run, for the rest of the plan';
  const waiting = [...book.fold.slots.judgeable(false)].length;
  if (!book.fold.outcomesVisible && waiting > 0)
    return `boundbook adjudicate: ${waiting} slots are undetermined; then boundbook unblind`;
  return book.fold.outcomesVisible ? 'boundbook report' : 'boundbook unblind, then boundbook report';
}
