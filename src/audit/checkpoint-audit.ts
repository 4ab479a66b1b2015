import { BoundbookError } from '../core/errors.js';
import { checkpointOf } from '../ledger/checkpoint.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import { type NoteFile, sameCheckpoint } from '../ledger/note-files.js';
import { type LedgerIdentity, type Origin, parseOrigin } from '../ledger/origin.js';
import { evaluatePolicy, quorumEvidence } from '../ledger/quorum.js';
import { judgeNote, type Trust } from '../ledger/trust.js';
import type { Findings, Place } from './finding.js';

/** A note of this ledger and how many entries it speaks of. */
export interface SizedNote {
  readonly size: number;
  readonly note: Buffer;
}

/** How far the checkpoints of a ledger reach. */
export interface CheckpointReach {
  /** Signed checkpoint entries. */
  readonly signed: number;
  /** Notes, of entries and files, that a given key signed. */
  readonly verified: number;
  /** Notes that none of the given keys signed. */
  readonly unknown: number;
  /** Entries that the newest of those covers; null when there is none, or no key was given. */
  readonly covered: number | null;
  /** Entries that the newest one with the policy's quorum covers; null when there is none, or no policy was given. */
  readonly witnessed: number | null;
  /** Whether keys or a policy were given. */
  readonly trusted: boolean;
}

/** A note file, as far as it can be read. */
interface ReadFile {
  readonly name: string;
  readonly bytes: Buffer;
  readonly size: number;
  readonly origin: Origin | null;
}

/**
 * Holds the notes of a ledger's checkpoints, in entries and in files, against each other and against the keys that the
 * auditor trusts. What an entry says of the tree is looked at where the tree is.
 */
export class CheckpointAudit {
  readonly #findings: Findings;
  readonly #trust: Trust | null;
  readonly #files: readonly ReadFile[];
  /** Files by what they should be the note of. */
  readonly #bySize = new Map<number, ReadFile>();
  readonly #met = new Set<ReadFile>();
  /** Positions at which the incarnations begin. */
  readonly #openings: (LedgerIdentity & { readonly seq: number })[] = [];
  readonly #remarks: string[] = [];
  #signed = 0;
  #verified = 0;
  #unknown = 0;
  #covered: number | null = null;
  #witnessed: number | null = null;
  #newest: SizedNote | null = null;
  /** The quorum of the newest verified note, should it not be met. */
  #missed: { readonly place: Place; readonly evidence: ReturnType<typeof quorumEvidence> } | null = null;

  constructor(notes: readonly NoteFile[], trust: Trust | null, findings: Findings) {
    this.#findings = findings;
    this.#trust = trust;
    this.#files = notes.flatMap((file) => this.#read(file) ?? []);
    for (const file of this.#files) {
      if (plainSize(file.name) === file.size) this.#bySize.set(file.size, file);
    }
  }

  /** The newest note that an entry holds. */
  get newest(): SizedNote | null {
    return this.#newest;
  }

  /** What is no finding and still worth knowing. */
  get remarks(): readonly string[] {
    return this.#remarks;
  }

