import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { Findings, Place } from './finding.js';

/** Where objects come from: a ledger's folder, or a bundle. */
export interface ObjectSource {
  /** The bytes, checked against the digest; null when there is none. @throws {BoundbookError} OBJECT_ALTERED and the like. */
  findObject(digest: Digest): Buffer | null;
}

/**
 * Reads the objects that entries name. What is missing or altered is found once, at the entry that names it first; the
 * digests that were named are remembered, to tell orphans.
 */
export class ObjectShelf {
  readonly #source: ObjectSource;
  readonly #stream: ObjectSource;
  readonly #findings: Findings;
  /** By digest: whether the object is there and whole. */
  readonly #seen = new Map<Digest, boolean>();

  /**
   * @param source finds any object
   * @param stream quick for objects that are met for the first time, in about the order in which they were written
   */
  constructor(source: ObjectSource, findings: Findings, stream: ObjectSource = source) {
    this.#source = source;
    this.#stream = stream;
    this.#findings = findings;
  }

  /** The bytes of a named object; null when they are not there, which is then a finding. */
  read(digest: Digest, where: Place): Buffer | null {
    const known = this.#seen.get(digest);
    if (known === false) return null;
    const bytes = this.#find(known === undefined ? this.#stream : this.#source, digest, where);
    if (known === undefined || bytes === null) this.#seen.set(digest, bytes !== null);
    return bytes;
  }

  /** Checks a named object without using it. */
  check(digest: Digest, where: Place): void {
    if (!this.#seen.has(digest)) this.read(digest, where);
  }

  /** Whether an entry named the object with these 64 hexadecimal digits. */
  isNamed(hex: string): boolean {
    return this.#seen.has(`sha256:${hex}`);
  }

  /** Number of different objects that entries named. */
  get size(): number {
    return this.#seen.size;
  }

  #find(source: ObjectSource, digest: Digest, where: Place): Buffer | null {
    try {
      const bytes = source.findObject(digest);
      if (bytes !== null) return bytes;
      const message = `the ledger has no object ${digest}`;
      this.#findings.add({ code: 'OBJECT_MISSING', where: { ...where, object: digest }, message });
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      const code = error.code === 'OBJECT_ALTERED' ? 'OBJECT_ALTERED' : 'OBJECT_MISSING';
      this.#findings.add({
        code,
        where: { ...where, object: digest },
        message: error.message,
        ...(error.evidence === undefined ? {} : { evidence: error.evidence }),
      });
    }
    return null;
  }
}
