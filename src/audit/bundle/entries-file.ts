import type { BareRow } from '../../ledger/chain.js';
import { MAX_BODY_BYTES } from '../../ledger/codec.js';
import type { Findings } from '../finding.js';
import { type Region, RegionCursor } from './region.js';

const MAX_NOTED = 1000;

/** Reads `entries.jsonl`. What is wrong with its form is found once, however often it is read. */
export class EntriesFile {
  readonly #region: Region;
  readonly #findings: Findings;
  /** Lines whose fault was noted. */
  readonly #noted = new Set<number>();

  constructor(region: Region, findings: Findings) {
    this.#region = region;
    this.#findings = findings;
  }

  /** The bodies of entries by their lines; a body is valid until the next row. A line that is too long is passed over. */
  *rows(from = 0): Generator<BareRow> {
    const cursor = new RegionCursor(this.#region);
    for (let seq = 0; cursor.left > 0; seq++) {
      const body = cursor.line(MAX_BODY_BYTES);
      if (body !== null) {
        if (seq >= from) yield { seq, body };
      } else if (cursor.left > MAX_BODY_BYTES) {
        this.#fault(seq, `the line has more than ${MAX_BODY_BYTES} bytes`);
        cursor.skipLine();
      } else {
        this.#fault(seq, 'the last line does not end');
        const rest = cursor.take(cursor.left);
        if (rest !== null && seq >= from) yield { seq, body: rest };
      }
    }
  }

  #fault(seq: number, message: string): void {
    if (this.#noted.has(seq) || this.#noted.size >= MAX_NOTED) return;
    this.#noted.add(seq);
    this.#findings.add({ code: 'BUNDLE_FORM', where: { seq, file: this.#region.path }, message });
  }
}
