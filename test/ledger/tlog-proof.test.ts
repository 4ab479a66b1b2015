import { describe, expect, it } from 'vitest';
import { signCheckpoint, verifyCheckpoint } from '../../src/ledger/checkpoint.js';
import { HashTiles } from '../../src/ledger/hash-tiles.js';
import { leafHash } from '../../src/ledger/merkle.js';
import { inclusionProof, rootAt } from '../../src/ledger/proofs.js';
import { requireQuorum } from '../../src/ledger/quorum.js';
import {
  formatTlogProof,
  parseTlogProof,
  type TlogProof,
  verifyTlogProof,
} from '../../src/ledger/tlog-proof.js';
import { parsePolicy } from '../../src/ledger/witness-policy.js';
import { formatVerifierKey, generateKey } from '../../src/signing/keys.js';
import { errorOf } from '../signing/support.js';

const log = generateKey('ledger.example/obme');
const entries = Array.from({ length: 300 }, (_, i) => Buffer.from(`{"seq":${i}}`));
const leaves = entries.map(leafHash);
const tiles = new HashTiles((start, end) => leaves.slice(start, end));
for (const leaf of leaves) tiles.append(leaf);

const checkpoint = signCheckpoint(
  { origin: 'ledger.example/obme', size: 300n, root: rootAt(tiles, 300) },
  log,
);
const accept = (note: Buffer): ReturnType<typeof verifyCheckpoint> =>
  verifyCheckpoint(note, { logs: [log.verifier] });

function proofOf(index: number, extra?: Buffer): TlogProof {
  return {
    index: BigInt(index),
    hashes: inclusionProof(tiles, index, 300),
    checkpoint,
    ...(extra === undefined ? {} : { extra }),
  };
}

describe('proof files', () => {
  it('have the form of c2sp.org/tlog-proof', () => {
    const proof = proofOf(7, Buffer.from('slot 7'));
    const lines = proof.hashes.map((hash) => `${hash.toString('base64')}\n`).join('');
    expect(formatTlogProof(proof).toString()).toBe(
      `c2sp.org/tlog-proof@v1\nextra c2xvdCA3\nindex 7\n${lines}\n${checkpoint.toString()}`,
    );
    expect(parseTlogProof(formatTlogProof(proof))).toEqual(proof);
  });

  it('verify for every entry, and for no other', () => {
    for (const [i, entry] of entries.entries()) {
      const file = formatTlogProof(proofOf(i));
      expect(verifyTlogProof(file, entry, accept).index).toBe(BigInt(i));
      const other = entries[(i + 1) % entries.length] ?? Buffer.of();
      expect(errorOf(() => verifyTlogProof(file, other, accept)).code).toBe('PROOF_INVALID');
    }
  });

  it('of a ledger with one entry have no hashes', () => {
    const single = signCheckpoint(
      { origin: 'ledger.example/obme', size: 1n, root: leafHash(Buffer.of(1)) },
      log,
    );
    const file = formatTlogProof({ index: 0n, hashes: [], checkpoint: single });
    expect(file.toString()).toBe(`c2sp.org/tlog-proof@v1\nindex 0\n\n${single.toString()}`);
    expect(verifyTlogProof(file, Buffer.of(1), accept).checkpoint.size).toBe(1n);
    expect(errorOf(() => verifyTlogProof(file, Buffer.of(2), accept)).code).toBe('PROOF_INVALID');
  });

  it('every flipped bit is found', () => {
    const file = formatTlogProof(proofOf(299));
    const entry = entries[299] ?? Buffer.of();
    for (let i = 0; i < file.length * 8; i++) {
      const copy = Buffer.from(file);
      copy[i >> 3] = (copy[i >> 3] ?? 0) ^ (1 << (i & 7));
      expect(errorOf(() => verifyTlogProof(copy, entry, accept)).code).toMatch(
        /^(NOTE|PROOF|SIGNATURE)_INVALID$/,
      );
    }
  });

  const good = formatTlogProof(proofOf(5)).toString();
  const [first = ''] = proofOf(5).hashes.map((hash) => hash.toString('base64'));
  it.each([
    ['another header', good.replace('@v1', '@v2')],
    ['no header', good.replace('c2sp.org/tlog-proof@v1\n', '')],
    ['no index', good.replace('index 5\n', '')],
    ['a leading zero', good.replace('index 5', 'index 05')],
    ['a sign', good.replace('index 5', 'index +5')],
    ['a word', good.replace('index 5', 'index five')],
    ['2^64', good.replace('index 5', 'index 18446744073709551616')],
    ['a hundred digits', good.replace('index 5', `index ${'1'.repeat(100)}`)],
    ['two spaces', good.replace('index 5', 'index  5')],
    ['the extra line behind the index', good.replace('index 5\n', 'index 5\nextra AAAA\n')],
    ['an empty extra line', good.replace('index', 'extra \nindex')],
    ['a second extra line', good.replace('index', 'extra AAAA\nextra AAAA\nindex')],
    ['extra data that is no base64', good.replace('index', 'extra !!\nindex')],
    ['a hash without padding', good.replace(first, first.slice(0, -1))],
    ['a hash of 33 bytes', good.replace(first, Buffer.alloc(33).toString('base64'))],
    ['65 hashes', good.replace(first, `${first}\n`.repeat(56) + first)],
    ['a blank line among the hashes', good.replace(first, `\n${first}`)],
    ['no blank line', good.replace('=\n\nledger', '=\nledger')],
    ['carriage returns', good.replaceAll('\n', '\r\n')],
    ['no checkpoint', good.slice(0, good.indexOf('\n\n') + 2)],
    ['a checkpoint with an extension line', good.replace(/(300\n.*\n)/, '$1more\n')],
    ['a byte-order mark', `\ufeff${good}`],
    ['something behind', `${good}more\n`],
    ['nothing', ''],
    ['two megabytes', good + 'x'.repeat(2_000_000)],
  ])('refuses %s', (_, text) => {
    expect(errorOf(() => parseTlogProof(Buffer.from(text))).code).toBe('NOTE_INVALID');
  });

  it('refuses bytes that are not UTF-8', () => {
    const bytes = Buffer.from(good);
    bytes[3] = 0xff;
    expect(errorOf(() => parseTlogProof(bytes)).code).toBe('NOTE_INVALID');
  });

  it('passes on what the acceptance of the checkpoint says', () => {
    const policy = parsePolicy(
      Buffer.from(
        `log ${formatVerifierKey(log.verifier)}\nwitness w ${formatVerifierKey(generateKey('w', 'cosignature').verifier)}\nquorum w\n`,
      ),
    );
    const act = (): unknown =>
      verifyTlogProof(Buffer.from(good), entries[5] ?? Buffer.of(), (note) => requireQuorum(policy, note));
    expect(errorOf(act).code).toBe('QUORUM_UNMET');
    const stranger = generateKey('ledger.example/obme');
    const distrust = (note: Buffer): ReturnType<typeof verifyCheckpoint> =>
      verifyCheckpoint(note, { logs: [stranger.verifier] });
    expect(errorOf(() => verifyTlogProof(Buffer.from(good), entries[5] ?? Buffer.of(), distrust)).code).toBe(
      'SIGNATURE_INVALID',
    );
  });
});
