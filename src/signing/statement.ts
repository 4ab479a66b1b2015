import { z } from 'zod';
import { canonicalBytes } from '../core/canonical-json.js';
import { type Digest, hexOf, isDigest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { parseStrictJson } from '../core/strict-json.js';
import { type Envelope, type EnvelopeTrust, signEnvelope, verifyEnvelope } from './dsse.js';
import type { SignerKey, VerifierKey } from './keys.js';

/**
 * in-toto statements (in-toto/attestation, Statement v1) about a manifest and about a final report, as the payload of
 * DSSE envelopes. A statement is canonical JSON and is read strictly by writing it again.
 *
 * `…/manifest/v1`: the signer saw this manifest. The subject is the manifest file; the predicate repeats what a reader
 * wants to see at a glance, and the manifest itself decides.
 *
 * `…/report/v1`: the signer issued this report. The subject is the report file; the predicate names the manifest and
 * the ledger head that it was computed from, and whether anything is still open.
 */

export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
export const MANIFEST_PREDICATE = 'https://boundbook.dev/predicate/manifest/v1';
export const REPORT_PREDICATE = 'https://boundbook.dev/predicate/report/v1';

const digest = z.custom<Digest>(isDigest, 'is not sha256: and 64 hexadecimal digits');
const count = z.int().min(0);

const manifestPredicate = z.strictObject({
  /** Name of the plan. */
  name: z.string().min(1),
  revision: z.int().min(1),
  /** Number of the manifest in its workspace, from 1. */
  sequence: z.int().min(1),
  /** Whether every binding is made, so that it may be executed. */
  execution_ready: z.boolean(),
  /** null while a task file is not bound. */
  slots: z.strictObject({ count, digest }).nullable(),
  /** The manifest that this one binds further; the revision that it replaces. */
  parent: digest.nullable(),
  supersedes: digest.nullable(),
});

const reportPredicate = z.strictObject({
  manifest: digest,
  ledger: z.strictObject({
    /** Its name: 32 hexadecimal digits. */
    id: z.string().regex(/^[0-9a-f]{32}$/, 'is not 32 hexadecimal digits'),
    /** Number of entries that the report was computed from, and the Merkle root over them. */
    size: z.int().min(1),
    root: digest,
  }),
  slots: z.strictObject({ planned: count, settled: count, unresolved: count, pending: count }),
  /** Whether outcomes by arm may be known: after `unblind`. */
  unblinded: z.boolean(),
});

export type ManifestPredicate = z.infer<typeof manifestPredicate>;
export type ReportPredicate = z.infer<typeof reportPredicate>;

const subject = z
  .array(
    z.strictObject({
      name: z.string().min(1),
      digest: z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/, 'is not 64 hexadecimal digits') }),
    }),
  )
  .length(1);

const statementSchema = z.discriminatedUnion('predicateType', [
  z.strictObject({
    _type: z.literal(STATEMENT_TYPE),
    subject,
    predicateType: z.literal(MANIFEST_PREDICATE),
    predicate: manifestPredicate,
  }),
  z.strictObject({
    _type: z.literal(STATEMENT_TYPE),
    subject,
    predicateType: z.literal(REPORT_PREDICATE),
    predicate: reportPredicate,
  }),
]);

/** A statement about one file. The name of the subject is a label; only its digest counts. */
export type Statement = z.infer<typeof statementSchema>;

/** The file that a statement is about. */
export interface StatementSubject {
  readonly name: string;
  readonly digest: Digest;
}

/** The statement of a signer about a manifest. */
export function manifestStatement(about: StatementSubject, predicate: ManifestPredicate): Statement {
  return { ...head(about), predicateType: MANIFEST_PREDICATE, predicate };
}

/** The statement of a signer about a report. */
export function reportStatement(about: StatementSubject, predicate: ReportPredicate): Statement {
  return { ...head(about), predicateType: REPORT_PREDICATE, predicate };
}

function head(about: StatementSubject): Pick<Statement, '_type' | 'subject'> {
  return { _type: STATEMENT_TYPE, subject: [{ name: about.name, digest: { sha256: hexOf(about.digest) } }] };
}

/** The bytes that are signed: canonical JSON (RFC 8785). */
export function formatStatement(statement: Statement): Buffer {
  return canonicalBytes(statement);
}

/**
 * Reads a statement of the two kinds above, strictly by writing it again.
 *
 * @throws {BoundbookError} ENVELOPE_INVALID with all faults
 */
export function parseStatement(bytes: Uint8Array): Statement {
  const parsed = statementSchema.safeParse(readJson(bytes));
  if (!parsed.success) {
    throw new BoundbookError('ENVELOPE_INVALID', 'the statement is refused: it has not the declared form', {
      hint: `Known predicates: ${MANIFEST_PREDICATE} and ${REPORT_PREDICATE}.`,
      faults: parsed.error.issues.map((issue) => ({
        where: `/${issue.path.join('/')}`,
        message: issue.message,
      })),
    });
  }
  if (!formatStatement(parsed.data).equals(bytes)) {
    throw new BoundbookError(
      'ENVELOPE_INVALID',
      'the statement is refused: its bytes are not its canonical form',
    );
  }
  return parsed.data;
}

/** Signs a statement. */
export function signStatement(statement: Statement, keys: readonly SignerKey[]): Envelope {
  return signEnvelope(PAYLOAD_TYPE, formatStatement(statement), keys);
}

/**
 * Verifies an envelope and that its statement is about a file of this digest.
 *
 * @throws {BoundbookError} SIGNATURE_INVALID, ENVELOPE_INVALID, USAGE
 */
export function verifyStatement(
  envelope: Envelope,
  trust: Omit<EnvelopeTrust, 'payloadType'>,
  about: Digest,
): { readonly statement: Statement; readonly keys: readonly VerifierKey[] } {
  const { payload, keys } = verifyEnvelope(envelope, { ...trust, payloadType: PAYLOAD_TYPE });
  const statement = parseStatement(payload);
  const found = statement.subject[0]?.digest.sha256;
  if (found !== hexOf(about)) {
    throw new BoundbookError('ENVELOPE_INVALID', 'the statement is about another file', {
      hint: 'Each signed file has its own statement; this one belongs to another version.',
      evidence: { expected: about, actual: `sha256:${found}` },
    });
  }
  return { statement, keys };
}

function readJson(bytes: Uint8Array): unknown {
  try {
    return parseStrictJson(bytes, 'the statement');
  } catch (error) {
    throw new BoundbookError('ENVELOPE_INVALID', 'the statement is refused: it is not strict JSON', {
      cause: error,
    });
  }
}
