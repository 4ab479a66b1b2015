import { createWriteStream, type WriteStream } from 'node:fs';

/** A log that stops growing at a cap. What comes later is read and dropped, so that the writer never blocks. */
export class CappedFile {
  readonly #stream: WriteStream;
  readonly #cap: number;
  #size = 0;
  #tail = Buffer.alloc(0);

  constructor(path: string, cap: number) {
    this.#cap = cap;
    this.#stream = createWriteStream(path, { flags: 'a' });
    // A full disk must not end the run through a log.
    this.#stream.on('error', () => undefined);
  }

  readonly write = (chunk: Buffer): void => {
    this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-2000);
    if (this.#size >= this.#cap) return;
    const kept = chunk.subarray(0, this.#cap - this.#size);
    this.#size += kept.length;
    this.#stream.write(kept);
    if (this.#size >= this.#cap) this.#stream.write(`\n[cut at ${this.#cap} bytes]\n`);
  };

  /** The last lines, for an error message. */
  tail(): string {
    return this.#tail.toString('utf8').trim().split('\n').slice(-5).join('\n');
  }

  close(): void {
    this.#stream.end();
  }
}
