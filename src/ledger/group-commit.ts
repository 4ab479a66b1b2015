import type { Entry, EntryDraft } from './entries/entry.js';
import type { LedgerObject } from './objects.js';
import { MAX_INLINE_BYTES } from './schema.js';
import type { Appended, Decide, LedgerStore } from './store.js';

interface Waiting {
  readonly decide: Decide<unknown>;
  readonly resolve: (appended: Appended<unknown>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers what is submitted in one turn of the event loop into one transaction. Nothing is acknowledged before its
 * commit; a fault of the transaction rejects everyone in it with the same error.
 */
export class GroupCommitter {
  readonly #store: LedgerStore;
  #waiting: Waiting[] = [];

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /**
   * Appends entries; those of one call stay together and in order.
   *
   * @throws {BoundbookError} as {@link LedgerStore.append}.
   */
  async submit(
    drafts: readonly EntryDraft[],
    objects: readonly LedgerObject[] = [],
  ): Promise<readonly Entry[]> {
    for (const object of objects) {
      // Written without blocking the loop; the transaction then has nothing left to do for it.
      if (object.bytes.length > MAX_INLINE_BYTES) await this.#store.objectFolder.write(object);
    }
    const small = objects.filter(({ bytes }) => bytes.length <= MAX_INLINE_BYTES);
    const { entries } = await this.transact(() => ({ drafts, objects: small, result: undefined }));
    return entries;
  }

  /**
   * {@link LedgerStore.transact} as part of the group. What other members of the group append in the same commit has not
   * reached the follower yet; those before it are in `own`.
   */
  transact<T>(decide: Decide<T>): Promise<Appended<T>> {
    return new Promise<Appended<T>>((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#flush());
      this.#waiting.push({ decide, resolve: (appended) => resolve(appended as Appended<T>), reject });
    });
  }

  #flush(): void {
    const group = this.#waiting;
    this.#waiting = [];
    try {
      const outcomes = this.#store.transactAll(group.map(({ decide }) => decide));
      for (const [i, outcome] of outcomes.entries()) {
        if (outcome.ok) group[i]?.resolve(outcome.appended);
        else group[i]?.reject(outcome.error);
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}
