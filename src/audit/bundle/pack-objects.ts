import { type Digest, hexOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { assertContent } from '../../ledger/objects.js';
import { DigestTable } from '../digest-table.js';
import type { Findings } from '../finding.js';
import type { Found, ObjectShelf, ObjectSource } from '../objects.js';
import type { Disclosure } from './disclosure.js';
import { MAX_HEADER_BYTES, parseRecordHeader, type RecordHeader } from './pack-format.js';
import { type Region, RegionCursor } from './region.js';

const READ_AGAIN_BYTES = 1 << 16;

/**
 * Reads an object pack in the order in which entries mention its objects, which is its own: one pass from its beginning
 * to its end. A record that comes before it is mentioned is remembered by its place.
 */
export class PackObjects implements ObjectSource {
  readonly #region: Region;
  readonly #findings: Findings;
  readonly #disclosure: Disclosure | null;
  readonly #disclosed = new Set<Digest>();
  readonly #cursor: RegionCursor;
  /** Places of records that were passed over. */
  readonly #strays = new DigestTable();
  /** Digests of the schemas that lead the pack. */
  readonly #leading = new Set<string>();
  #lastTaken = -1;
  #inOrder = true;
  #broken = false;
  #redacted = 0;

  constructor(region: Region, findings: Findings, disclosure: Disclosure | null) {
    this.#region = region;
    this.#findings = findings;
    this.#disclosure = disclosure;
    this.#cursor = new RegionCursor(region);
  }

  /** Redacted records that were met so far; all of them after {@link conclude}. */
  get redacted(): number {
    return this.#redacted;
  }

  /** Whether an object's record is redacted although its content was disclosed. */
  isDisclosed(digest: Digest): boolean {
    return this.#disclosed.has(digest);
  }

  /**
   * The bytes of a report schema, which lie before all objects; null when the next record is another one or a redacted one.
   *
   * @throws {BoundbookError} OBJECT_ALTERED.
   */
  lead(digest: Digest): Buffer | null {
    const place = this.#cursor.position;
    const redacted = this.#redacted;
    const header = this.#nextHeader();
    if (header?.hex !== hexOf(digest) || header.commitment !== null) {
      this.#cursor.rewind(place);
      this.#redacted = redacted;
      return null;
    }
    this.#leading.add(header.hex);
    this.#lastTaken = place;
    const bytes = this.#contentOf(header);
    if (bytes !== null) assertContent(digest, bytes);
    return bytes;
  }

  /** @throws {BoundbookError} OBJECT_ALTERED, FILE_UNREADABLE. */
  take(digest: Digest): Found {
    const hex = hexOf(digest);
    const stray = this.#strays.size === 0 ? undefined : this.#strays.get(digest);
    if (stray !== undefined) return this.#takeAt(digest, stray);
    for (let place = this.#cursor.position; ; place = this.#cursor.position) {
      const header = this.#nextHeader();
      if (header === null) return { state: 'missing' };
      if (header.hex === hex) {
        this.#lastTaken = place;
        return this.#deliver(digest, header, place, () => this.#contentOf(header));
      }
      if (this.#strays.get(`sha256:${header.hex}`) === undefined)
        this.#strays.set(`sha256:${header.hex}`, place);
      this.#passContent(header);
    }
  }

  again(digest: Digest, at: number): Buffer {
    const found = this.#readAt(digest, at);
    if (found.state === 'here') return found.bytes;
    throw new BoundbookError('OBJECT_MISSING', `the pack has no object ${digest} any more`);
  }

  /** Judges what the pack holds beside the objects that were taken. */
  conclude(shelf: ObjectShelf): void {
    const { path } = this.#region;
    const clean = this.#strays.size === 0 && this.#cursor.left === 0;
    if (!clean && !this.#broken) this.#explain(shelf);
    if (this.#inOrder) return;
    this.#findings.add({
      code: 'BUNDLE_FORM',
      where: { file: path },
      message: 'objects are not in the order in which entries mention them',
    });
  }

  /** Reads all records once more, to name those that are too many. */
  #explain(shelf: ObjectShelf): void {
    this.#cursor.rewind(0);
    this.#redacted = 0;
    const met = new DigestTable();
    while (this.#cursor.left > 0) {
      const header = this.#nextHeader();
      if (header === null) return;
      const object: Digest = `sha256:${header.hex}`;
      const where = { file: this.#region.path, object };
      if (met.get(object) !== undefined) {
        const message = `the object ${object} is in the pack more than once`;
        this.#findings.add({ code: 'BUNDLE_FORM', where, message });
      } else if (!shelf.isNamed(header.hex) && !this.#leading.has(header.hex)) {
        const message = `the object ${object} is in the pack and no entry names it`;
        this.#findings.add({ code: 'OBJECT_ORPHAN', where, message });
      }
      met.set(object, 0);
      this.#passContent(header);
    }
  }

  #takeAt(digest: Digest, place: number): Found {
    if (place < this.#lastTaken) this.#inOrder = false;
    return this.#readAt(digest, place);
  }

  #readAt(digest: Digest, place: number): Found {
    const cursor = new RegionCursor(this.#region, READ_AGAIN_BYTES);
    cursor.skip(place);
    const line = cursor.line(MAX_HEADER_BYTES);
    const header = line === null ? null : parseRecordHeader(line.toString('latin1'));
    if (header === null || header.hex !== hexOf(digest)) return { state: 'missing' };
    return this.#deliver(digest, header, place, () => cursor.take(header.length));
  }

  #deliver(digest: Digest, header: RecordHeader, place: number, content: () => Buffer | null): Found {
    if (header.commitment !== null) {
      const bytes = this.#disclosure?.contentOf(header) ?? null;
      if (bytes !== null) this.#disclosed.add(digest);
      return bytes === null ? { state: 'redacted' } : { state: 'here', bytes, at: place };
    }
    const bytes = content();
    if (bytes === null) return { state: 'missing' };
    assertContent(digest, bytes);
    return { state: 'here', bytes, at: place };
  }

  /** The header at the cursor, behind which the cursor stands then; null at the end, or where the pack is broken. */
  #nextHeader(): RecordHeader | null {
    if (this.#broken || this.#cursor.left === 0) return null;
    const at = this.#cursor.position;
    const line = this.#cursor.line(MAX_HEADER_BYTES);
    const header = line === null ? null : parseRecordHeader(line.toString('latin1'));
    if (header === null) this.#break(at, 'no record begins there');
    else if (header.commitment !== null) this.#redacted++;
    return header;
  }

  #contentOf(header: RecordHeader): Buffer | null {
    const at = this.#cursor.position;
    const bytes = this.#cursor.take(header.length);
    if (bytes === null || !this.#endsRecord()) {
      this.#break(at, `the object ${header.hex} does not end after ${header.length} bytes`);
    }
    return bytes;
  }

  #passContent(header: RecordHeader): void {
    if (header.commitment !== null) return;
    const at = this.#cursor.position;
    this.#cursor.skip(header.length);
    if (!this.#endsRecord()) {
      this.#break(at, `the object ${header.hex} does not end after ${header.length} bytes`);
    }
  }

  #endsRecord(): boolean {
    return this.#cursor.line(0) !== null;
  }

  #break(at: number, what: string): void {
    this.#broken = true;
    const message = `the pack cannot be read behind byte ${at}: ${what}`;
    this.#findings.add({ code: 'BUNDLE_FORM', where: { file: this.#region.path }, message });
  }
}
