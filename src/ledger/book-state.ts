import type { LedgerRecord } from './chain.js';
import { checkpointFaults } from './checkpoint-entry.js';
import type { EntryOf } from './entries/entry.js';
import { LedgerFold } from './fold.js';
import { CompactRange } from './merkle.js';
import type { PlanContext } from './plan-index.js';
import { damageOf, type LedgerHead } from './reader.js';
import { NO_ENTRIES, type Tail, tailAfter } from './tail.js';

/** What follows a ledger entry by entry: the fold, the tree, the end. */
export class BookState {
  readonly fold: LedgerFold;
  readonly range: CompactRange;
  #tail: Tail;

  /** @param parts of the same position; without them it begins before the first entry */
  constructor(fold: LedgerFold, range = new CompactRange(), tail = NO_ENTRIES) {
    this.fold = fold;
    this.range = range;
    this.#tail = tail;
  }

  static empty(context: PlanContext): BookState {
    return new BookState(new LedgerFold(context));
  }

  /** The last entry that was taken. */
  get tail(): Tail {
    return this.#tail;
  }

  /**
   * Takes the next entry.
   *
   * @param file named in the error
   * @throws {BoundbookError} LEDGER_DAMAGED when the entry is unlawful, or a checkpoint that is not true.
   */
  take(record: LedgerRecord, file: string): void {
    const { entry } = record;
    const fault = entry.type === 'checkpoint' ? this.#faultOf(entry) : undefined;
    if (fault !== undefined) throw damageOf(file, { seq: entry.seq, what: `checkpoint: ${fault}` });
    this.#tail = tailAfter(record);
    this.range.append(record.leaf);
    const [violation] = this.fold.apply(entry);
    if (violation === undefined) return;
    const { seq, clause, message } = violation;
    throw damageOf(file, { seq, what: `against ${clause}: ${message}` });
  }

  head(): LedgerHead {
    const { leaf, time } = this.#tail;
    return {
      size: this.range.size,
      leaf: leaf?.toString('hex') ?? null,
      root: this.range.root().toString('hex'),
      time,
    };
  }

  #faultOf(entry: EntryOf<'checkpoint'>): string | undefined {
    return checkpointFaults(entry, this.range, this.fold.identity)[0];
  }
}
