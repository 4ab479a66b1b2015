import { BoundbookError } from '../core/errors.js';
import type { Book } from '../ledger/book.js';
import { decideCheckpoint, healNotes, writtenEntry } from '../ledger/checkpoints.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import { writeNote } from '../ledger/note-files.js';
import type { LedgerObject } from '../ledger/objects.js';
import type { LedgerStore } from '../ledger/store.js';
import type { SignerKey } from '../signing/keys.js';
import type { Journal } from './journal.js';

/** Attempts started between two checkpoints, when the protocol does not declare it. */
const DEFAULT_EVERY = 1000;

export interface SessionCheckpointsSetting {
  readonly book: Book<LedgerStore>;
  readonly journal: Journal;
  /** null: the entries have no note. */
  readonly key: SignerKey | null;
  /** Time-stamp tokens at hand that no entry named; see `unnamedTokens`. */
  readonly tokens: () => Promise<readonly LedgerObject[]>;
  readonly say: (line: string) => void;
  /** The ledger took no checkpoint. */
  readonly fault: (error: unknown) => void;
}

/**
 * The checkpoints of a session: one at its start, one every so many attempts started, one at its end. Those in between
 * share a commit with what the workers record and keep nobody waiting.
 */
export class SessionCheckpoints {
  readonly #setting: SessionCheckpointsSetting;
  readonly #every: number;
  readonly #underWay = new Set<Promise<void>>();
  #started = 0;
  #last: EntryOf<'checkpoint'> | null = null;

  constructor(setting: SessionCheckpointsSetting) {
    this.#setting = setting;
    this.#every = setting.book.context.protocol.checkpoints?.every_attempts ?? DEFAULT_EVERY;
  }

  /** The newest one of this session. */
  get last(): EntryOf<'checkpoint'> | null {
    return this.#last;
  }

  /** The first one, and the files that an earlier session was kept from writing. @throws {BoundbookError} as the store. */
  async begin(): Promise<void> {
    await this.#write();
    await this.#quietly('an older note', () => healNotes(this.#setting.book));
  }

  /** Called when the start of an attempt is durable. */
  attemptStarted(): void {
    this.#started++;
    if (this.#started % this.#every !== 0) return;
    const writing = this.#write()
      .catch(this.#setting.fault)
      .finally(() => this.#underWay.delete(writing));
    this.#underWay.add(writing);
  }

  /** The last one, when those under way are done. @throws {BoundbookError} as the store. */
  async end(): Promise<void> {
    await Promise.all(this.#underWay);
    await this.#write();
  }

  async #write(): Promise<void> {
    const { book, journal, key } = this.#setting;
    const tokens = await this.#tokens();
    const { entries } = await journal.decide(decideCheckpoint(book, { key, tokens }));
    const entry = writtenEntry(entries);
    if (this.#last === null || this.#last.seq < entry.seq) this.#last = entry;
    await this.#quietly(`checkpoints/${entry.size}.note`, () => writeNote(book.folder, entry));
  }

  async #tokens(): Promise<readonly LedgerObject[]> {
    try {
      return await this.#setting.tokens();
    } catch (error) {
      this.#setting.say(`no time-stamp token is named: ${messageOf(error)}`);
      return [];
    }
  }

  /** The entry holds the note, so that a file that cannot be written is made up for later. */
  async #quietly(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#setting.say(`${what} was not written and will be by the next run: ${messageOf(error)}`);
    }
  }
}

function messageOf(error: unknown): string {
  if (error instanceof BoundbookError) return error.message;
  throw error;
}
