import { createHmac, randomBytes } from 'node:crypto';
import { type Digest, hexOf, isDigest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import type { Mention, ObjectRole } from '../../ledger/mentions.js';
import { bindingOf, type Manifest } from '../../manifest/manifest.js';
import { HashedFile } from './hashed-file.js';
import { commitmentOf, type RecordHeader } from './pack-format.js';

/** Below this a content may be guessed, and a guess confirmed by the digest, which entries hold unsalted. */
export const GUESSABLE_BYTES = 32;

/** What `--redact` names: kinds of content, and single objects. */
export interface RedactionChoice {
  readonly tasks: boolean;
  readonly answers: boolean;
  readonly digests: readonly Digest[];
}

/** Reads `tasks,answers,sha256:…`. @throws {BoundbookError} USAGE. */
export function parseRedaction(text: string): RedactionChoice {
  const parts = text.split(',').map((part) => part.trim());
  const digests = parts.filter(isDigest);
  const wrong = parts.find((part) => part !== 'tasks' && part !== 'answers' && !isDigest(part));
  if (wrong !== undefined) {
    throw new BoundbookError('USAGE', `--redact does not know ${JSON.stringify(wrong.slice(0, 100))}`, {
      hint: 'It takes tasks, answers and digests of objects (sha256:…), with commas between them.',
    });
  }
  return { tasks: parts.includes('tasks'), answers: parts.includes('answers'), digests };
}

/** Decides which objects lose their bytes, commits to them, and keeps the salts in a private file. */
export class Redaction {
  readonly #roles = new Set<ObjectRole>();
  readonly #digests: Set<Digest>;
  /** Named one by one, and not met yet. */
  readonly #unmet: Set<Digest>;
  readonly #salts: HashedFile;
  readonly #secret: Buffer;
  #count = 0;
  #guessable = 0;

  /**
   * @param saltFile a new file for lines `<digest> <salt>`, readable by its owner only
   * @param secret what salts are drawn from; never written anywhere
   * @throws {BoundbookError} FILE_EXISTS, FILE_UNWRITABLE, DISK_FULL.
   */
  constructor(choice: RedactionChoice, saltFile: string, secret: Buffer = randomBytes(32)) {
    this.#digests = new Set(choice.digests);
    this.#unmet = new Set(choice.digests);
    if (choice.tasks) this.#roles.add('request');
    if (choice.answers) this.#roles.add('answer');
    this.#tasks = choice.tasks;
    this.#secret = secret;
    this.#salts = new HashedFile(saltFile, 0o600);
  }

  readonly #tasks: boolean;

  /** Makes the task files of a manifest part of what `tasks` names. Lists of ids hold nothing but ids, and stay. */
  addTasksOf(manifest: Manifest): void {
    if (!this.#tasks) return;
    for (const [name, set] of Object.entries(manifest.protocol.task_sets)) {
      const digest = 'file' in set ? bindingOf(manifest, `tasks/${name}`)?.digest : undefined;
      if (digest !== undefined) this.#digests.add(digest);
    }
  }

  applies({ digest, role }: Mention): boolean {
    this.#unmet.delete(digest);
    return this.#roles.has(role) || this.#digests.has(digest);
  }

  /** The redacted record of an object; its salt is kept. */
  redact(digest: Digest, bytes: Uint8Array): RecordHeader {
    const hex = hexOf(digest);
    const salt = createHmac('sha256', this.#secret).update(hex).digest();
    this.#salts.write(`${hex} ${salt.toString('hex')}\n`);
    this.#count++;
    if (bytes.length < GUESSABLE_BYTES) this.#guessable++;
    return { hex, length: bytes.length, commitment: commitmentOf(salt, bytes) };
  }

  get count(): number {
    return this.#count;
  }

  /** Redacted objects of fewer than {@link GUESSABLE_BYTES} bytes. */
  get guessable(): number {
    return this.#guessable;
  }

  /** Ends the salt file. @throws {BoundbookError} USAGE when a digest was named that no entry names. */
  finish(): void {
    const [digest] = this.#unmet;
    if (digest !== undefined) {
      throw new BoundbookError('USAGE', `--redact names ${digest}, which is no object of this ledger`, {
        hint: '`boundbook show ENTRY` shows the digests that an entry names.',
      });
    }
    this.#salts.finish();
  }

  abandon(): void {
    this.#salts.abandon();
  }
}
