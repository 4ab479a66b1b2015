import { BoundbookError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { type Checkpoint, checkpointOf, formatCheckpoint } from '../ledger/checkpoint.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import { HashTiles } from '../ledger/hash-tiles.js';
import { leafHash } from '../ledger/merkle.js';
import { type Origin, originText, parseOrigin } from '../ledger/origin.js';
import { consistencyProof, verifyConsistency } from '../ledger/proofs.js';
import { judgeNote, type Trust, verifyTrusted } from '../ledger/trust.js';
import type { SizedNote } from './checkpoint-audit.js';
import type { Findings } from './finding.js';
import type { RowSource } from './row-source.js';

/** A checkpoint that the auditor, or somebody the auditor trusts, kept from earlier. */
export interface KnownCheckpoint {
  /** What the note is called. */
  readonly name: string;
  readonly note: Buffer;
}

/**
 * Whether the trusted keys vouch for a known checkpoint; false when none of them is of its ledger. With a policy its
 * quorum is demanded.
 *
 * @throws {BoundbookError} NOTE_INVALID, SIGNATURE_INVALID, QUORUM_UNMET.
 */
export function isGenuine({ note }: KnownCheckpoint, trust: Trust | null): boolean {
  if (trust === null) return false;
  if (trust.policy !== null) {
    verifyTrusted(note, trust);
    return true;
  }
  const judgement = judgeNote(note, trust);
  if (judgement.kind === 'failed') throw judgement.error;
  return judgement.kind === 'verified';
}

/**
 * Proves that the present ledger extends an older checkpoint, by a consistency proof between the two trees that a third
 * party can check; or shows both notes and the proof that fails.
 */
export class SinceCheck {
  readonly #known: KnownCheckpoint;
  readonly #checkpoint: Checkpoint;
  readonly #origin: Origin | null;
  readonly #tree: HashTiles;
  readonly #openings: EntryOf<'ledger.opened'>[] = [];

  /** @throws {BoundbookError} NOTE_INVALID when the note is none. */
  constructor(known: KnownCheckpoint, source: RowSource) {
    this.#known = known;
    this.#checkpoint = checkpointOf(known.note);
    this.#origin = parseOrigin(this.#checkpoint.origin);
    this.#tree = new HashTiles((start, end) => leavesOf(source, start, end));
  }

  take(leaf: Buffer): void {
    this.#tree.append(leaf);
  }

  open(entry: EntryOf<'ledger.opened'>): void {
    if (this.#openings.length < 1000) this.#openings.push(entry);
  }

  /**
   * @param newest the newest note of the ledger
   * @param root of the tree over the whole ledger
   * @returns what was proven; null when nothing was, which is then a finding
   */
  conclude(newest: SizedNote | null, root: Buffer, findings: Findings): string | null {
    const { origin, size } = this.#checkpoint;
    const now = this.#openings.at(-1);
    const reason =
      now === undefined ? 'the ledger does not say what it is' : (this.#refusal(now) ?? this.#prove(root));
    if (reason !== null) {
      findings.add({
        code: 'NOT_EXTENDED',
        where: { file: this.#known.name },
        message: `the ledger does not extend the checkpoint of ${size} entries: ${reason}`,
        evidence: this.#evidence(reason, newest, root),
      });
      return null;
    }
    const later = this.#after(now);
    return [
      `the ledger of ${this.#tree.size} entries extends the known checkpoint of ${size} (${origin})`,
      ...(later === undefined ? [] : [`an older copy was put back later, with entry ${later.seq}`]),
    ].join('; ');
  }

  /** Why the trees need not be compared. */
  #refusal(now: EntryOf<'ledger.opened'>): string | null {
    const named = this.#origin;
    if (named === null || named.ledger !== now.ledger) {
      return `it is of another ledger, ${this.#checkpoint.origin}; this one is ${now.ledger}`;
    }
    if (named.incarnation > now.incarnation) {
      return `it is of incarnation ${named.incarnation}; this is a copy of incarnation ${now.incarnation}, which is older`;
    }
    const later = this.#after(now);
    if (later !== undefined && this.#checkpoint.size > BigInt(later.seq)) {
      const told =
        later.restored === null
          ? ''
          : `, which says so itself (it quotes a state of ${later.restored.size} entries)`;
      return `an older copy was put back: the entries ${later.seq} to ${this.#checkpoint.size - 1n} of incarnation ${named.incarnation} are lost since entry ${later.seq}${told}`;
    }
    if (this.#checkpoint.size > BigInt(this.#tree.size)) {
      return `the ledger has ${this.#tree.size} entries: those from ${this.#tree.size} to ${this.#checkpoint.size - 1n} are missing`;
    }
    return null;
  }

  /** The opening of the incarnation after that of the known checkpoint. */
  #after(now: EntryOf<'ledger.opened'> | undefined): EntryOf<'ledger.opened'> | undefined {
    const named = this.#origin;
    if (named === null || now === undefined || named.incarnation === now.incarnation) return undefined;
    return this.#openings.find(({ incarnation }) => incarnation > named.incarnation);
  }

  /** null when the consistency proof holds. */
  #prove(newRoot: Buffer): string | null {
    const { size: oldSize, root: oldRoot } = this.#checkpoint;
    const { size } = this.#tree;
    try {
      const proof = consistencyProof(this.#tree, Number(oldSize), size);
      verifyConsistency({ oldSize, oldRoot, newSize: BigInt(size), newRoot, proof });
      return null;
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      return error.message;
    }
  }

  /** Both notes and the proof. A signed note that is new enough convicts; else the bare text of the present state. */
  #evidence(reason: string, newest: SizedNote | null, root: Buffer): JsonObject {
    const { size } = this.#tree;
    const old = this.#checkpoint.size;
    const signed = newest !== null && newest.size >= old && newest.size <= size ? newest : null;
    return {
      reason,
      older: this.#known.note.toString('utf8').toWellFormed(),
      newer: signed === null ? this.#presentText(root) : signed.note.toString('utf8').toWellFormed(),
      proof: this.#proofUpTo(signed?.size ?? size),
    };
  }

  #proofUpTo(size: number): string[] {
    if (this.#checkpoint.size > BigInt(size)) return [];
    try {
      const proof = consistencyProof(this.#tree, Number(this.#checkpoint.size), size);
      return proof.map((node) => node.toString('base64'));
    } catch (error) {
      // Entries that cannot be read are a finding of their own.
      if (error instanceof BoundbookError) return [];
      throw error;
    }
  }

  /** The present state as a checkpoint that nobody signed. */
  #presentText(root: Buffer): string {
    const now = this.#openings.at(-1);
    const name = this.#origin?.name ?? 'unsigned';
    const origin =
      now === undefined ? name : originText({ name, ledger: now.ledger, incarnation: now.incarnation });
    return formatCheckpoint({ origin, size: BigInt(this.#tree.size), root });
  }
}

function* leavesOf(source: RowSource, start: number, end: number): Generator<Buffer> {
  let next = start;
  for (const { body } of source.rows(start)) {
    if (next++ >= end) return;
    yield leafHash(body);
  }
}
