import type { Digest } from '../core/digest.js';
import type { EntryOf } from '../ledger/entries/entry.js';

/** A checkpoint entry as the proved order needs it. */
export interface CheckpointMark {
  /** Number of entries before it, so its own position. */
  readonly size: number;
  /** The root over those entries as the audit computed it, 64 hexadecimal digits. */
  readonly root: string;
  readonly time: string;
  /** Time of the entry before it. */
  readonly before: string;
  readonly note: string | null;
  /** Time-stamp tokens that it names. */
  readonly timestamps: readonly Digest[];
}

/** Remembers the checkpoints of a ledger while its entries go by. */
export class CheckpointTrail {
  readonly #marks: CheckpointMark[] = [];

  /**
   * @param tree over the entries before it
   * @param before time of the entry before it
   */
  take(
    { time, note, timestamps }: EntryOf<'checkpoint'>,
    tree: { readonly size: number; root(): Buffer },
    before: string,
  ): void {
    const { size } = tree;
    this.#marks.push({ size, root: tree.root().toString('hex'), time, before, note, timestamps });
  }

  /** By position. */
  get marks(): readonly CheckpointMark[] {
    return this.#marks;
  }
}
