import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import type { Findings, Note } from './finding.js';

/** A head that somebody else held: number of entries, and the last leaf or the tree's root, 64 hexadecimal digits. */
export interface KnownHead {
  readonly size: number;
  readonly hash: string;
}

/** Reads `SIZE:HASH`. @throws {BoundbookError} USAGE. */
export function parseHead(text: string): KnownHead {
  const [, size, hash] = /^([1-9][0-9]{0,14}):([0-9a-f]{64})$/.exec(text.toLowerCase()) ?? [];
  if (size === undefined || hash === undefined) {
    throw new BoundbookError('USAGE', `--head takes SIZE:HASH, not ${JSON.stringify(text.slice(0, 100))}`, {
      hint: 'HASH is the leaf or the root, 64 hexadecimal digits, as `boundbook status` and `audit` print it.',
    });
  }
  return { size: Number(size), hash };
}

/** Compares a known head with the ledger while its entries go by. */
export class HeadCheck {
  readonly #known: KnownHead;
  #met: boolean | null = null;

  constructor(known: KnownHead) {
    this.#known = known;
  }

  /** @param size number of entries up to and with the one that has this leaf */
  take(size: number, leaf: Buffer, root: () => Buffer): void {
    if (size !== this.#known.size) return;
    this.#met = [leaf, root()].some((hash) => hash.toString('hex') === this.#known.hash);
  }

  /** @param size number of entries of the whole ledger */
  conclude(size: number, findings: Findings): void {
    const { size: known, hash } = this.#known;
    if (this.#met === true) return;
    const evidence = { known: { size: known, hash }, size };
    if (this.#met === null) {
      const message = `the ledger has ${size} entries; a known head says ${known}`;
      findings.add({ code: 'LEDGER_SHORTENED', where: { seq: size }, message, evidence });
    } else {
      const message = `up to entry ${known - 1} the ledger is another one than the known head says`;
      findings.add({ code: 'LEDGER_REWRITTEN', where: { seq: known - 1 }, message, evidence });
    }
  }
}

/** What is wrong with a ledger's file as a whole, as a finding. */
export function damageNote(error: BoundbookError): Note {
  const evidence = error.evidence ?? null;
  const base = { where: { file: 'ledger.sqlite' }, message: error.message, evidence };
  if (hasMember(evidence, 'anchor') && hasMember(evidence, 'size')) {
    const shorter =
      sizeOf(evidence.size) < sizeOf(hasMember(evidence.anchor, 'size') ? evidence.anchor.size : null);
    return { code: shorter ? 'LEDGER_SHORTENED' : 'LEDGER_REWRITTEN', ...base };
  }
  return { code: hasMember(evidence, 'differing') ? 'LEDGER_SCHEMA' : 'LEDGER_DAMAGED', ...base };
}

function hasMember<K extends string>(value: JsonValue, key: K): value is { readonly [key in K]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, key);
}

function sizeOf(value: JsonValue): number {
  return typeof value === 'number' ? value : 0;
}
