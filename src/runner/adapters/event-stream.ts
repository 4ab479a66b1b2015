/** One event of a stream: its data, and where the stream is after the blank line that ends it. */
export interface StreamEvent {
  readonly data: Buffer;
  /** Offset in bytes from the beginning of the stream. */
  readonly end: number;
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf);
const DATA = Buffer.from('data');

/**
 * Splits a `text/event-stream` into events (WHATWG HTML, section 9.2.6), in whatever pieces it comes. It works on bytes,
 * so that neither a character nor a line need be whole in a piece, and it knows where each event ends, on which the
 * recomputation of a stop rests. A line ends with LF or CR LF; a CR alone, which no server sends, ends none. What follows
 * the last blank line is no event.
 */
export class EventSplitter {
  /** Parts of the line that is not complete. */
  #line: Buffer[] = [];
  /** Data lines of the event that is not complete. */
  #data: Buffer[] = [];
  #offset = 0;
  #isFirstLine = true;

  /** The events that a further piece of the stream completes. */
  *feed(piece: Buffer): Generator<StreamEvent> {
    let start = 0;
    for (let at = piece.indexOf(LF); at !== -1; at = piece.indexOf(LF, start)) {
      const line = this.#endLine(piece.subarray(start, at));
      this.#offset += at + 1 - start;
      start = at + 1;
      if (line.length > 0) this.#takeField(line);
      else {
        const data = this.#data;
        this.#data = [];
        if (data.length > 0) yield { data: joinLines(data), end: this.#offset };
      }
    }
    if (start === piece.length) return;
    this.#line.push(piece.subarray(start));
    this.#offset += piece.length - start;
  }

  #endLine(rest: Buffer): Buffer {
    let line = rest;
    if (this.#line.length > 0) {
      line = Buffer.concat([...this.#line, rest]);
      this.#line = [];
    }
    if (this.#isFirstLine && line.subarray(0, 3).equals(BYTE_ORDER_MARK)) line = line.subarray(3);
    this.#isFirstLine = false;
    return line.at(-1) === CR ? line.subarray(0, -1) : line;
  }

  /** Only data counts: comments, names, ids and reconnection times say nothing of an answer. */
  #takeField(line: Buffer): void {
    const colon = line.indexOf(COLON);
    const name = colon === -1 ? line : line.subarray(0, colon);
    if (!name.equals(DATA)) return;
    const value = colon === -1 ? Buffer.alloc(0) : line.subarray(colon + 1);
    this.#data.push(value[0] === SPACE ? value.subarray(1) : value);
  }
}

function joinLines([first = Buffer.alloc(0), ...rest]: readonly Buffer[]): Buffer {
  return rest.length === 0 ? first : Buffer.concat([first, ...rest.flatMap((line) => [Buffer.of(LF), line])]);
}
