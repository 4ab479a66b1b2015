import { z } from 'zod';
import { BoundbookError } from '../core/errors.js';
import { parseStrictJson } from '../core/strict-json.js';
import { decodeAnyBase64 } from './base64.js';
import { SIGNATURE_BYTES, signEd25519, verifyEd25519 } from './ed25519.js';
import { keyIdText, type SignerKey, type VerifierKey } from './keys.js';

/**
 * DSSE envelopes (secure-systems-lab/dsse, protocol 1.0) with Ed25519. Pure: bytes in, verdict out. What is signed
 * is the payload as it lies in the envelope; nothing is ever canonicalized after signing.
 */

const MAX_BYTES = 4_000_000;
const MAX_SIGNATURES = 100;

export interface EnvelopeSignature {
  /** A hint, not authenticated: it may narrow the keys to try, and decides nothing. */
  readonly keyid: string;
  readonly bytes: Buffer;
}

export interface Envelope {
  readonly payloadType: string;
  readonly payload: Buffer;
  readonly signatures: readonly EnvelopeSignature[];
}

export interface VerifiedEnvelope {
  readonly payloadType: string;
  /** The bytes that were verified. Parse these, never the envelope again. */
  readonly payload: Buffer;
  /** The keys whose signatures verify, each once. */
  readonly keys: readonly VerifierKey[];
}

