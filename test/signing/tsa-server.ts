import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A time-stamping authority on loopback. What it does with a query is the test's choice. */
export interface TsaServer {
  readonly url: string;
  /** Queries that came, oldest first. */
  readonly queries: Buffer[];
  /** Number of requests by method and content type. */
  readonly requests: string[];
  readonly close: () => Promise<void>;
}

export type Answer = (query: Buffer, response: ServerResponse) => void;

export async function startTsa(answer: Answer): Promise<TsaServer> {
  const queries: Buffer[] = [];
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const query = Buffer.concat(pieces);
      queries.push(query);
      requests.push(`${request.method} ${request.headers['content-type']}`);
      answer(query, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/tsr`,
    queries,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers as an authority should, with these bytes. */
export function reply(response: ServerResponse, bytes: Buffer, type = 'application/timestamp-reply'): void {
  response.writeHead(200, { 'content-type': type, 'content-length': bytes.length }).end(bytes);
}

/** Sends zeros until nobody takes them or the count is reached. */
export function flood(response: ServerResponse, bytes: number): void {
  const piece = Buffer.alloc(65_536);
  let left = bytes;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= piece.length;
      if (!response.write(piece)) {
        response.once('drain', more);
        return;
      }
    }
    response.end();
  };
  response.writeHead(200, { 'content-type': 'application/timestamp-reply' });
  more();
}
