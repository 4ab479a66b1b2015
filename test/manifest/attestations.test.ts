import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../src/core/digest.js';
import {
  type Attestations,
  attestationKind,
  attestationName,
  attestationsAbout,
  loadAttestations,
  queryLabel,
  readAttestation,
  storeAttestation,
  unnamedTokens,
} from '../../src/manifest/attestations.js';
import { formatEnvelope, signEnvelope } from '../../src/signing/dsse.js';
import { generateKey, keyIdText } from '../../src/signing/keys.js';
import { manifestStatement, signStatement } from '../../src/signing/statement.js';
import { timestampQuery } from '../../src/signing/timestamp.js';
import { readTimestampRequest } from '../../src/signing/timestamp-request.js';
import { type Authority, makeAuthority } from '../signing/authority.js';
import { errorOf, rejectionOf } from '../signing/support.js';
import { put, temporaryFolder } from './fixture.js';

const subject = digestOf('a manifest');
const other = digestOf('another');
const key = generateKey('planner');
const label = keyIdText(key.verifier.id);

function envelopeOf(about = subject): Buffer {
  const statement = manifestStatement(
    { name: 'tiny.r1.json', digest: about },
    {
      name: 'tiny',
      revision: 1,
      sequence: 1,
      execution_ready: false,
      slots: null,
      parent: null,
      supersedes: null,
    },
  );
  return formatEnvelope(signStatement(statement, [key]));
}

let authority: Authority;
let query: Buffer;
let response: Buffer;

beforeAll(async () => {
  authority = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
  query = await timestampQuery(subject);
  response = authority.answer(query);
});
afterAll(() => authority.remove());

async function filled(): Promise<string> {
  const root = temporaryFolder();
  await storeAttestation(root, label, 'envelope', envelopeOf());
  await storeAttestation(root, queryLabel(query), 'query', query);
  await storeAttestation(root, queryLabel(query), 'response', response);
  return root;
}

describe('the folder attestations/', () => {
  it('keeps each file under its name, read-only, and finds it by what it is about', async () => {
    const root = await filled();
    const stem = hexOf(subject).slice(0, 16);
    const names = [
      `${stem}.${label}.dsse.json`,
      `${stem}.${queryLabel(query)}.tsq`,
      `${stem}.${queryLabel(query)}.tsr`,
    ];
    expect(readdirSync(join(root, 'attestations')).sort()).toEqual([...names].sort());
    for (const name of names) expect(statSync(join(root, 'attestations', name)).mode & 0o777).toBe(0o444);
    const loaded = await loadAttestations(root);
    expect(loaded.damaged).toEqual([]);
    expect(loaded.all.map(({ kind, file }) => [kind, file]).sort()).toEqual(
      [
        ['envelope', names[0]],
        ['query', names[1]],
        ['response', names[2]],
      ].sort(),
    );
    expect(attestationsAbout(loaded, new Set([subject])).length).toBe(3);
    expect(attestationsAbout(loaded, new Set([other]))).toEqual([]);
    for (const one of loaded.all) {
      expect(one.bytes.equals(readFileSync(join(root, 'attestations', one.file)))).toBe(true);
      expect(one.subject).toBe(subject);
      if (one.kind === 'query') expect(one.request.nonce).toBe(readTimestampRequest(query).nonce);
      if (one.kind === 'response') expect(one.info.nonce).toBe(readTimestampRequest(query).nonce);
    }
  });

  it('holds none where there is no folder', async () => {
    expect(await loadAttestations(temporaryFolder())).toEqual({ all: [], damaged: [] });
  });

  it('leaves the same bytes as they are and never writes over others', async () => {
    const root = await filled();
    expect(await storeAttestation(root, label, 'envelope', envelopeOf())).toEqual({
      file: attestationName(subject, label, 'envelope'),
      existed: true,
    });
    const second = authority.answer(query);
    const error = await rejectionOf(storeAttestation(root, queryLabel(query), 'response', second));
    expect(error.code).toBe('FILE_EXISTS');
    const kept = readFileSync(
      join(root, 'attestations', attestationName(subject, queryLabel(query), 'response')),
    );
    expect(kept.equals(response)).toBe(true);
  });

  it('names tokens that no entry named, the earliest first, each once', async () => {
    const root = await filled();
    await storeAttestation(root, 'copy', 'response', response);
    const later = authority.answer(await timestampQuery(other));
    await storeAttestation(root, 'later', 'response', later);
    const loaded = await loadAttestations(root);
    const tokens = unnamedTokens(loaded, new Set());
    expect(tokens.map(({ digest }) => digest).sort()).toEqual([digestOf(response), digestOf(later)].sort());
    expect(unnamedTokens(loaded, new Set([digestOf(response)]))).toEqual([
      { digest: digestOf(later), bytes: later },
    ]);
    const at = (file: string, seconds: number): Attestations['all'][number] => {
      const one = readAttestation(file, response);
      return one.kind === 'response'
        ? { ...one, bytes: Buffer.from(file), info: { ...one.info, seconds } }
        : one;
    };
    const stem = hexOf(subject).slice(0, 16);
    const all = [at(`${stem}.a.tsr`, 30), at(`${stem}.b.tsr`, 10), at(`${stem}.c.tsr`, 20)];
    expect(
      unnamedTokens({ all, damaged: [] }, new Set()).map(({ bytes }) => bytes.toString().slice(17, 18)),
    ).toEqual(['b', 'c', 'a']);
  });
});