  open({ seq, ledger, incarnation }: EntryOf<'ledger.opened'>): void {
    // A hostile ledger can open itself any number of times; the rules have found that by then.
    if (this.#openings.length < 1000) this.#openings.push({ seq, ledger, incarnation });
  }

  /** Takes a checkpoint entry. */
  entry({ seq, size, note }: EntryOf<'checkpoint'>): void {
    if (note === null) return;
    this.#signed++;
    const bytes = Buffer.from(note, 'utf8');
    this.#newest = { size, note: bytes };
    this.#judge(bytes, size, { seq, pointer: '/note' });
    const file = this.#bySize.get(size);
    if (file === undefined || !sameCheckpoint(file.bytes, bytes)) return;
    this.#met.add(file);
    // The same bytes are judged once.
    if (!file.bytes.equals(bytes)) this.#judge(file.bytes, size, { file: file.name });
  }

  /** @param size number of entries of the whole ledger */
  conclude(size: number): CheckpointReach {
    for (const file of this.#files) if (!this.#met.has(file)) this.#stray(file, size);
    if (this.#trust !== null) this.#demand(this.#trust);
    return {
      signed: this.#signed,
      verified: this.#verified,
      unknown: this.#unknown,
      covered: this.#covered,
      witnessed: this.#witnessed,
      trusted: this.#trust !== null,
    };
  }

  /** Judges the signatures of one note. */
  #judge(note: Buffer, size: number, place: Place): void {
    const trust = this.#trust;
    if (trust === null) return;
    try {
      const judgement = judgeNote(note, trust);
      if (judgement.kind === 'unknown') {
        this.#unknown++;
        return;
      }
      if (judgement.kind === 'failed') {
        const { message, evidence = null } = judgement.error;
        this.#findings.add({ code: 'CHECKPOINT_SIGNATURE', where: place, message, evidence });
        return;
      }
      this.#verified++;
      this.#covered = Math.max(this.#covered ?? 0, size);
      if (trust.policy === null) return;
      const verdict = evaluatePolicy(trust.policy, judgement.signed);
      if (verdict.satisfied) this.#witnessed = Math.max(this.#witnessed ?? 0, size);
      else this.#missed = { place, evidence: quorumEvidence(verdict, judgement.signed) };
    } catch (error) {
      // A note that has not the form of one: said where the entry is held against the tree.
      if (!(error instanceof BoundbookError) || error.code !== 'NOTE_INVALID') throw error;
    }
  }

  /** What a policy asks for: at least one checkpoint that a known key signed and its quorum cosigned. */
  #demand({ policy }: Trust): void {
    if (policy === null || this.#witnessed !== null) return;
    const { place, evidence } = this.#missed ?? { place: {}, evidence: null };
    const message =
      this.#covered === null
        ? 'no checkpoint of the ledger is signed by a key that the policy or --key names'
        : 'no checkpoint of the ledger has the cosignatures that the policy asks for';
    this.#findings.add({ code: 'QUORUM_UNMET', where: place, message, evidence });
  }

  /** A file that is no entry's note: of a state that was lost, or somebody removed entries. */
  #stray(file: ReadFile, size: number): void {
    const next = this.#openings.find(
      ({ ledger, incarnation }) => ledger === file.origin?.ledger && incarnation > file.origin.incarnation,
    );
    const named = plainSize(file.name) ?? file.size;
    if (next !== undefined && file.size > next.seq && named === file.size) {
      this.#remarks.push(
        `${file.name} is of incarnation ${file.origin?.incarnation} with ${file.size} entries: what it had from entry ${next.seq} on was lost when an older copy was put back`,
      );
      return;
    }
    const message =
      file.size > size
        ? `it speaks of ${file.size} entries; the ledger has ${size}`
        : 'no checkpoint entry of the ledger says the same';
    this.#findings.add({
      code: 'CHECKPOINT_DIFFERS',
      where: { file: file.name },
      message,
      evidence: { note: file.bytes.toString('utf8').slice(0, 16_384).toWellFormed() },
    });
  }

  /** Reads a file; one that is no checkpoint is a finding. */
  #read({ name, bytes }: NoteFile): ReadFile | null {
    try {
      const { origin, size } = checkpointOf(bytes);
      if (size <= BigInt(Number.MAX_SAFE_INTEGER)) {
        return { name, bytes, size: Number(size), origin: parseOrigin(origin) };
      }
      this.#damaged(name, `it speaks of ${size} entries`);
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      this.#damaged(name, error.message);
    }
    return null;
  }

  #damaged(file: string, message: string): void {
    this.#findings.add({ code: 'CHECKPOINT_DIFFERS', where: { file }, message });
  }
}

/** The size that a file's name speaks of; null for a note that was set aside. */
function plainSize(name: string): number | null {
  const [, size] = /(?:^|\/)([0-9]+)\.note$/.exec(name) ?? [];
  return size === undefined ? null : Number(size);
}