/** Pre-authentication encoding: `DSSEv1 <length> <type> <length> <body>`, lengths in bytes. */
export function preAuthEncoding(payloadType: string, payload: Uint8Array): Buffer {
  const type = Buffer.from(payloadType, 'utf8');
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${type.length} `, 'utf8'),
    type,
    Buffer.from(` ${payload.length} `, 'utf8'),
    payload,
  ]);
}

/** Signs a payload with one key or several. */
export function signEnvelope(payloadType: string, payload: Uint8Array, keys: readonly SignerKey[]): Envelope {
  const message = preAuthEncoding(payloadType, payload);
  const signatures = keys.map((key) => ({
    keyid: keyHint(key.verifier),
    bytes: signEd25519(key.privateKey, message),
  }));
  return { payloadType, payload: Buffer.from(payload), signatures };
}

/** The envelope as one line of JSON, standard base64. */
export function formatEnvelope(envelope: Envelope): Buffer {
  const json = {
    payload: envelope.payload.toString('base64'),
    payloadType: envelope.payloadType,
    signatures: envelope.signatures.map(({ keyid, bytes }) => ({ keyid, sig: bytes.toString('base64') })),
  };
  return Buffer.from(`${JSON.stringify(json)}\n`, 'utf8');
}

const base64 = z.string().transform((text, context): Buffer => {
  const bytes = decodeAnyBase64(text);
  if (bytes !== undefined) return bytes;
  context.addIssue({ code: 'custom', message: 'is not base64' });
  return z.NEVER;
});

/** Fields that are not of the format are ignored, as DSSE readers do; they are not authenticated. */
const envelopeSchema = z.object({
  payload: base64,
  payloadType: z.string().min(1),
  signatures: z
    .array(z.object({ keyid: z.string().default(''), sig: base64 }))
    .min(1)
    .max(MAX_SIGNATURES),
});

/**
 * Reads an envelope; nothing is verified.
 *
 * @throws {BoundbookError} ENVELOPE_INVALID with all faults
 */
export function parseEnvelope(bytes: Uint8Array): Envelope {
  if (bytes.length > MAX_BYTES) refuse(`it has more than ${MAX_BYTES} bytes`);
  const parsed = envelopeSchema.safeParse(readJson(bytes));
  if (!parsed.success) {
    throw new BoundbookError('ENVELOPE_INVALID', 'the envelope is refused: it has not the form of DSSE', {
      faults: parsed.error.issues.map((issue) => ({
        where: `/${issue.path.join('/')}`,
        message: issue.message,
      })),
    });
  }
  const { payload, payloadType, signatures } = parsed.data;
  return { payload, payloadType, signatures: signatures.map(({ keyid, sig }) => ({ keyid, bytes: sig })) };
}

export interface EnvelopeTrust {
  /** The type that the payload must be of. */
  readonly payloadType: string;
  readonly keys: readonly VerifierKey[];
  /** How many different public keys must have signed; at least 1. */
  readonly threshold: number;
}

/**
 * Verifies an envelope against at least `threshold` different trusted keys (protocol, "Multi-signature
 * verification"). Every signature is tried with every key, whatever its key id says.
 *
 * @throws {BoundbookError} ENVELOPE_INVALID for another type of payload; SIGNATURE_INVALID for too few keys; USAGE
 * for a threshold that the trusted keys cannot reach
 */
export function verifyEnvelope(envelope: Envelope, trust: EnvelopeTrust): VerifiedEnvelope {
  const keys = new Map(trust.keys.map((key) => [key.publicKey.toString('hex'), key]));
  const { threshold } = trust;
  if (!Number.isSafeInteger(threshold) || threshold < 1 || threshold > keys.size) {
    throw new BoundbookError(
      'USAGE',
      `a threshold of ${threshold} cannot hold with ${keys.size} different keys`,
      {
        hint: 'Give as many public keys as signatures are asked for, and ask for at least one.',
      },
    );
  }
  const message = preAuthEncoding(envelope.payloadType, envelope.payload);
  const signatures = envelope.signatures.filter((signature) => signature.bytes.length === SIGNATURE_BYTES);
  const accepted = [...keys.values()].filter((key) =>
    signatures.some((signature) => verifyEd25519(key.publicKey, message, signature.bytes)),
  );
  if (accepted.length < threshold) refuseUnsigned(envelope, accepted, trust);
  if (envelope.payloadType !== trust.payloadType) {
    refuse(`its payload is of the type ${JSON.stringify(envelope.payloadType)}, not "${trust.payloadType}"`);
  }
  return { payloadType: envelope.payloadType, payload: envelope.payload, keys: accepted };
}

/** What the signatures of an envelope are worth to a reader who knows some keys. */
export interface EnvelopeJudgement {
  /** Keys whose signatures verify. */
  readonly verified: readonly VerifierKey[];
  /** Keys that a signature names and that did not make it: the envelope was altered or is forged. */
  readonly failed: readonly VerifierKey[];
  /** Key hints of signatures that no known key made. */
  readonly unknown: readonly string[];
}

/** Judges every signature of an envelope by the given keys. Nothing is thrown: no key may be known. */
export function judgeEnvelope(envelope: Envelope, keys: readonly VerifierKey[]): EnvelopeJudgement {
  const message = preAuthEncoding(envelope.payloadType, envelope.payload);
  const verified = new Set<VerifierKey>();
  const failed = new Set<VerifierKey>();
  const unknown: string[] = [];
  for (const { keyid, bytes } of envelope.signatures) {
    const signer = keys.find((key) => verifyEd25519(key.publicKey, message, bytes));
    const named = keys.find((key) => keyHint(key) === keyid);
    if (signer !== undefined) verified.add(signer);
    else if (named !== undefined) failed.add(named);
    else unknown.push(keyid);
  }
  return { verified: [...verified], failed: [...failed], unknown };
}

/** How a signature names its key: `<name>+<key id>`. */
export function keyHint(key: VerifierKey): string {
  return `${key.name}+${keyIdText(key.id)}`;
}

function readJson(bytes: Uint8Array): unknown {
  try {
    return parseStrictJson(bytes, 'the envelope');
  } catch (error) {
    throw new BoundbookError('ENVELOPE_INVALID', 'the envelope is refused: it is not strict JSON', {
      cause: error,
    });
  }
}

function refuseUnsigned(envelope: Envelope, accepted: readonly VerifierKey[], trust: EnvelopeTrust): never {
  throw new BoundbookError(
    'SIGNATURE_INVALID',
    `${accepted.length} of ${trust.threshold} trusted keys signed the envelope`,
    {
      hint: 'Give the public key (vkey) of the signer. Take it from the signer, never from the bundle.',
      evidence: {
        key_hints: envelope.signatures.map((signature) => signature.keyid),
        trusted: trust.keys.map(keyHint),
        verified: accepted.map(keyHint),
      },
    },
  );
}

function refuse(reason: string): never {
  throw new BoundbookError('ENVELOPE_INVALID', `the envelope is refused: ${reason}`);
}
