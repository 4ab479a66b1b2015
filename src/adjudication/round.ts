import { randomBytes } from 'node:crypto';
import { type PutItem, putItems, secretCommitment, verdictCommitment } from '../attempts/adjudication.js';
import type { Attribution } from '../attempts/rules.js';
import { BoundbookError } from '../core/errors.js';
import { type Book, openBook } from '../ledger/book.js';
import { decodeEntry } from '../ledger/codec.js';
import type { Entry } from '../ledger/entries/entry.js';
import type { LedgerStore } from '../ledger/store.js';
import { type Closing, closingDrafts } from './closing.js';
import { type EvidencePiece, evidenceOf } from './evidence.js';
import { hostsIn } from './hosts.js';
import { identityOf } from './identity.js';
import { EvidenceMask } from './mask.js';
import { RoundFile, type SealedRound } from './round-file.js';

/** The share of items that are put twice when nobody says another. */
export const DEFAULT_DUPLICATES = 0.2;
/** What is no reason. */
export const MIN_REASON_WORDS = 3;
const MAX_REASON = 4000;
const MAX_ABANDONED = 1000;

export interface RoundOptions {
  /** Share of the items of a new round that are put twice, 0 to 1; at least one when it is above 0. */
  readonly duplicates?: number;
  /** Whether a new round asks again for slots that an adjudicator judged before. */
  readonly revises?: boolean;
  /** Whether only a round that is open will do. */
  readonly resume?: boolean;
}

/** How far a round is. No arm, no outcome. */
export interface RoundProgress {
  readonly round: string;
  /** Questions in all, duplicates among them. */
  readonly questions: number;
  readonly judged: number;
  readonly late: boolean;
  /** Whether outcomes are hidden from those who run the plan: the protocol hides them, and they are not unblinded yet. */
  readonly blinded: boolean;
}

/** One round of adjudication, held by this process alone. */
export class AdjudicationRound {
  readonly #book: Book<LedgerStore>;
  readonly #file: RoundFile;
  #sealed: SealedRound;
  readonly #items: readonly PutItem[];
  readonly #entries: ReadonlyMap<string, readonly Entry[]>;
  readonly #slots: ReadonlyMap<string, string>;
  readonly #mask: EvidenceMask;

