import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Digest, hexOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { writeError } from '../core/files.js';
import { requireOpenssl, runOpenssl } from './openssl.js';
import { readTimestamp, SHA256_OID, type TimestampInfo } from './timestamp-token.js';

/**
 * RFC 3161 time stamps: queries for an authority, and offline verification of what it answered. The cryptography is
 * that of the openssl program; it reads its input from files, which lie in a private temporary folder.
 */

export interface TimestampOptions {
  /** The openssl program. */
  readonly openssl?: string;
}

export interface TimestampEvidence {
  /** What the authority answered: a TimeStampResp, or a bare token. */
  readonly response: Uint8Array;
  /** What must have been stamped. */
  readonly digest: Digest;
  /** Certificates that are trusted as roots, PEM. They come from the reader, never from the bundle. */
  readonly roots: Uint8Array;
  /** Certificates that may lie between the token's and a root's, PEM. They may come from anywhere. */
  readonly chain?: Uint8Array;
  /** The query that was sent; its nonce must be in the answer then. */
  readonly query?: Uint8Array;
  /**
   * When certificates must be valid, in POSIX seconds. Without it: at the stamped time, which is what a reader wants
   * after the authority's certificate has expired.
   */
  readonly validAt?: number;
}

export interface VerifiedTimestamp {
  /** The stamped time, RFC 3339 in UTC. */
  readonly time: string;
  /** POSIX seconds at which the digest existed for certain: the stamped time and the stated inaccuracy, rounded up. */
  readonly noLaterThan: number;
  /** POSIX seconds before which the token was not made: the stamped time less the stated inaccuracy, rounded down. */
  readonly noEarlierThan: number;
  readonly policy: string;
  readonly serial: string;
  /** What this verdict does not cover (law 11). */
  readonly notChecked: readonly string[];
}

/**
 * Builds a query for a digest: with a fresh nonce, asking for the authority's certificate, without which a token can
 * only be verified by who has it from elsewhere.
 *
 * @throws {BoundbookError} OPENSSL_UNAVAILABLE
 */
export async function timestampQuery(digest: Digest, options: TimestampOptions = {}): Promise<Buffer> {
  const openssl = options.openssl ?? 'openssl';
  await requireOpenssl(openssl);
  const result = await runOpenssl(openssl, ['ts', '-query', '-sha256', '-digest', hexOf(digest), '-cert']);
  if (!result.ok || result.stdout.length === 0) {
    throw new BoundbookError('OPENSSL_UNAVAILABLE', 'openssl could not build the query', {
      evidence: { openssl: result.stderr },
    });
  }
  return result.stdout;
}

/**
 * Verifies a time stamp: that the authority under a trusted root signed this digest, and when.
 *
 * @throws {BoundbookError} TIMESTAMP_INVALID with what openssl said; OPENSSL_UNAVAILABLE; FILE_UNWRITABLE, DISK_FULL
 * for the temporary folder
 */
export async function verifyTimestamp(
  evidence: TimestampEvidence,
  options: TimestampOptions = {},
): Promise<VerifiedTimestamp> {
  const openssl = options.openssl ?? 'openssl';
  const { bare, info } = readTimestamp(evidence.response);
  assertImprint(info, evidence.digest);
  await requireOpenssl(openssl);
  await inTemporaryFolder(async (folder) => {
    const files = await writeEvidence(folder, evidence);
    const token = ['-in', files.response, ...(bare ? ['-token_in'] : [])];
    const trust = [
      ...['-CAfile', files.roots],
      ...(files.chain === null ? [] : ['-untrusted', files.chain]),
      ...['-attime', String(evidence.validAt ?? info.seconds)],
    ];
    await verifyWith(openssl, ['-digest', hexOf(evidence.digest), ...token, ...trust]);
    if (files.query !== null) await verifyWith(openssl, ['-queryfile', files.query, ...token, ...trust]);
    await compareTime(openssl, token, info);
  });
  return verdictOf(info, evidence);
}

/** openssl compares the bytes of the digest only; which function they come from is compared here. */
function assertImprint(info: TimestampInfo, digest: Digest): void {
  if (info.hash === SHA256_OID && info.digest.toString('hex') === hexOf(digest)) return;
  throw new BoundbookError('TIMESTAMP_INVALID', 'the time stamp is of something else', {
    hint: 'It belongs to another file or another version of it.',
    evidence: { expected: digest, actual: info.digest.toString('hex'), hash_oid: info.hash },
  });
}

