import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import { BoundbookError } from '../../src/core/errors.js';
import { timestampQuery, verifyTimestamp } from '../../src/signing/timestamp.js';
import { readTimestamp } from '../../src/signing/timestamp-token.js';
import { type Authority, makeAuthority } from './authority.js';
import { errorOf, rejectionOf } from './support.js';

const digest = digestOf('a manifest');

describe.each([
  ['EC', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']],
  ['RSA', ['rsa:2048']],
] as const)('an authority with %s keys', (_, newKey) => {
  let authority: Authority;
  let query: Buffer;
  let response: Buffer;

  beforeAll(async () => {
    authority = makeAuthority(newKey);
    query = await timestampQuery(digest);
    response = authority.answer(query);
  });
  afterAll(() => authority.remove());

  const evidence = (): Parameters<typeof verifyTimestamp>[0] => ({
    response,
    digest,
    roots: authority.root,
    chain: authority.intermediate,
  });

  it('verifies, with the nonce when the query is given', async () => {
    const before = Math.floor(Date.now() / 1000);
    const verified = await verifyTimestamp({ ...evidence(), query });
    expect(Math.abs(Date.parse(verified.time) / 1000 - before)).toBeLessThan(600);
    expect(verified).toMatchObject({
      policy: '1.2.3.4.1',
      serial: '20',
      noLaterThan: Date.parse(verified.time) / 1000,
      notChecked: [
        'whether the certificate of the time-stamping authority was revoked',
        'how accurate the clock of the authority is: the token does not say',
      ],
    });
    expect((await verifyTimestamp(evidence())).notChecked.at(-1)).toContain('the query that was sent');
  });

  it('reads a fraction, an accuracy and SHA-512 signatures; the bound is rounded up', async () => {
    const answer = authority.answer(query, 'accurate');
    const { info } = readTimestamp(answer);
    expect(info.accuracy).toBe(2_500_100n);
    const verified = await verifyTimestamp({ ...evidence(), response: answer });
    const exact = Date.parse(verified.time) / 1000 + 2.5001;
    expect(verified.noLaterThan).toBeGreaterThanOrEqual(exact);
    expect(verified.noLaterThan).toBeLessThan(exact + 1.001);
  });

  it('takes a bare token', async () => {
    const token = authority.token(response);
    expect(readTimestamp(token)).toEqual({ bare: true, info: readTimestamp(response).info });
    expect((await verifyTimestamp({ ...evidence(), response: token })).policy).toBe('1.2.3.4.1');
  });

  it('certificates must be valid at the time that is asked for', async () => {
    const { seconds } = readTimestamp(response).info;
    await verifyTimestamp({ ...evidence(), validAt: seconds + 86_400 });
    for (const validAt of [0, seconds - 86_400, seconds + 31 * 86_400]) {
      const error = await rejectionOf(verifyTimestamp({ ...evidence(), validAt }));
      expect(error.code).toBe('TIMESTAMP_INVALID');
      expect(error.message).toMatch(/not yet valid|expired/);
    }
  });

  it('refuses other data, another root, a missing link and another query', async () => {
    const other = makeAuthority(newKey);
    try {
      const foreign = await timestampQuery(digest);
      const cases = {
        data: { ...evidence(), digest: digestOf('another manifest') },
        root: { ...evidence(), roots: other.root },
        link: { response, digest, roots: authority.root },
        query: { ...evidence(), query: foreign },
        otherData: { ...evidence(), query: await timestampQuery(digestOf('another manifest')) },
        noRoots: { ...evidence(), roots: Buffer.of() },
        noCertificates: { ...evidence(), roots: Buffer.from('no PEM\n') },
        signerAsRoot: {
          response: other.answer(foreign),
          digest,
          roots: authority.root,
          chain: other.intermediate,
        },
      };
      for (const [name, wrong] of Object.entries(cases)) {
        const error = await rejectionOf(verifyTimestamp(wrong));
        expect(error.code, name).toBe('TIMESTAMP_INVALID');
        expect(error.exitCode).toBe(4);
      }
    } finally {
      other.remove();
    }
  });

  it('a flipped bit is refused, or changes nothing of what is said', async () => {
    // CMS leaves some bytes unsigned (names of the issuer, parameters of algorithms), so that a token has many
    // encodings; what it says must have one. The 120 bytes after the first 70 hold the TSTInfo.
    const truth = await verifyTimestamp(evidence());
    const places = Array.from({ length: 60 }, (_, i) =>
      i < 30 ? 70 + 4 * i : Math.floor((i / 60) * response.length),
    );
    let refused = 0;
    for (const at of places) {
      const changed = Buffer.from(response);
      changed[at] = (changed[at] ?? 0) ^ 0x04;
      const outcome = await verifyTimestamp({ ...evidence(), response: changed }).catch(
        (error: unknown) => error,
      );
      if (outcome instanceof BoundbookError) {
        expect(outcome.code).toBe('TIMESTAMP_INVALID');
        refused++;
      } else {
        expect(outcome, `byte ${at}`).toEqual(truth);
      }
    }
    expect(refused).toBeGreaterThan(50);
  });

  it('refuses what is cut or longer', async () => {
    const longer = Buffer.concat([response, Buffer.of(0)]);
    for (const broken of [
      Buffer.of(),
      response.subarray(0, -1),
      response.subarray(1),
      longer,
      Buffer.from('no token'),
    ]) {
      expect((await rejectionOf(verifyTimestamp({ ...evidence(), response: broken }))).code).toBe(
        'TIMESTAMP_INVALID',
      );
    }
  });

  it('a refusal of the authority is told as such', async () => {
    const refusal = authority.answer(query, 'refusing');
    const error = await rejectionOf(verifyTimestamp({ ...evidence(), response: refusal }));
    expect(error.message).toContain('the authority refused (status 2)');
  });

  it('leaves nothing behind', async () => {
    const count = (): number =>
      readdirSync(tmpdir()).filter((name) => name.startsWith('boundbook-timestamp-')).length;
    const before = count();
    await verifyTimestamp(evidence());
    await rejectionOf(verifyTimestamp({ ...evidence(), roots: Buffer.from('x') }));
    expect(count()).toBe(before);
  });
});

describe('a certificate for another use', () => {
  it('stamps nothing', async () => {
    const authority = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], 'wrong_use');
    try {
      // openssl itself declines to sign with it, so that there is no token to take.
      let response: Buffer = Buffer.of();
      try {
        response = authority.answer(await timestampQuery(digest));
      } catch {
        // no answer
      }
      const wrong = { response, digest, roots: authority.root, chain: authority.intermediate };
      expect((await rejectionOf(verifyTimestamp(wrong))).code).toBe('TIMESTAMP_INVALID');
    } finally {
      authority.remove();
    }
  });
});

