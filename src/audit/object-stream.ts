import { type Digest, hexOf } from '../core/digest.js';
import { assertContent } from '../ledger/objects.js';

/** Objects in the order in which they were written; nothing about them is trusted. */
export interface ObjectPages {
  /** The next objects after a position. An empty page is the end. */
  pageAfter(position: number, count: number): readonly StreamedObject[];
}

export interface StreamedObject {
  readonly position: number;
  /** 64 hexadecimal digits. */
  readonly hex: string;
  /** null when it is larger than an object in the table may be. */
  readonly bytes: Buffer | null;
}

/** Finds any object by its digest. */
export interface ObjectLookup {
  /** The bytes, checked against the digest; null when there is none. @throws {BoundbookError} OBJECT_ALTERED and the like. */
  findObject(digest: Digest): Buffer | null;
}

const PAGE = 256;
/** How many objects are held that no entry has asked for yet. */
const WINDOW = 1024;

/**
 * Objects are written with the entries that name them, so a replay meets them in nearly the same order: reading them one
 * after the other is several times faster than looking each one up. What is not met in a small window is looked up.
 */
export class ObjectStream implements ObjectLookup {
  readonly #pages: ObjectPages;
  readonly #lookup: ObjectLookup;
  readonly #window = new Map<string, Buffer>();
  #position = 0;
  #ended = false;

  constructor(pages: ObjectPages, lookup: ObjectLookup) {
    this.#pages = pages;
    this.#lookup = lookup;
  }

  /** @throws {BoundbookError} OBJECT_ALTERED, and as the look-up. */
  findObject(digest: Digest): Buffer | null {
    const hex = hexOf(digest);
    if (!this.#window.has(hex)) this.#advance();
    const bytes = this.#window.get(hex);
    if (bytes === undefined) return this.#lookup.findObject(digest);
    this.#window.delete(hex);
    assertContent(digest, bytes);
    return bytes;
  }

  #advance(): void {
    if (this.#ended || this.#window.size >= WINDOW) this.#forget();
    if (this.#ended) return;
    const page = this.#pages.pageAfter(this.#position, PAGE);
    this.#ended = page.length === 0;
    for (const { position, hex, bytes } of page) {
      this.#position = position;
      if (bytes !== null) this.#window.set(hex, bytes);
    }
  }

  /** Lets go of what was read long ago and not asked for. */
  #forget(): void {
    for (const hex of this.#window.keys()) {
      if (this.#window.size <= WINDOW / 2) return;
      this.#window.delete(hex);
    }
  }
}