interface EvidenceFiles {
  readonly response: string;
  readonly roots: string;
  readonly chain: string | null;
  readonly query: string | null;
}

async function writeEvidence(folder: string, evidence: TimestampEvidence): Promise<EvidenceFiles> {
  const write = async (name: string, bytes: Uint8Array): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, bytes, { mode: 0o600, flag: 'wx' });
    return path;
  };
  return {
    response: await write('response', evidence.response),
    roots: await write('roots.pem', evidence.roots),
    chain: evidence.chain === undefined ? null : await write('chain.pem', evidence.chain),
    query: evidence.query === undefined ? null : await write('query', evidence.query),
  };
}

async function verifyWith(openssl: string, args: readonly string[]): Promise<void> {
  const result = await runOpenssl(openssl, ['ts', '-verify', ...args]);
  // Exit status and words must agree; either alone has been wrong in some version.
  if (result.ok && /^Verification: OK$/m.test(`${result.stdout.toString('utf8')}\n${result.stderr}`)) return;
  throw new BoundbookError(
    'TIMESTAMP_INVALID',
    `the time stamp does not verify: ${reasonOf(result.stderr)}`,
    {
      hint: 'Check that the given roots are those of the authority, and that the file is the one it sent.',
      evidence: { openssl: result.stderr, authority_trusted: !UNTRUSTED.test(result.stderr) },
    },
  );
}

/** What openssl says when the chain of certificates is at fault; the signature itself is judged after it. */
const UNTRUSTED = /certificate verify error|Verify error:/;

/** Whether a token failed because no given root stands behind its certificate: then nothing is known of it. */
export function isUntrustedAuthority(error: BoundbookError): boolean {
  const { code, evidence } = error;
  if (code !== 'TIMESTAMP_INVALID' || typeof evidence !== 'object' || evidence === null) return false;
  return 'authority_trusted' in evidence && evidence.authority_trusted === false;
}

/** Our reading of the token must be the reading of the program that verified it. */
async function compareTime(openssl: string, token: readonly string[], info: TimestampInfo): Promise<void> {
  const { stdout } = await runOpenssl(openssl, ['ts', '-reply', ...token, '-text']);
  const [, said] = /^Time stamp: (.+)$/m.exec(stdout.toString('utf8')) ?? [];
  if (said !== undefined && said.replace(/ +/g, ' ') === opensslTime(info)) return;
  throw new BoundbookError('TIMESTAMP_INVALID', 'the time stamp has two readings', {
    evidence: { ours: info.time, openssl: said ?? null },
  });
}

/** A time as openssl prints it: `Nov 30 04:49:38.971 2026 GMT`. */
function opensslTime(info: TimestampInfo): string {
  const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
  const [, year, month, day, clock] = /^(\d+)-(\d+)-(\d+)T(.+)Z$/.exec(info.time) ?? [];
  return `${months[Number(month) - 1]} ${Number(day)} ${clock} ${year} GMT`;
}

function verdictOf(info: TimestampInfo, evidence: TimestampEvidence): VerifiedTimestamp {
  const [, fraction = '0'] = /\.(\d+)Z$/.exec(info.time) ?? [];
  const part = Number(`0.${fraction}`);
  const inaccuracy = Number(info.accuracy ?? 0n) / 1e6;
  return {
    time: info.time,
    noLaterThan: info.seconds + Math.ceil(part + inaccuracy),
    noEarlierThan: info.seconds + Math.floor(part - inaccuracy),
    policy: info.policy,
    serial: info.serial.toString(16),
    notChecked: [
      'whether the certificate of the time-stamping authority was revoked',
      ...(info.accuracy === null
        ? ['how accurate the clock of the authority is: the token does not say']
        : []),
      ...(evidence.query === undefined
        ? ['whether the token answers the query that was sent: none was given']
        : []),
    ],
  };
}

function reasonOf(stderr: string): string {
  const reasons = [...stderr.matchAll(/(?:Verify error:|:)([^:\n]+)$/gm)].map(
    (match) => match[1]?.trim() ?? '',
  );
  return (
    reasons
      .filter((reason) => reason !== '')
      .join('; ')
      .slice(0, 300) || 'openssl gave no reason'
  );
}

async function inTemporaryFolder(act: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'boundbook-timestamp-')).catch((error: unknown) => {
    throw writeError(tmpdir(), error);
  });
  try {
    await act(folder);
  } catch (error) {
    throw writeError(folder, error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
