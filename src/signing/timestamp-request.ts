import { BoundbookError } from '../core/errors.js';
import { childrenOf, expectTag, integerOf, oidOf, readDer, TAG } from './der.js';
import type { TimestampInfo } from './timestamp-token.js';

/** What an RFC 3161 query asks for, and whether a token answers it. Pure: bytes in, values out. */

const MAX_BYTES = 16_384;

export interface TimestampRequest {
  /** Object identifier of the hash function, and the digest to be stamped. */
  readonly hash: string;
  readonly digest: Buffer;
  /** What the answer must repeat; null when the query has none. */
  readonly nonce: bigint | null;
}

/** Reads a TimeStampReq (RFC 3161, 2.4.1). @throws {BoundbookError} TIMESTAMP_INVALID for another form. */
export function readTimestampRequest(bytes: Uint8Array): TimestampRequest {
  if (bytes.length > MAX_BYTES) refuse(`it has more than ${MAX_BYTES} bytes`);
  const [version, imprint, ...optional] = childrenOf(readDer(Buffer.from(bytes)), TAG.sequence);
  if (integerOf(expectTag(version, TAG.integer)) !== 1n) refuse('it is not of version 1');
  const [algorithm, digest] = childrenOf(imprint, TAG.sequence);
  const [hash] = childrenOf(algorithm, TAG.sequence);
  // After the imprint: policy (OID), nonce (INTEGER), certReq (BOOLEAN), extensions, each at most once.
  const nonce = optional.find(({ tag }) => tag === TAG.integer);
  return {
    hash: oidOf(hash),
    digest: expectTag(digest, TAG.octetString).content,
    nonce: nonce === undefined ? null : integerOf(nonce),
  };
}

/**
 * Whether a token repeats the digest and the nonce of a query.
 *
 * @throws {BoundbookError} TIMESTAMP_INVALID with both sides. Nothing is verified.
 */
export function assertAnswers(info: TimestampInfo, request: TimestampRequest): void {
  if (info.hash !== request.hash || !info.digest.equals(request.digest)) {
    throw new BoundbookError('TIMESTAMP_INVALID', 'the time stamp is of something else', {
      hint: 'It belongs to another file or another version of it.',
      evidence: { asked: request.digest.toString('hex'), answered: info.digest.toString('hex') },
    });
  }
  if (request.nonce === null || info.nonce === request.nonce) return;
  throw new BoundbookError(
    'TIMESTAMP_INVALID',
    'the time stamp does not answer this query: its nonce is another',
    {
      hint: 'It may be an old answer that was sent again. Ask anew.',
      evidence: { asked: request.nonce.toString(16), answered: info.nonce?.toString(16) ?? null },
    },
  );
}

function refuse(reason: string): never {
  throw new BoundbookError('TIMESTAMP_INVALID', `the time-stamp query is refused: ${reason}`, {
    hint: 'Make a new one with `boundbook timestamp --query-out FILE`.',
  });
}
