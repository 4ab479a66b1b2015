import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import {
  ATTESTATION_FOLDER,
  type Attestation,
  type QueryFile,
  type ResponseFile,
} from '../manifest/attestations.js';
import { isUntrustedAuthority, verifyTimestamp } from '../signing/timestamp.js';
import { assertAnswers } from '../signing/timestamp-request.js';
import type { Findings, Place } from './finding.js';

/** Each verification runs a program; a hostile bundle can hold as many tokens as it likes. */
const MAX_TOKENS = 200;

/** Whose time stamps count: roots come from the reader, never from what is audited. */
export interface Authority {
  /** PEM. */
  readonly roots: Uint8Array;
  /** Certificates between, PEM. They may come from anywhere. */
  readonly chain: Uint8Array | null;
}

/** A token to verify, and where it was found. */
export interface Token {
  readonly bytes: Buffer;
  /** What was stamped, as the token says. */
  readonly subject: Digest;
  readonly where: Place;
  /** How it is called in sentences. */
  readonly label: string;
}

/** What a verified token says. Times are POSIX seconds. */
export interface Stamp {
  readonly subject: Digest;
  readonly noLaterThan: number;
  readonly noEarlierThan: number;
  readonly label: string;
}

export interface StampVerdict {
  /** Verified tokens by the digest of their bytes. */
  readonly stamps: ReadonlyMap<Digest, Stamp>;
  readonly notChecked: readonly string[];
}

/** The token of a response file. */
export function tokenOf({ file, bytes, subject }: ResponseFile): Token {
  const path = `${ATTESTATION_FOLDER}/${file}`;
  return { bytes, subject, where: { file: path }, label: path };
}

/**
 * Verifies tokens by an authority. A token by another authority proves nothing and is named; one that is signed by the
 * authority's certificate and does not verify is a finding.
 *
 * @throws {BoundbookError} OPENSSL_UNAVAILABLE when there is something to verify
 */
export async function verifyTokens(
  tokens: readonly Token[],
  authority: Authority,
  findings: Findings,
): Promise<StampVerdict> {
  const stamps = new Map<Digest, Stamp>();
  const notChecked = new Set<string>();
  const distinct = new Map<Digest, Token>();
  for (const token of tokens) {
    const digest = digestOf(token.bytes);
    if (!distinct.has(digest)) distinct.set(digest, token);
  }
  for (const [digest, { bytes, subject, where, label }] of [...distinct].slice(0, MAX_TOKENS)) {
    const { roots, chain } = authority;
    const evidence = { response: bytes, digest: subject, roots, ...(chain === null ? {} : { chain }) };
    try {
      const verified = await verifyTimestamp(evidence);
      const { noLaterThan, noEarlierThan } = verified;
      stamps.set(digest, { subject, noLaterThan, noEarlierThan, label });
      for (const line of verified.notChecked.filter((one) => !one.includes('the query that was sent'))) {
        notChecked.add(line);
      }
    } catch (error) {
      if (!(error instanceof BoundbookError) || error.code !== 'TIMESTAMP_INVALID') throw error;
      if (isUntrustedAuthority(error)) {
        notChecked.add(`the time stamp ${label}: no given authority stands behind it (${error.message})`);
        continue;
      }
      const evidenceOf = error.evidence === undefined ? {} : { evidence: error.evidence };
      findings.add({ code: 'TIMESTAMP_FALSE', where, message: `${label}: ${error.message}`, ...evidenceOf });
    }
  }
  if (distinct.size > MAX_TOKENS) {
    notChecked.add(`${distinct.size - MAX_TOKENS} more time stamps: ${MAX_TOKENS} were looked at`);
  }
  return { stamps, notChecked: [...notChecked] };
}

/** Each answer beside a query of the same name must answer that one. */
export function judgePairs(all: readonly Attestation[], findings: Findings): void {
  const queries = new Map(
    all.filter((one): one is QueryFile => one.kind === 'query').map((one) => [stemOf(one.file), one]),
  );
  for (const one of all) {
    const query = one.kind === 'response' ? queries.get(stemOf(one.file)) : undefined;
    if (one.kind !== 'response' || query === undefined) continue;
    try {
      assertAnswers(one.info, query.request);
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      findings.add({
        code: 'ATTESTATION_INVALID',
        where: { file: `${ATTESTATION_FOLDER}/${one.file}` },
        message: error.message,
        ...(error.evidence === undefined ? {} : { evidence: error.evidence }),
      });
    }
  }
}

function stemOf(file: string): string {
  return file.replace(/\.[a-z]+$/, '');
}
