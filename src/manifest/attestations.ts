import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Digest, digestOf, hexOf } from '../core/digest.js';
import { BoundbookError, systemCode } from '../core/errors.js';
import { createFileDurable, makeFolder, readError, readFileBounded } from '../core/files.js';
import { type Envelope, parseEnvelope } from '../signing/dsse.js';
import { PAYLOAD_TYPE, parseStatement, type Statement } from '../signing/statement.js';
import { readTimestampRequest, type TimestampRequest } from '../signing/timestamp-request.js';
import { readTimestamp, SHA256_OID, type TimestampInfo } from '../signing/timestamp-token.js';

/**
 * Signatures and time stamps of a workspace, in the folder `attestations/`: one file each, never changed.
 *
 * A name is `<first 16 hexadecimal digits of the subject's digest>.<label>.<ending>`, where the subject is the signed or
 * stamped file. Label of an envelope: the id of the signing key; of a query and the answer to it: the first 8 digits of
 * the query's digest. Nothing that is read here is verified, and all of it may be hostile: the subject is what the
 * content says that it is about.
 */

export const ATTESTATION_FOLDER = 'attestations';

/** How many files and bytes of the folder are read. A signature has about 2 KB, a token with its chain about 8 KB. */
const MAX_FILES = 10_000;
const MAX_TOTAL_BYTES = 256 * 1024 * 1024;

/** What one file of each kind may hold, in bytes. */
const MAX_BYTES = { envelope: 65_536, query: 16_384, response: 1_000_000 } as const;

export type AttestationKind = keyof typeof MAX_BYTES;

const ENDINGS = { envelope: 'dsse.json', query: 'tsq', response: 'tsr' } as const satisfies Record<
  AttestationKind,
  string
>;
const FILE_NAME = /^([0-9a-f]{16,64})\.([A-Za-z0-9_-]{1,40})\.(dsse\.json|tsq|tsr)$/;
const SUBJECT_DIGITS = 16;

interface Common {
  /** Name in the folder. */
  readonly file: string;
  readonly bytes: Buffer;
  /** The file that is signed or stamped, as the content says. */
  readonly subject: Digest;
}

export interface EnvelopeFile extends Common {
  readonly kind: 'envelope';
  readonly envelope: Envelope;
  /** Of the payload, which is not verified. */
  readonly statement: Statement;
}

export interface QueryFile extends Common {
  readonly kind: 'query';
  readonly request: TimestampRequest;
}

/** An authority's answer: a TimeStampResp or a bare token. */
export interface ResponseFile extends Common {
  readonly kind: 'response';
  readonly info: TimestampInfo;
}

export type Attestation = EnvelopeFile | QueryFile | ResponseFile;

/** A file with the name of an attestation that is none. */
export interface DamagedAttestation {
  readonly file: string;
  readonly error: BoundbookError;
}

export interface Attestations {
  /** By name. */
  readonly all: readonly Attestation[];
  readonly damaged: readonly DamagedAttestation[];
}

/** The kind that a file name promises; null for a name that is not of this folder. */
export function attestationKind(file: string): AttestationKind | null {
  const ending = FILE_NAME.exec(file)?.[3];
  return (Object.keys(ENDINGS) as AttestationKind[]).find((kind) => ENDINGS[kind] === ending) ?? null;
}

/** The most bytes that a file of a kind may have. */
export function attestationLimit(kind: AttestationKind): number {
  return MAX_BYTES[kind];
}

/**
 * Reads one attestation from its bytes, strictly.
 *
 * @param file its name in the folder
 * @throws {BoundbookError} ENVELOPE_INVALID, TIMESTAMP_INVALID: also for a name that speaks of another subject.
 */
export function readAttestation(file: string, bytes: Buffer): Attestation {
  const attestation = readContent(file, bytes);
  const [, prefix = ''] = FILE_NAME.exec(file) ?? [];
  if (!hexOf(attestation.subject).startsWith(prefix)) {
    throw new BoundbookError(
      codeOf(attestation.kind),
      `${file} is about another file than its name says: ${attestation.subject}`,
      { evidence: { name: prefix, subject: attestation.subject } },
    );
  }
  return attestation;
}

/**
 * Reads all attestations of a workspace, or of a bundle. What is damaged is listed, not thrown; other names are passed
 * over. A folder that is not there holds none.
 *
 * @param folder the folder of the attestations itself
 * @throws {BoundbookError} FILE_UNREADABLE, FILE_NOT_REGULAR when the folder cannot be read; FILE_TOO_LARGE when it
 * holds too many files.
 */
export async function readAttestations(folder: string): Promise<Attestations> {
  const names = (await listFolder(folder)).filter((name) => attestationKind(name) !== null).sort();
  if (names.length > MAX_FILES) {
    throw new BoundbookError('FILE_TOO_LARGE', `${folder} holds more than ${MAX_FILES} attestations`);
  }
  const all: Attestation[] = [];
  const damaged: DamagedAttestation[] = [];
  let budget = MAX_TOTAL_BYTES;
  for (const file of names) {
    const kind = attestationKind(file) ?? 'envelope';
    try {
      const maxBytes = Math.min(MAX_BYTES[kind], budget);
      const bytes = await readFileBounded(join(folder, file), { maxBytes, followLinks: false });
      budget -= bytes.length;
      all.push(readAttestation(file, bytes));
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      damaged.push({ file, error });
    }
  }
  return { all, damaged };
}