describe('hostile content', () => {
  const stem = hexOf(subject).slice(0, 16);
  const noStatement = formatEnvelope(signEnvelope('text/plain', Buffer.from('x'), [key]));
  const cases: readonly (readonly [name: string, file: string, bytes: () => Buffer, code: string])[] = [
    ['an envelope about another file', `${stem}.1.dsse.json`, () => envelopeOf(other), 'ENVELOPE_INVALID'],
    ['a payload that is no statement', `${stem}.1.dsse.json`, () => noStatement, 'ENVELOPE_INVALID'],
    ['no JSON', `${stem}.1.dsse.json`, () => Buffer.from('{'), 'ENVELOPE_INVALID'],
    ['an empty file', `${stem}.1.tsr`, () => Buffer.of(), 'FILE_EMPTY'],
    ['a token that is text', `${stem}.1.tsr`, () => Buffer.from('<html>'), 'TIMESTAMP_INVALID'],
    ['a query as a token', `${stem}.1.tsr`, () => query, 'TIMESTAMP_INVALID'],
    ['a token as a query', `${stem}.1.tsq`, () => response, 'TIMESTAMP_INVALID'],
    ['a token under another name', `${hexOf(other).slice(0, 16)}.1.tsr`, () => response, 'TIMESTAMP_INVALID'],
    ['an envelope that is too large', `${stem}.1.dsse.json`, () => Buffer.alloc(65_537), 'FILE_TOO_LARGE'],
    ['a query that is too large', `${stem}.1.tsq`, () => Buffer.alloc(16_385), 'FILE_TOO_LARGE'],
    ['a token that is too large', `${stem}.1.tsr`, () => Buffer.alloc(1_000_001), 'FILE_TOO_LARGE'],
  ];

  it.each(cases)('%s is listed as damaged', async (_, file, bytes, code) => {
    const root = await filled();
    put(root, `attestations/${file}`, bytes());
    const loaded = await loadAttestations(root);
    expect(loaded.all.length).toBe(3);
    expect(loaded.damaged.map(({ file: name, error }) => [name, error.code])).toEqual([[file, code]]);
  });

  it('follows no link and opens no folder or pipe', async () => {
    const root = await filled();
    const folder = join(root, 'attestations');
    symlinkSync(join(folder, `${stem}.${label}.dsse.json`), join(folder, `${stem}.link.dsse.json`));
    mkdirSync(join(folder, `${stem}.folder.tsr`));
    const { all, damaged } = await loadAttestations(root);
    expect(all.length).toBe(3);
    expect(damaged.map(({ file, error }) => [file, error.code])).toEqual([
      [`${stem}.folder.tsr`, 'FILE_NOT_REGULAR'],
      [`${stem}.link.dsse.json`, 'FILE_NOT_REGULAR'],
    ]);
  });

  it('passes over names that are not of the folder', async () => {
    const root = await filled();
    for (const name of [
      'README.md',
      `.${stem}.1.tsr.aabb.tmp`,
      'short.1.tsr',
      `${stem}.tsr`,
      `${stem}.a b.tsr`,
    ]) {
      expect(attestationKind(name), name).toBeNull();
      put(root, `attestations/${name}`, 'x');
    }
    expect((await loadAttestations(root)).damaged).toEqual([]);
  });

  it('a file in place of the folder is said', async () => {
    const root = temporaryFolder();
    put(root, 'attestations', 'x');
    expect((await rejectionOf(loadAttestations(root))).code).toBe('FILE_NOT_REGULAR');
  });

  it('what is no attestation is not stored', async () => {
    const root = temporaryFolder();
    for (const kind of ['envelope', 'query', 'response'] as const) {
      await rejectionOf(storeAttestation(root, 'x', kind, Buffer.from('no')));
    }
    expect(readdirSync(root)).toEqual([]);
  });
});

describe('queries', () => {
  it('are read strictly', () => {
    const request = readTimestampRequest(query);
    expect(request.digest.toString('hex')).toBe(hexOf(subject));
    expect(request.nonce).toBeGreaterThan(0n);
    for (const broken of [
      query.subarray(1),
      query.subarray(0, -1),
      Buffer.alloc(16_385),
      Buffer.of(0x30, 0),
    ]) {
      expect(errorOf(() => readTimestampRequest(broken)).code).toBe('TIMESTAMP_INVALID');
    }
  });
});