  private constructor(book: Book<LedgerStore>, file: RoundFile, sealed: SealedRound) {
    const open = book.fold.adjudications.open;
    if (open === null) throw new BoundbookError('INTERNAL', 'a round without its opening');
    this.#book = book;
    this.#file = file;
    this.#sealed = sealed;
    const attempts = open.items.map(({ attempt }) => attempt);
    this.#items = putItems(sealed, attempts, open.duplicates);
    this.#slots = new Map(open.items.map(({ attempt, slot }) => [attempt, slot]));
    this.#entries = entriesBySlot(book.store, new Set(this.#slots.values()));
    const seeds = [...this.#entries.values()]
      .flat()
      .flatMap((entry) => (entry.type === 'attempt.started' ? [entry.sampling_seed] : []));
    this.#mask = new EvidenceMask(identityOf(book.context.protocol, seeds, hostsIn(book.store)));
  }

  /**
   * Goes on with the round that is open, or opens one over all slots that wait for a verdict.
   *
   * @returns null when no slot waits
   * @throws {BoundbookError} LEDGER_BUSY, ADJUDICATION_REFUSED, and as `openBook`.
   */
  static async open(
    root: string,
    selector: string | undefined,
    options: RoundOptions,
    now: () => string,
  ): Promise<AdjudicationRound | null> {
    const book = await openBook(root, selector, 'write', now);
    let file: RoundFile | null = null;
    try {
      file = await RoundFile.hold(book.folder);
      const sealed = await takeUp(book, file, options);
      if (sealed !== null) return new AdjudicationRound(book, file, sealed);
    } catch (error) {
      file?.release();
      book.close();
      throw error;
    }
    file.release();
    book.close();
    return null;
  }

  progress(): RoundProgress {
    const { fold } = this.#book;
    return {
      round: this.#sealed.round,
      questions: this.#items.length,
      judged: this.#judged().size,
      late: fold.unblinded !== null,
      blinded: !fold.outcomesVisible,
    };
  }

  /** Aliases in the order in which they are put, and whether each has a verdict. */
  questions(): readonly { readonly alias: string; readonly judged: boolean }[] {
    const judged = this.#judged();
    return this.#items.map(({ alias }) => ({ alias, judged: judged.has(alias) }));
  }

  /** @throws {BoundbookError} ADJUDICATION_REFUSED for an alias that is no item; OBJECT_MISSING, OBJECT_ALTERED. */
  evidence(alias: string): readonly EvidencePiece[] {
    const { attempt } = this.#item(alias);
    const entries = this.#entries.get(this.#slots.get(attempt) ?? '') ?? [];
    return evidenceOf(entries, attempt, this.#book.store, this.#mask);
  }

  /**
   * Commits a verdict under its alias. It is durable when this returns, and is never changed within the round.
   *
   * @throws {BoundbookError} USAGE for what is no reason; ADJUDICATION_REFUSED for an alias that is no item or has its
   * verdict.
   */
  async judge(alias: string, verdict: Attribution, reason: string): Promise<void> {
    this.#item(alias);
    const said = { verdict, reason: checkedReason(reason), nonce: randomBytes(32).toString('hex') };
    if (this.#judged().has(alias)) throw refused(`a verdict on ${alias} is committed already`, SECOND);
    const { round } = this.#sealed;
    const sealed = { ...this.#sealed, verdicts: { ...this.#sealed.verdicts, [alias]: said } };
    await this.#file.write(sealed);
    this.#sealed = sealed;
    this.#book.store.append([
      { type: 'verdict.committed', round, alias, commitment: verdictCommitment(round, alias, said) },
    ]);
  }

  /**
   * Opens all verdicts and applies them: from here on it is known whose they are.
   *
   * @throws {BoundbookError} ADJUDICATION_REFUSED when no verdict was given.
   */
  close(): Closing {
    const { fold, store } = this.#book;
    const { result } = store.transact(() => {
      const { drafts, closing } = closingDrafts(fold, this.#sealed, this.#items);
      return { drafts, result: closing };
    });
    this.#file.remove();
    return result;
  }

  end(): void {
    this.#file.release();
    this.#book.close();
  }

  #judged(): ReadonlySet<string> {
    return new Set(this.#book.fold.adjudications.open?.judged ?? []);
  }

  #item(alias: string): PutItem {
    const item = this.#items.find((one) => one.alias === alias);
    if (item === undefined) throw refused(`${JSON.stringify(alias)} is no item of this round`, LIST);
    return item;
  }
}

const LIST = '`boundbook adjudicate --list` lists the aliases.';
const SECOND = 'A later round with --revise can judge it again, as long as outcomes are not unblinded.';

/**
 * Gives the open round up: its verdicts are never opened, and every audit says so.
 *
 * @throws {BoundbookError} ADJUDICATION_REFUSED without an open round; USAGE; LEDGER_BUSY; and as `openBook`.
 */
export async function abandonRound(
  root: string,
  selector: string | undefined,
  reason: string,
  now: () => string,
): Promise<{ readonly round: string; readonly committed: number }> {
  const book = await openBook(root, selector, 'write', now);
  let file: RoundFile | null = null;
  try {
    file = await RoundFile.hold(book.folder);
    const abandoned = checkedReason(reason, 'Say why the verdicts are never opened.')
      .slice(0, MAX_ABANDONED)
      .toWellFormed();
    const { result } = book.store.transact(() => {
      const { open } = book.fold.adjudications;
      if (open === null) throw refused('no round of adjudication is open', 'boundbook adjudicate opens one.');
      const { round } = open;
      return {
        drafts: [
          { type: 'adjudication.closed' as const, round, verdicts: 0, pairs: 0, agreeing: 0, abandoned },
        ],
        result: { round, committed: open.judged.length },
      };
    });
    file.remove();
    return result;
  } finally {
    file?.release();
    book.close();
  }
}

/** The secret of the open round, or of a new one; null when there is nothing to judge. */
async function takeUp(
  book: Book<LedgerStore>,
  file: RoundFile,
  { duplicates: share = DEFAULT_DUPLICATES, revises = false, resume = false }: RoundOptions,
): Promise<SealedRound | null> {
  const { fold, store } = book;
  const open = fold.adjudications.open;
  if (open !== null) {
    const kept = await file.read();
    if (kept === null || secretCommitment(kept) !== open.commitment) {
      throw refused(
        `the secret of the round ${open.round} is not on this host`,
        'Go on where the round was opened, or give it up with `boundbook adjudicate --abandon REASON`.',
      );
    }
    const missing = open.judged.filter((alias) => kept.verdicts[alias] === undefined);
    if (missing.length === 0) return kept;
    throw refused(
      `verdicts that the ledger holds are missing beside the secret of the round ${open.round}`,
      'An older copy of the file was put back. Restore the newer one, or give the round up with --abandon.',
    );
  }
  // A process that was killed behind the last entry of a round left its secret.
  file.remove();
  if (resume) {
    const last = fold.adjudications.closed.at(-1);
    const hint = '`boundbook adjudicate` opens one.';
    throw refused(
      'no round of adjudication is open',
      last === undefined ? hint : `The round ${last.round} was closed by entry ${last.end}. ${hint}`,
    );
  }
  const items = [...fold.slots.judgeable(revises)];
  if (items.length === 0) return null;
  if (fold.amended !== null && fold.unblinded === null)
    throw refused('the plan was amended: its outcomes are carried as they are', 'Judge in the new revision.');
  const sealed: SealedRound = {
    round: randomBytes(16).toString('hex'),
    secret: randomBytes(32).toString('hex'),
    verdicts: {},
  };
  await file.write(sealed);
  store.transact(() => {
    const count = [...fold.slots.judgeable(revises)].length;
    return {
      drafts: [
        {
          type: 'adjudication.opened' as const,
          round: sealed.round,
          commitment: secretCommitment(sealed),
          items: count,
          duplicates: Math.min(count, Math.ceil(count * share)),
          revises,
        },
      ],
      result: null,
    };
  });
  return sealed;
}

/** In one pass: positions of slots' entries lie all over a ledger. */
function entriesBySlot(
  store: LedgerStore,
  slots: ReadonlySet<string>,
): ReadonlyMap<string, readonly Entry[]> {
  const found = new Map<string, Entry[]>();
  const member = Buffer.from('"slot":"');
  for (const { body } of store.rows()) {
    const at = body.indexOf(member);
    if (at === -1) continue;
    const slot = body.toString('latin1', at + member.length, at + member.length + 32);
    const decoded = slots.has(slot) ? decodeEntry(body) : null;
    if (decoded?.ok !== true) continue;
    const list = found.get(slot);
    if (list === undefined) found.set(slot, [decoded.entry]);
    else list.push(decoded.entry);
  }
  return found;
}

function checkedReason(reason: string, hint = 'Say what in the evidence decides.'): string {
  const trimmed = reason.trim().toWellFormed();
  const words = trimmed.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
  if (words >= MIN_REASON_WORDS && trimmed.length <= MAX_REASON) return trimmed;
  throw new BoundbookError(
    'USAGE',
    words < MIN_REASON_WORDS
      ? `a reason has at least ${MIN_REASON_WORDS} words`
      : `a reason has at most ${MAX_REASON} characters, not ${trimmed.length}`,
    { hint },
  );
}

function refused(message: string, hint: string): BoundbookError {
  return new BoundbookError('ADJUDICATION_REFUSED', message, { hint });
}