/** The attestations of a workspace. @throws as {@link readAttestations} */
export function loadAttestations(root: string): Promise<Attestations> {
  return readAttestations(join(root, ATTESTATION_FOLDER));
}

/** Those about one of some files, which `export` takes along. */
export function attestationsAbout(
  { all }: Attestations,
  subjects: ReadonlySet<Digest>,
): readonly Attestation[] {
  return all.filter(({ subject }) => subjects.has(subject));
}

/**
 * The tokens that an entry `checkpoint` has still to name: bytes of every readable `.tsr` file whose digest is not
 * among those named before, the earliest stamped time first.
 */
export function unnamedTokens(
  { all }: Attestations,
  named: ReadonlySet<Digest>,
): readonly { readonly digest: Digest; readonly bytes: Buffer }[] {
  const tokens = new Map<Digest, ResponseFile>();
  for (const attestation of all) {
    if (attestation.kind !== 'response') continue;
    const digest = digestOf(attestation.bytes);
    if (!named.has(digest)) tokens.set(digest, attestation);
  }
  return [...tokens]
    .sort(([a, one], [b, other]) => one.info.seconds - other.info.seconds || (a < b ? -1 : 1))
    .map(([digest, { bytes }]) => ({ digest, bytes }));
}

/** The file name of an attestation. */
export function attestationName(subject: Digest, label: string, kind: AttestationKind): string {
  return `${hexOf(subject).slice(0, SUBJECT_DIGITS)}.${label}.${ENDINGS[kind]}`;
}

/** The label of a query and of the answer to it. */
export function queryLabel(query: Uint8Array): string {
  return hexOf(digestOf(query)).slice(0, 8);
}

/**
 * Writes an attestation: exclusively, read-only, durable before this returns. The same bytes under the same name are
 * left as they are.
 *
 * @returns its name in the folder, and whether it was there before
 * @throws {BoundbookError} FILE_EXISTS for a name that other bytes have; FILE_UNWRITABLE, DISK_FULL; as
 * {@link readAttestation} for bytes that are no attestation.
 */
export async function storeAttestation(
  root: string,
  label: string,
  kind: AttestationKind,
  bytes: Buffer,
): Promise<{ readonly file: string; readonly existed: boolean }> {
  const { subject } = readContent(`new.${ENDINGS[kind]}`, bytes);
  const folder = join(root, ATTESTATION_FOLDER);
  const file = attestationName(subject, label, kind);
  await makeFolder(folder);
  try {
    await createFileDurable(join(folder, file), bytes, 0o444);
    return { file, existed: false };
  } catch (error) {
    if (!(error instanceof BoundbookError) || error.code !== 'FILE_EXISTS') throw error;
    const there = await readFileBounded(join(folder, file), { maxBytes: MAX_BYTES[kind], allowEmpty: true });
    if (!there.equals(bytes)) throw error;
    return { file, existed: true };
  }
}

function readContent(file: string, bytes: Buffer): Attestation {
  if (file.endsWith(`.${ENDINGS.envelope}`)) return readEnvelopeFile(file, bytes);
  if (file.endsWith(`.${ENDINGS.query}`)) {
    const request = readTimestampRequest(bytes);
    return { kind: 'query', file, bytes, subject: sha256Of(request), request };
  }
  const { info } = readTimestamp(bytes);
  return { kind: 'response', file, bytes, subject: sha256Of(info), info };
}

function readEnvelopeFile(file: string, bytes: Buffer): EnvelopeFile {
  const envelope = parseEnvelope(bytes);
  if (envelope.payloadType !== PAYLOAD_TYPE) {
    throw new BoundbookError('ENVELOPE_INVALID', `${file} holds no in-toto statement`);
  }
  const statement = parseStatement(envelope.payload);
  const subject: Digest = `sha256:${statement.subject[0]?.digest.sha256 ?? ''}`;
  return { kind: 'envelope', file, bytes, subject, envelope, statement };
}

function sha256Of({ hash, digest }: { readonly hash: string; readonly digest: Buffer }): Digest {
  if (hash === SHA256_OID && digest.length === 32) return `sha256:${digest.toString('hex')}`;
  throw new BoundbookError('TIMESTAMP_INVALID', 'what was stamped is not a SHA-256 digest', {
    evidence: { hash_oid: hash },
  });
}

function codeOf(kind: AttestationKind): 'ENVELOPE_INVALID' | 'TIMESTAMP_INVALID' {
  return kind === 'envelope' ? 'ENVELOPE_INVALID' : 'TIMESTAMP_INVALID';
}

async function listFolder(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    if (systemCode(error) === 'ENOTDIR') {
      throw new BoundbookError('FILE_NOT_REGULAR', `${folder} is not a folder`, { cause: error });
    }
    throw readError(folder, error);
  }
}
