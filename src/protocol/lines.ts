export interface Position {
  /** 1-based. */
  readonly line: number;
  /** 1-based, in characters (code points). */
  readonly column: number;
}

/** Turns offsets of a text into lines and columns. Lines end with LF, CR LF or CR. */
export class LineIndex {
  readonly #text: string;
  readonly #starts: readonly number[];

  constructor(text: string) {
    this.#text = text;
    const starts = [0];
    for (const match of text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length);
    this.#starts = starts;
  }

  /** The position of an offset in UTF-16 code units. */
  at(offset: number): Position {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const before = this.#text.slice(this.#starts[low] ?? 0, offset);
    return { line: low + 1, column: Array.from(before).length + 1 };
  }
}
