import { Agent, request } from 'undici';
import { BoundbookError, systemCode } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';

/**
 * Asks a time-stamping authority over HTTP (RFC 3161, 3.4): one request, one answer. No redirect is followed, so that
 * what is sent goes where the person said.
 */

const QUERY_TYPE = 'application/timestamp-query';
const REPLY_TYPE = 'application/timestamp-reply';
const MAX_BYTES = 1_000_000;
const TIMEOUT_MS = 30_000;

export interface AuthorityOptions {
  /** For the whole exchange, in milliseconds. */
  readonly timeoutMs?: number;
}

/**
 * Posts a query and returns the body of the answer, which is neither read nor verified here.
 *
 * @param url `http:` or `https:`, without user name and password
 * @throws {BoundbookError} USAGE for another kind of address; AUTHORITY_FAILED with what came instead of an answer
 */
export async function askAuthority(
  url: string,
  query: Uint8Array,
  options: AuthorityOptions = {},
): Promise<Buffer> {
  const address = parseAddress(url);
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const agent = new Agent({ connectTimeout: timeoutMs, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { statusCode, headers, body } = await request(address, {
      method: 'POST',
      headers: { 'content-type': QUERY_TYPE, accept: REPLY_TYPE },
      body: Buffer.from(query),
      dispatcher: agent,
      signal,
    });
    assertAnswer(url, statusCode, headers);
    return await readBody(url, body);
  } catch (error) {
    if (error instanceof BoundbookError) throw error;
    if (signal.aborted)
      throw failed(url, `it did not answer within ${timeoutMs / 1000} seconds`, { cause: error });
    throw failed(url, `the connection failed (${causeOf(error)})`, { cause: error });
  } finally {
    await agent.destroy();
  }
}

function parseAddress(url: string): URL {
  const address = URL.canParse(url) ? new URL(url) : null;
  const accepted = address !== null && (address.protocol === 'http:' || address.protocol === 'https:');
  if (accepted && address.username === '' && address.password === '') return address;
  throw new BoundbookError(
    'USAGE',
    `${JSON.stringify(url)} is not an http or https address without a password`,
    {
      hint: 'Take the address from the authority, for example --tsa https://tsa.example/tsr. For one that asks for more, use --query-out and --response.',
    },
  );
}

function assertAnswer(
  url: string,
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): void {
  if (status >= 300 && status < 400) {
    throw failed(url, `it sends elsewhere (status ${status}), which is not followed`, {
      evidence: { status, location: String(headers.location ?? '').slice(0, 500) },
      hint: 'If that address is the authority’s own, give it with --tsa.',
    });
  }
  if (status !== 200) throw failed(url, `it answered with status ${status}`, { evidence: { status } });
  const type = String(headers['content-type'] ?? '').slice(0, 200);
  if (type.split(';')[0]?.trim().toLowerCase() === REPLY_TYPE) return;
  throw failed(url, `it answered with ${type === '' ? 'no content type' : type}, not with ${REPLY_TYPE}`, {
    evidence: { content_type: type },
  });
}

async function readBody(url: string, body: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > MAX_BYTES) throw failed(url, `its answer has more than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function causeOf(error: unknown): string {
  const code = systemCode(error);
  if (code !== undefined) return code;
  return error instanceof Error ? error.message.slice(0, 200) : 'unknown';
}

function failed(
  url: string,
  reason: string,
  details: { hint?: string; evidence?: JsonValue; cause?: unknown } = {},
): BoundbookError {
  return new BoundbookError('AUTHORITY_FAILED', `no time stamp from ${url}: ${reason}`, {
    hint: 'Nothing was written. Try again, or another authority; --query-out FILE goes without this connection.',
    ...details,
  });
}