describe('queries', () => {
  it('hold the digest and a fresh nonce each time', async () => {
    const [first, second] = [await timestampQuery(digest), await timestampQuery(digest)];
    expect(first.toString('hex')).toContain(digest.slice('sha256:'.length));
    expect(first.equals(second)).toBe(false);
  });
});

describe('without openssl', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'boundbook-no-openssl-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const script = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    chmodSync(path, 0o755);
    return path;
  };

  it('a missing, a foreign and an old program are told apart from a bad time stamp', async () => {
    const programs = [
      join(folder, 'none'),
      folder,
      script('libre', '#!/bin/sh\necho "LibreSSL 3.9.0"\n'),
      script('old', '#!/bin/sh\necho "OpenSSL 1.0.2k"\n'),
      script('failing', '#!/bin/sh\nexit 1\n'),
    ];
    for (const openssl of programs) {
      const error = await rejectionOf(timestampQuery(digest, { openssl }));
      expect(error.code, openssl).toBe('OPENSSL_UNAVAILABLE');
      expect(error.exitCode).toBe(2);
    }
  });

  it('a program that says OK and fails, or fails to say OK, is not believed', async () => {
    const authority = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
    try {
      const response = authority.answer(await timestampQuery(digest));
      const evidence = { response, digest, roots: authority.root, chain: authority.intermediate };
      const version = 'if [ "$1" = version ]; then echo "OpenSSL 3.0.0"; exit 0; fi\n';
      for (const body of ['echo "Verification: OK"; exit 1', 'exit 0', 'echo "Verification: OK"; exit 0']) {
        const openssl = script('liar', `#!/bin/sh\n${version}${body}\n`);
        const error = await rejectionOf(verifyTimestamp(evidence, { openssl }));
        expect(error.code).toBe('TIMESTAMP_INVALID');
      }
    } finally {
      authority.remove();
    }
  });
});

describe('reading tokens', () => {
  it('random and nested bytes never throw anything untyped', () => {
    const nested = fc.array(
      fc.constantFrom(0x30, 0x80, 0x02, 0x06, 0xa0, 0x04, 0x18, 0, 1, 2, 0x84, 0xff, 0x1f),
    );
    fc.assert(
      fc.property(fc.oneof(nested, fc.array(fc.nat(255))), (bytes) => {
        expect(errorOf(() => readTimestamp(Buffer.from(bytes))).code).toBe('TIMESTAMP_INVALID');
      }),
      { seed: 3, numRuns: 3000 },
    );
    expect(errorOf(() => readTimestamp(Buffer.alloc(1_000_001))).code).toBe('TIMESTAMP_INVALID');
  });

  /** A token around hand-made fields of a TSTInfo. */
  const der = (tag: number, ...parts: (Buffer | string)[]): Buffer => {
    const content = Buffer.concat(
      parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'hex') : part)),
    );
    const length = content.length < 128 ? Buffer.of(content.length) : Buffer.of(0x81, content.length);
    return Buffer.concat([Buffer.of(tag), length, content]);
  };
  const tokenWith = (time: string): Buffer => {
    const imprint = der(0x30, der(0x30, '0609608648016503040201'), der(0x04, Buffer.alloc(32)));
    const info = der(0x30, '020101', '06042a030401', imprint, '020101', der(0x18, Buffer.from(time)));
    const content = der(0x30, '060b2a864886f70d0109100104', der(0xa0, der(0x04, info)));
    return der(0x30, '06092a864886f70d010702', der(0xa0, der(0x30, '020103', '3100', content)));
  };

  it.each([
    ['20261130044938Z', '2026-11-30T04:49:38Z'],
    ['20261130044938.971Z', '2026-11-30T04:49:38.971Z'],
    ['20240229235959Z', '2024-02-29T23:59:59Z'],
    ['20261130044938.000001Z', '2026-11-30T04:49:38.000001Z'],
  ])('%s is %s', (time, wanted) => {
    expect(readTimestamp(tokenWith(time)).info).toMatchObject({
      time: wanted,
      seconds: Math.floor(Date.parse(wanted) / 1000),
      hash: '2.16.840.1.101.3.4.2.1',
      policy: '1.2.3.4.1',
    });
  });

  it.each([
    '20230229000000Z',
    '20261301000000Z',
    '20261130240000Z',
    '20261130235960Z',
    '20261130044938',
    '20261130044938+0100',
    '202611300449Z',
    '20261130044938.Z',
    '20261130044938.10Z',
    '20261130044938,5Z',
    '2026113004493８Z',
    '',
  ])('%j is no time', (time) => {
    expect(errorOf(() => readTimestamp(tokenWith(time))).code).toBe('TIMESTAMP_INVALID');
  });
});
