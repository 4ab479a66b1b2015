import { forbid, type Violation } from '../attempts/violation.js';
import type { Entry, EntryOf } from './entries/entry.js';
import { firstOpeningFault, type Restoration, reopeningFault, restorationOf } from './incarnations.js';
import type { LedgerIdentity } from './origin.js';
import type { PlanContext } from './plan-index.js';

/** One member for each field of an {@link OpeningBook}. */
export interface OpeningBookSnapshot {
  readonly opened: EntryOf<'ledger.opened'> | null;
  readonly reopened: readonly EntryOf<'ledger.opened'>[];
  readonly isHead: boolean;
}

/** What a ledger belongs to and carries, and how older copies of it were put back. */
export class OpeningBook {
  #opened: EntryOf<'ledger.opened'> | null = null;
  readonly #reopened: EntryOf<'ledger.opened'>[] = [];
  /** Nothing but the opening and what it carries was met so far. */
  #isHead = true;

  snapshot(): OpeningBookSnapshot {
    return { opened: this.#opened, reopened: this.#reopened, isHead: this.#isHead };
  }

  restore({ opened, reopened, isHead }: OpeningBookSnapshot): void {
    this.#opened = opened;
    this.#reopened.push(...reopened);
    this.#isHead = isHead;
  }

  /** The first entry. */
  get opened(): EntryOf<'ledger.opened'> | null {
    return this.#opened;
  }

  /** The openings after the first: one for each older copy that was put back. */
  get reopened(): readonly EntryOf<'ledger.opened'>[] {
    return this.#reopened;
  }

  /** Older copies that were put back, and what was lost by it. */
  get restorations(): readonly Restoration[] {
    return this.#reopened.flatMap((entry) => restorationOf(entry) ?? []);
  }

  /** Which tree the entries belong to now; null before the first. */
  get identity(): LedgerIdentity | null {
    const latest = this.#reopened.at(-1) ?? this.#opened;
    return latest === null ? null : { ledger: latest.ledger, incarnation: latest.incarnation };
  }

  /** To be told of every entry before it is taken. */
  met({ seq, type }: Pick<Entry, 'seq' | 'type'>): void {
    if (seq > 0 && type !== 'slot.carried') this.#isHead = false;
  }

  open(entry: EntryOf<'ledger.opened'>, context: PlanContext): Violation | null {
    if (this.#opened !== null) return this.#reopen(entry, this.#opened);
    this.#opened = entry;
    const fault = firstOpeningFault(entry);
    if (fault !== null) return forbid('law 1', fault);
    const { plan } = context;
    if (entry.plan.count !== plan.count || entry.plan.digest !== plan.digest) {
      return forbid(
        'law 1',
        `it was opened for another plan (${entry.plan.count} slots, ${entry.plan.digest})`,
      );
    }
    return foreignFault(entry, context);
  }

  /** A slot that was closed under the superseded plan stands at the head of the ledger or nowhere (P22). */
  carryFault(): Violation | null {
    if (this.#opened === null || this.#opened.carries === null)
      return forbid('P22', 'the opening of this ledger carries nothing');
    return this.#isHead ? null : forbid('P22', 'slots are carried directly after the opening of the ledger');
  }

  /** An older copy was put back: what came after it and was known outside is lost, and is said to be. */
  #reopen(entry: EntryOf<'ledger.opened'>, first: EntryOf<'ledger.opened'>): Violation | null {
    const { restored, seq } = entry;
    if (restored === null) return forbid('law 1', 'the ledger was opened before');
    const fault = reopeningFault(this.#reopened.at(-1) ?? first, entry, restored, seq);
    if (fault !== null) return forbid('law 4', fault);
    this.#reopened.push(entry);
    return null;
  }
}

/** What names a manifest names that of the plan. */
export function foreignFault(
  { manifest }: { readonly manifest: string },
  context: PlanContext,
): Violation | null {
  return manifest === context.manifest ? null : forbid('law 1', `it belongs to the manifest ${manifest}`);
}
