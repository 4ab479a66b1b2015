import type { Digest } from '../core/digest.js';
import { ObjectStream } from './object-stream.js';
import type { Found, ObjectSource } from './objects.js';
import type { AuditReader } from './reader.js';

/** The objects of a ledger's folder: quick for those that come in the order in which they were written. */
export class FolderObjects implements ObjectSource {
  readonly #reader: AuditReader;
  readonly #stream: ObjectStream;

  constructor(reader: AuditReader) {
    this.#reader = reader;
    this.#stream = new ObjectStream(reader, reader);
  }

  take(digest: Digest): Found {
    const bytes = this.#stream.findObject(digest);
    return bytes === null ? { state: 'missing' } : { state: 'here', bytes, at: 0 };
  }

  again(digest: Digest): Buffer {
    return this.#reader.getObject(digest);
  }
}
