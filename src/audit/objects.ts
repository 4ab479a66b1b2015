import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { Entry } from '../ledger/entries/entry.js';
import { type Mention, mentionsOf, type ObjectRole } from '../ledger/mentions.js';
import { DigestTable } from './digest-table.js';
import type { Findings, Place } from './finding.js';

/** What became of an object that was looked for. */
export type Found =
  | {
      readonly state: 'here';
      readonly bytes: Buffer;
      /** A number by which its source finds it again. */
      readonly at: number;
    }
  | { readonly state: 'redacted' }
  | { readonly state: 'missing' };

/** Where objects come from: a ledger's folder, or a bundle. Bytes are checked against the digest. */
export interface ObjectSource {
  /** An object at its first mention; these come in the order of the entries. @throws {BoundbookError} OBJECT_ALTERED and the like. */
  take(digest: Digest): Found;
  /** One that was taken before. @throws {BoundbookError} as {@link take} */
  again(digest: Digest, at: number): Buffer;
}

const LOST = 0;
const REDACTED = 1;
/** What is there is kept as its source's number plus this. */
const HERE = 2;

/**
 * The objects that entries name. Each is taken from its source once, at the entry that names it first; what is missing or
 * altered is found there. The digests that were named are remembered, to tell orphans.
 */
export class ObjectShelf {
  readonly #source: ObjectSource;
  readonly #findings: Findings;
  readonly #seen = new DigestTable();
  readonly #redacted = new Map<ObjectRole, number>();
  /** Objects that the present entry named first: likely to be read. */
  readonly #fresh = new Map<Digest, Buffer>();

  constructor(source: ObjectSource, findings: Findings) {
    this.#source = source;
    this.#findings = findings;
  }

  /** Takes up everything that an entry names. */
  meet(entry: Entry): void {
    if (this.#fresh.size > 0) this.#fresh.clear();
    for (const mention of mentionsOf(entry)) {
      if (this.#seen.get(mention.digest) === undefined) this.#take(mention, entry);
    }
  }

  /** The bytes of a named object; null when they are not there: missing or altered, which is a finding, or redacted. */
  read(digest: Digest, where: Place): Buffer | null {
    const fresh = this.#fresh.get(digest);
    if (fresh !== undefined) return fresh;
    const seen = this.#seen.get(digest);
    if (seen === undefined || seen < HERE) return null;
    try {
      return this.#source.again(digest, seen - HERE);
    } catch (error) {
      this.#lose(digest, where, error);
      return null;
    }
  }

  isRedacted(digest: Digest): boolean {
    return this.#seen.get(digest) === REDACTED;
  }

  /** Number of redacted objects by what they were to the entry that named them first. */
  get redacted(): ReadonlyMap<ObjectRole, number> {
    return this.#redacted;
  }

  /** Whether an entry named the object with these 64 hexadecimal digits. */
  isNamed(hex: string): boolean {
    return this.#seen.get(`sha256:${hex}`) !== undefined;
  }

  /** Number of different objects that entries named. */
  get size(): number {
    return this.#seen.size;
  }

  #take({ digest, role, pointer }: Mention, entry: Entry): void {
    try {
      const found = this.#source.take(digest);
      if (found.state === 'here') {
        this.#seen.set(digest, HERE + found.at);
        this.#fresh.set(digest, found.bytes);
      } else if (found.state === 'redacted') {
        this.#seen.set(digest, REDACTED);
        this.#redacted.set(role, (this.#redacted.get(role) ?? 0) + 1);
      } else {
        this.#seen.set(digest, LOST);
        const message = `the ledger has no object ${digest}`;
        const where = { ...placeOf(entry, pointer), object: digest };
        this.#findings.add({ code: 'OBJECT_MISSING', where, message });
      }
    } catch (error) {
      this.#lose(digest, placeOf(entry, pointer), error);
    }
  }

  #lose(digest: Digest, where: Place, error: unknown): void {
    if (!(error instanceof BoundbookError)) throw error;
    this.#seen.set(digest, LOST);
    this.#findings.add({
      code: error.code === 'OBJECT_ALTERED' ? 'OBJECT_ALTERED' : 'OBJECT_MISSING',
      where: { ...where, object: digest },
      message: error.message,
      ...(error.evidence === undefined ? {} : { evidence: error.evidence }),
    });
  }
}

function placeOf(entry: Entry, pointer: string): Place {
  return { seq: entry.seq, ...('slot' in entry ? { slot: entry.slot } : {}), pointer };
}
