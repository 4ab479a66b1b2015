import { createECDH, createPublicKey, verify } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { type Digest, digestOf } from '../../src/core/digest.js';
import {
  formatEnvelope,
  parseEnvelope,
  preAuthEncoding,
  signEnvelope,
  verifyEnvelope,
} from '../../src/signing/dsse.js';
import { generateKey, signerKey, verifierKey } from '../../src/signing/keys.js';
import {
  formatStatement,
  MANIFEST_PREDICATE,
  type ManifestPredicate,
  manifestStatement,
  PAYLOAD_TYPE,
  parseStatement,
  type ReportPredicate,
  reportStatement,
  signStatement,
  verifyStatement,
} from '../../src/signing/statement.js';
import { errorOf } from './support.js';

const TYPE = 'http://example.com/HelloWorld';
const BODY = Buffer.from('hello world');
/** protocol.md, "Test Vectors": P-256, raw r and s. */
const VECTOR =
  '{"payload": "aGVsbG8gd29ybGQ=",\n "payloadType": "http://example.com/HelloWorld",\n "signatures": [{"sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}]}';

describe('the published vector', () => {
  it('has our pre-authentication encoding, and its signature verifies over it', () => {
    const envelope = parseEnvelope(Buffer.from(VECTOR));
    expect(envelope.payload).toEqual(BODY);
    const pae = preAuthEncoding(envelope.payloadType, envelope.payload);
    expect(pae.toString()).toBe('DSSEv1 29 http://example.com/HelloWorld 11 hello world');
    const ecdh = createECDH('prime256v1');
    const secret = 97358161215184420915383655311931858321456579547487070936769975997791359926199n;
    ecdh.setPrivateKey(Buffer.from(secret.toString(16).padStart(64, '0'), 'hex'));
    const point = ecdh.getPublicKey();
    const key = createPublicKey({
      format: 'jwk',
      key: {
        kty: 'EC',
        crv: 'P-256',
        x: point.subarray(1, 33).toString('base64url'),
        y: point.subarray(33).toString('base64url'),
      },
    });
    const [signature] = envelope.signatures;
    expect(verify('sha256', pae, { key, dsaEncoding: 'ieee-p1363' }, signature?.bytes ?? Buffer.of())).toBe(
      true,
    );
  });

  it('lengths count bytes, not characters', () => {
    expect(preAuthEncoding('tÿpe', Buffer.from('ü')).toString()).toBe('DSSEv1 5 tÿpe 2 ü');
    expect(preAuthEncoding('', Buffer.of()).toString()).toBe('DSSEv1 0  0 ');
  });

  it('no two pairs of type and body share an encoding', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (a, b, c, d) => {
        const same = preAuthEncoding(a, Buffer.from(b)).equals(preAuthEncoding(c, Buffer.from(d)));
        expect(same).toBe(a === c && b === d);
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});

describe('envelopes', () => {
  const [a, b, c] = [generateKey('a.example'), generateKey('b.example'), generateKey('c.example')];
  const trust = (keys: readonly (typeof a)[], threshold = 1): Parameters<typeof verifyEnvelope>[1] => ({
    payloadType: TYPE,
    keys: keys.map((key) => key.verifier),
    threshold,
  });
  const signed = signEnvelope(TYPE, BODY, [a, b]);

  it('round-trip as bytes and verify', () => {
    const envelope = parseEnvelope(formatEnvelope(signed));
    expect(envelope).toEqual(signed);
    const verified = verifyEnvelope(envelope, trust([a, b, c], 2));
    expect(verified.payload).toEqual(BODY);
    expect(verified.keys.map((key) => key.name)).toEqual(['a.example', 'b.example']);
  });

  it('a threshold counts keys, not signatures', () => {
    const [first] = signed.signatures;
    const repeated = {
      ...signed,
      signatures: Array.from({ length: 5 }, () => first ?? signed.signatures[1]),
    };
    const envelope = { ...repeated, signatures: repeated.signatures.filter((entry) => entry !== undefined) };
    expect(errorOf(() => verifyEnvelope(envelope, trust([a, b], 2))).code).toBe('SIGNATURE_INVALID');
    // One key under two names is one key.
    const alias = signerKey('alias.example', 'ed25519', a.privateKey);
    expect(
      errorOf(() => verifyEnvelope(signEnvelope(TYPE, BODY, [a, alias]), trust([a, alias], 2))).code,
    ).toBe('USAGE');
    expect(
      errorOf(() => verifyEnvelope(signEnvelope(TYPE, BODY, [a, alias]), trust([a, alias, b], 2))).code,
    ).toBe('SIGNATURE_INVALID');
  });

  it('thresholds outside the keys are a mistake of the caller', () => {
    for (const threshold of [0, -1, 3, 1.5, Number.NaN]) {
      expect(errorOf(() => verifyEnvelope(signed, trust([a, b], threshold))).code).toBe('USAGE');
    }
    expect(errorOf(() => verifyEnvelope(signed, trust([], 1))).code).toBe('USAGE');
  });

  it('key ids decide nothing', () => {
    const swapped = {
      ...signed,
      signatures: signed.signatures.map(({ bytes }, i) => ({
        bytes,
        keyid: signed.signatures[1 - i]?.keyid ?? '',
      })),
    };
    expect(verifyEnvelope(swapped, trust([a, b], 2)).keys).toHaveLength(2);
    const stolen = { ...signEnvelope(TYPE, BODY, [c]) };
    const posing = {
      ...stolen,
      signatures: stolen.signatures.map(({ bytes }) => ({ bytes, keyid: 'a.example' })),
    };
    expect(errorOf(() => verifyEnvelope(posing, trust([a]))).code).toBe('SIGNATURE_INVALID');
  });

  it('a bad signature beside a good one is skipped', () => {
    const junk = { keyid: '', bytes: Buffer.from('short') };
    const mixed = {
      ...signed,
      signatures: [junk, { keyid: '', bytes: Buffer.alloc(64) }, ...signed.signatures],
    };
    expect(verifyEnvelope(mixed, trust([a])).keys).toHaveLength(1);
  });

  it('type and payload are bound', () => {
    expect(
      errorOf(() => verifyEnvelope({ ...signed, payload: Buffer.from('hello world!') }, trust([a]))).code,
    ).toBe('SIGNATURE_INVALID');
    expect(errorOf(() => verifyEnvelope({ ...signed, payloadType: `${TYPE}2` }, trust([a]))).code).toBe(
      'SIGNATURE_INVALID',
    );
    const other = signEnvelope('text/plain', BODY, [a]);
    expect(errorOf(() => verifyEnvelope(other, trust([a]))).code).toBe('ENVELOPE_INVALID');
  });

  it('standard and URL-safe base64 are taken, padded or not', () => {
    const bytes = Buffer.from([0xfb, 0xff, 0xbf, 0xfe]);
    const envelope = formatEnvelope(signEnvelope(TYPE, bytes, [a])).toString();
    expect(envelope).toContain('+/+//g==');
    for (const text of ['+/+//g==', '-_-__g==', '-_-__g']) {
      const read = parseEnvelope(Buffer.from(envelope.replace('+/+//g==', text)));
      expect(verifyEnvelope(read, trust([a])).payload).toEqual(bytes);
    }
  });

  const good = formatEnvelope(signed).toString();
  it.each([
    ['mixed alphabets', good.replace('aGVsbG8gd29ybGQ=', '+/+/_-_-')],
    ['junk in base64', good.replace('aGVsbG8gd29ybGQ=', 'aGVs bG8gd29ybGQ=')],
    ['trailing bits', good.replace('aGVsbG8gd29ybGQ=', 'aGVsbG8gd29ybGR=')],
    ['no signatures', good.replace(/\[.*\]/, '[]')],
    ['no payload', good.replace('"payload"', '"pay"')],
    ['an empty type', good.replace(TYPE, '')],
    ['a number for a signature', good.replace(/"sig":"[^"]*"/, '"sig":1')],
    ['a key twice', good.replace('{"payload"', '{"payload":"","payload"')],
    ['a prototype key', good.replace('{"payload"', '{"__proto__":{},"payload"')],
    ['an array', '[]'],
    ['null', 'null'],
    ['half of it', good.slice(0, 100)],
    ['nothing', ''],
    ['101 signatures', good.replace(/\[.*\]/, `[${'{"sig":"AA=="},'.repeat(100)}{"sig":"AA=="}]`)],
    ['five megabytes', good + ' '.repeat(5_000_000)],
  ])('refuse %s', (_, text) => {
    expect(errorOf(() => parseEnvelope(Buffer.from(text))).code).toBe('ENVELOPE_INVALID');
  });
});

describe('statements', () => {
  const key = generateKey('planner.example');
  const about = { name: 'obme.r1.0123456789ab.json', digest: digestOf('manifest') };
  const predicate: ManifestPredicate = {
    name: 'obme',
    revision: 1,
    sequence: 3,
    execution_ready: true,
    slots: { count: 24, digest: digestOf('slots') },
    parent: digestOf('parent'),
    supersedes: null,
  };
  const report: ReportPredicate = {
    manifest: digestOf('manifest'),
    ledger: { id: '0123456789abcdef'.repeat(2), size: 120, root: digestOf('root') },
    slots: { planned: 24, settled: 23, unresolved: 1, pending: 0 },
    unblinded: true,
  };
  const trust = { keys: [key.verifier], threshold: 1 };

  it('about a manifest have exactly these bytes', () => {
    const statement = manifestStatement(about, predicate);
    expect(formatStatement(statement).toString()).toBe(
      `{"_type":"https://in-toto.io/Statement/v1","predicate":{"execution_ready":true,"name":"obme","parent":"${digestOf('parent')}","revision":1,"sequence":3,"slots":{"count":24,"digest":"${digestOf('slots')}"},"supersedes":null},"predicateType":"https://boundbook.dev/predicate/manifest/v1","subject":[{"digest":{"sha256":"${digestOf('manifest').slice(7)}"},"name":"obme.r1.0123456789ab.json"}]}`,
    );
    expect(parseStatement(formatStatement(statement))).toEqual(statement);
  });

  it('sign, travel and verify', () => {
    for (const statement of [manifestStatement(about, predicate), reportStatement(about, report)]) {
      const envelope = parseEnvelope(formatEnvelope(signStatement(statement, [key])));
      expect(envelope.payloadType).toBe('application/vnd.in-toto+json');
      const verified = verifyStatement(envelope, trust, about.digest);
      expect(verified.statement).toEqual(statement);
      expect(verified.keys).toEqual([key.verifier]);
    }
  });

  it('about another file, or by another key, are refused', () => {
    const envelope = signStatement(manifestStatement(about, predicate), [key]);
    const error = errorOf(() => verifyStatement(envelope, trust, digestOf('another')));
    expect(error.code).toBe('ENVELOPE_INVALID');
    expect(error.evidence).toEqual({ expected: digestOf('another'), actual: digestOf('manifest') });
    const stranger = { keys: [generateKey('planner.example').verifier], threshold: 1 };
    expect(errorOf(() => verifyStatement(envelope, stranger, about.digest)).code).toBe('SIGNATURE_INVALID');
    const asCosigner = verifierKey('planner.example', 'cosignature', key.verifier.publicKey);
    expect(verifyStatement(envelope, { keys: [asCosigner], threshold: 1 }, about.digest).keys).toHaveLength(
      1,
    );
  });

  const json = (change: (value: Record<string, unknown>) => unknown): Buffer =>
    canonicalBytes(change(JSON.parse(formatStatement(manifestStatement(about, predicate)).toString())));
  const subject = { name: 'x', digest: { sha256: '0'.repeat(64) } };
  it.each([
    ['another statement version', json((s) => ({ ...s, _type: 'https://in-toto.io/Statement/v0.1' }))],
    ['an unknown predicate', json((s) => ({ ...s, predicateType: 'https://slsa.dev/provenance/v1' }))],
    [
      'the other predicate type',
      json((s) => ({ ...s, predicateType: 'https://boundbook.dev/predicate/report/v1' })),
    ],
    ['an unknown field', json((s) => ({ ...s, more: 1 }))],
    ['an unknown predicate field', json((s) => ({ ...s, predicate: { ...predicate, more: 1 } }))],
    ['a missing predicate field', json((s) => ({ ...s, predicate: { name: 'obme' } }))],
    ['no subject', json((s) => ({ ...s, subject: [] }))],
    ['two subjects', json((s) => ({ ...s, subject: [subject, subject] }))],
    [
      'a digest in capitals',
      json((s) => ({ ...s, subject: [{ ...subject, digest: { sha256: 'A'.repeat(64) } }] })),
    ],
    [
      'a second digest',
      json((s) => ({ ...s, subject: [{ ...subject, digest: { sha256: '0'.repeat(64), sha1: '' } }] })),
    ],
    [
      'a line break behind',
      Buffer.concat([formatStatement(manifestStatement(about, predicate)), Buffer.from('\n')]),
    ],
    ['white space', Buffer.from(JSON.stringify(manifestStatement(about, predicate), null, 1))],
    ['no object', Buffer.from('[]')],
    ['no JSON', Buffer.from('{')],
  ])('refuse %s', (_, bytes) => {
    expect(errorOf(() => parseStatement(bytes)).code).toBe('ENVELOPE_INVALID');
    const envelope = signEnvelope(PAYLOAD_TYPE, bytes, [key]);
    expect(errorOf(() => verifyStatement(envelope, trust, about.digest as Digest)).code).toBe(
      'ENVELOPE_INVALID',
    );
  });

  it('another payload type is refused even when it holds a statement', () => {
    const bytes = formatStatement(manifestStatement(about, predicate));
    const envelope = signEnvelope('application/json', bytes, [key]);
    expect(errorOf(() => verifyStatement(envelope, trust, about.digest)).code).toBe('ENVELOPE_INVALID');
    expect(MANIFEST_PREDICATE).toBe('https://boundbook.dev/predicate/manifest/v1');
  });
});
