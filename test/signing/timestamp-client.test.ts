import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { askAuthority } from '../../src/signing/timestamp-client.js';
import { rejectionOf } from './support.js';
import { type Answer, flood, reply, startTsa, type TsaServer } from './tsa-server.js';

const QUERY = Buffer.from('a query');
const servers: TsaServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(answer: Answer): Promise<TsaServer> {
  const server = await startTsa(answer);
  servers.push(server);
  return server;
}

describe('asking a time-stamping authority', () => {
  it('posts the query as it is and returns the answer as it is', async () => {
    const server = await serve((query, response) =>
      reply(response, Buffer.concat([query, Buffer.of(0, 255)])),
    );
    expect(await askAuthority(server.url, QUERY)).toEqual(Buffer.concat([QUERY, Buffer.of(0, 255)]));
    expect(server.queries).toEqual([QUERY]);
    expect(server.requests).toEqual(['POST application/timestamp-query']);
  });

  it('takes parameters and capitals of the content type', async () => {
    const server = await serve((_, response) =>
      reply(response, QUERY, 'Application/Timestamp-Reply; charset=x'),
    );
    expect(await askAuthority(server.url, QUERY)).toEqual(QUERY);
  });

  const wrong: readonly (readonly [name: string, answer: Answer, message: RegExp])[] = [
    ['500', (_, response) => response.writeHead(500).end('no'), /status 500/],
    ['404', (_, response) => response.writeHead(404).end(), /status 404/],
    [
      'a page of HTML',
      (_, response) => reply(response, Buffer.from('<html>'), 'text/html'),
      /answered with text\/html, not with application\/timestamp-reply/,
    ],
    ['no content type', (_, response) => response.writeHead(200).end('x'), /no content type/],
    ['100 MB', (_, response) => flood(response, 100_000_000), /more than 1000000 bytes/],
    ['a closed connection', (_, response) => response.destroy(), /the connection failed/],
    [
      'a body that ends too soon',
      (_, response) => {
        response.writeHead(200, {
          'content-type': 'application/timestamp-reply',
          'content-length': 100,
        });
        response.write('x', () => response.destroy());
      },
      /the connection failed/,
    ],
  ];
  it.each(wrong)('%s is told as such', async (_, answer, message) => {
    const server = await serve(answer);
    const error = await rejectionOf(askAuthority(server.url, QUERY));
    expect(error.code).toBe('AUTHORITY_FAILED');
    expect(error.exitCode).toBe(5);
    expect(error.message).toMatch(message);
    expect(error.message).toContain(server.url);
  });

  it.each([301, 302, 303, 307, 308])(
    'a redirect with status %i is named and not followed',
    async (status) => {
      const target = await serve((query, response) => reply(response, query));
      const server = await serve((_, response) => {
        response.writeHead(status, { location: target.url }).end();
      });
      const error = await rejectionOf(askAuthority(server.url, QUERY));
      expect(error).toMatchObject({ code: 'AUTHORITY_FAILED', evidence: { status, location: target.url } });
      expect(target.queries).toEqual([]);
    },
  );

  it.each([
    ['before the head of an answer', () => undefined],
    [
      'in the middle of one',
      (_: Buffer, response: Parameters<Answer>[1]) => {
        response.writeHead(200, { 'content-type': 'application/timestamp-reply' });
        response.write('x');
      },
    ],
  ] as const)('one that falls silent %s is given up', async (_, answer) => {
    const server = await serve(answer);
    const error = await rejectionOf(askAuthority(server.url, QUERY, { timeoutMs: 250 }));
    expect(error.code).toBe('AUTHORITY_FAILED');
    expect(error.message).toContain('did not answer within 0.25 seconds');
  });

  it('a refused connection, a foreign protocol and an untrusted certificate', async () => {
    const closed = await startTsa(() => undefined);
    await closed.close();
    expect((await rejectionOf(askAuthority(closed.url, QUERY))).message).toContain('ECONNREFUSED');

    const socket = createSocketServer((connection) => {
      connection.on('error', () => undefined).resume();
      connection.end('220 mail.example ESMTP\r\n');
    });
    await new Promise<void>((resolve) => socket.listen(0, '127.0.0.1', resolve));
    const { port } = socket.address() as AddressInfo;
    const garbled = await rejectionOf(askAuthority(`http://127.0.0.1:${port}/`, QUERY));
    expect(garbled.code).toBe('AUTHORITY_FAILED');
    const plain = await rejectionOf(askAuthority(`https://127.0.0.1:${port}/`, QUERY));
    expect(plain.code).toBe('AUTHORITY_FAILED');
    await new Promise((resolve) => socket.close(resolve));

    const { key, cert } = selfSigned();
    const tls = createTlsServer({ key, cert }, (_, response) => reply(response, QUERY));
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    const address = tls.address() as AddressInfo;
    const untrusted = await rejectionOf(askAuthority(`https://127.0.0.1:${address.port}/`, QUERY));
    expect(untrusted).toMatchObject({ code: 'AUTHORITY_FAILED' });
    expect(untrusted.message).toContain('DEPTH_ZERO_SELF_SIGNED_CERT');
    tls.closeAllConnections();
    await new Promise((resolve) => tls.close(resolve));
  });

  it.each([
    'tsa.example/tsr',
    'ftp://tsa.example/',
    'file:///etc/passwd',
    'javascript:0',
    '',
    'https://user:secret@tsa.example/',
  ])('%j is no address of an authority', async (url) => {
    const error = await rejectionOf(askAuthority(url, QUERY));
    expect(error.code).toBe('USAGE');
  });
});

function selfSigned(): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-tls-'));
  try {
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    const names = ['-subj', '/CN=127.0.0.1', '-days', '2', '-keyout', key, '-out', cert];
    execFileSync('openssl', [...args, ...names], { stdio: 'ignore' });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
