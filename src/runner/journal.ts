import { step } from '../attempts/machine.js';
import type { SlotRules } from '../attempts/slot-state.js';
import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import type { Entry, EntryDraft } from '../ledger/entries/entry.js';
import { toSlotEvent } from '../ledger/entries/slot-event.js';
import type { LedgerFold } from '../ledger/fold.js';
import { GroupCommitter } from '../ledger/group-commit.js';
import type { LedgerObject } from '../ledger/objects.js';
import { MAX_INLINE_BYTES } from '../ledger/schema.js';
import type { Appended, Decide, LedgerStore } from '../ledger/store.js';

/**
 * The only way in which the runner writes: every entry about a slot is first put through the slot's state machine, so
 * that nothing unlawful is ever recorded, and it is acknowledged when it is durable. Entries of one turn of the event
 * loop share a commit.
 */
export class Journal {
  readonly fold: LedgerFold;
  readonly #store: LedgerStore;
  readonly #committer: GroupCommitter;

  /** @param fold follows the store: what other processes append reaches it before every decision. */
  constructor(store: LedgerStore, fold: LedgerFold) {
    this.fold = fold;
    this.#store = store;
    this.#committer = new GroupCommitter(store);
  }

  /** Appends entries that speak of no slot. @throws {BoundbookError} as the store. */
  async append(drafts: readonly EntryDraft[], objects: readonly LedgerObject[] = []): Promise<void> {
    await this.#committer.submit(drafts, objects);
  }

  /** Appends what is decided when the commit begins. @throws {BoundbookError} as the store. */
  decide<T>(decide: Decide<T>): Promise<Appended<T>> {
    return this.#committer.transact(decide);
  }

  /**
   * Appends entries about one slot, all or none, when they are the lawful continuation of what is there by then.
   *
   * @throws {BoundbookError} INTERNAL when they are not; as the store.
   */
  async record(
    rules: SlotRules,
    drafts: readonly EntryDraft[],
    objects: readonly LedgerObject[] = [],
  ): Promise<void> {
    const inline = await this.#writeLarge(objects);
    await this.#committer.transact(() => {
      const violation = this.#violation(rules, drafts);
      if (violation !== null) throw unlawful(violation);
      return { drafts, objects: inline, result: undefined };
    });
  }

  /**
   * Like {@link record} for what another process may do as well: when it was faster, nothing is written.
   *
   * @returns whether the entries are this caller's; a started attempt is durable then (law 2).
   */
  async claim(
    rules: SlotRules,
    drafts: readonly EntryDraft[],
    objects: readonly LedgerObject[],
  ): Promise<boolean> {
    const inline = await this.#writeLarge(objects);
    const { result } = await this.#committer.transact(() =>
      this.#violation(rules, drafts) === null && !this.fold.isSealed
        ? { drafts, objects: inline, result: true }
        : { drafts: [], result: false },
    );
    return result;
  }

  /** The bytes of an object. @throws {BoundbookError} OBJECT_MISSING, OBJECT_ALTERED. */
  object(digest: LedgerObject['digest']): Buffer {
    return this.#store.getObject(digest);
  }

  /** The entries from a position on, in order. @throws {BoundbookError} LEDGER_DAMAGED. */
  *entriesFrom(seq: number): Generator<Entry> {
    for (const { entry } of this.#store.entries(seq)) yield entry;
  }

  #violation(rules: SlotRules, drafts: readonly EntryDraft[]): string | null {
    let state = this.fold.slots.state(rules.slot);
    for (const draft of drafts) {
      const named = toSlotEvent(draft);
      if (named === null || named.slot !== rules.slot) return `${draft.type} is not about slot ${rules.slot}`;
      const result = step(state, named.event, rules);
      if (!result.ok) return `${result.violation.clause}: ${result.violation.message}`;
      state = result.state;
    }
    return null;
  }

  /** Large objects are made durable without blocking the loop; the transaction has nothing left to do for them. */
  async #writeLarge(objects: readonly LedgerObject[]): Promise<readonly LedgerObject[]> {
    const large = objects.filter(({ bytes }) => bytes.length > MAX_INLINE_BYTES);
    if (large.length === 0) return objects;
    for (const object of large) await this.#store.objectFolder.write(object);
    return objects.filter(({ bytes }) => bytes.length <= MAX_INLINE_BYTES);
  }
}

function unlawful(violation: string): BoundbookError {
  return new BoundbookError('INTERNAL', `an entry would break the rules: ${violation}`, {
    hint: 'Nothing was written. Please report this fault.',
    evidence: canonicalText(violation),
  });
}
