import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { afterAll } from 'vitest';
import type { Region } from '../../src/audit/bundle/region.js';
import { BoundbookError } from '../../src/core/errors.js';

/** How a flipped byte came out. Nothing else may happen. */
export type Outcome =
  /** A finding, or a typed refusal. */
  | 'found'
  /** No finding, and the verdict claims less than that of the unchanged files: said by name. */
  | 'claims less'
  | 'unnoticed';

/** Counts flips by kind, prints the counts after the tests of a file, and keeps those that nobody noticed. */
export class Tally {
  readonly #counts = new Map<string, { found: number; less: number; excluded: Map<string, number> }>();
  readonly #unnoticed: string[] = [];

  constructor(what: string) {
    afterAll(() => console.log(`${what}\n${this.#table()}`));
  }

  count(kind: string, where: string, outcome: Outcome): void {
    const row = this.#row(kind);
    if (outcome === 'found') row.found++;
    else if (outcome === 'claims less') row.less++;
    else this.#unnoticed.push(`${kind}: ${where}`);
  }

  /** A byte that no hash covers by design. */
  exclude(kind: string, reason: string): void {
    const { excluded } = this.#row(kind);
    excluded.set(reason, (excluded.get(reason) ?? 0) + 1);
  }

  flips(kind: string): number {
    const { found, less } = this.#row(kind);
    return found + less;
  }

  /** The flips that were not noticed since it was asked last. */
  unnoticed(): readonly string[] {
    return this.#unnoticed.splice(0);
  }

  #row(kind: string) {
    const row = this.#counts.get(kind) ?? { found: 0, less: 0, excluded: new Map<string, number>() };
    this.#counts.set(kind, row);
    return row;
  }

  #table(): string {
    let total = 0;
    const lines = [...this.#counts].map(([kind, { found, less, excluded }]) => {
      total += found + less;
      const out = [...excluded].map(([reason, count]) => `; ${count} not covered: ${reason}`).join('');
      return `${String(found).padStart(8)} found${less > 0 ? `, ${less} claim less` : ''}  ${kind}${out}`;
    });
    return [...lines, `${String(total).padStart(8)} flips in all`].join('\n');
  }
}

/** What is flipped at a byte: its lowest bit, and another one that depends on the place alone. */
export function masksAt(place: number): readonly [number, number] {
  // The high bits of a multiplicative hash: every bit of a byte comes up, without a pattern in the text.
  return [1, 2 << ((Math.imul(place + 1, 0x9e3779b1) >>> 0) % 7)];
}

/** One of the two: each by turns. */
export function maskAt(place: number): number {
  return masksAt(place)[place % 2] ?? 1;
}

export function flipped(bytes: Uint8Array, place: number, mask: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[place] = (copy[place] ?? 0) ^ mask;
  return copy;
}

/** A file whose bytes are flipped in place, one after the other. */
export class FlippedFile {
  readonly bytes: Buffer;
  /** The whole file, for readers that take it open. */
  readonly region: Region;
  readonly #file: number;

  constructor(path: string) {
    this.bytes = readFileSync(path);
    this.#file = openSync(path, 'r+');
    this.region = { path, file: this.#file, start: 0, size: this.bytes.length };
  }

  flip(place: number, mask: number): void {
    writeSync(this.#file, Buffer.of((this.bytes[place] ?? 0) ^ mask), 0, 1, place);
  }

  restore(place: number): void {
    writeSync(this.#file, this.bytes, place, 1, place);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Every place, every mask; `judge` says whether it was noticed. */
export async function flipAll(
  path: string,
  judge: (place: number, region: Region) => Outcome | Promise<Outcome>,
  take: (outcome: Outcome, place: number) => void,
  { every = 1, masks = masksAt }: { every?: number; masks?: (place: number) => readonly number[] } = {},
): Promise<void> {
  const file = new FlippedFile(path);
  try {
    for (let place = 0; place < file.bytes.length; place += every) {
      for (const mask of masks(place)) {
        file.flip(place, mask);
        take(await judge(place, file.region), place);
      }
      file.restore(place);
    }
  } finally {
    file.close();
  }
}

/** `found` for a typed error: anything else that is thrown is a fault of the program. */
export async function refusedOr(judge: () => Outcome | Promise<Outcome>): Promise<Outcome> {
  try {
    return await judge();
  } catch (error) {
    if (!(error instanceof BoundbookError) || error.code === 'INTERNAL') throw error;
    return 'found';
  }
}
