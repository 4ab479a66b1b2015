import { describe, expect, it } from 'vitest';
import type { BoundbookError } from '../../src/core/errors.js';
import {
  type Checkpoint,
  checkpointOf,
  cosignCheckpoint,
  formatCheckpoint,
  parseCheckpoint,
  signCheckpoint,
  verifyCheckpoint,
  verifyExtension,
} from '../../src/ledger/checkpoint.js';
import { HashTiles } from '../../src/ledger/hash-tiles.js';
import { EMPTY_ROOT, leafHash } from '../../src/ledger/merkle.js';
import { consistencyProof, rootAt } from '../../src/ledger/proofs.js';
import { generateKey, verifierKey } from '../../src/signing/keys.js';
import { addSignature, formatNote, signText } from '../../src/signing/note.js';
import { errorOf } from '../signing/support.js';

const ROOT = 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=';
/** The example of c2sp.org/tlog-checkpoint. */
const EXAMPLE = `example.com/behind-the-sofa\n20852163\n${ROOT}\n`;

describe('checkpoint text', () => {
  it('the example of the specification round-trips', () => {
    const checkpoint = parseCheckpoint(EXAMPLE);
    expect(checkpoint).toEqual({
      origin: 'example.com/behind-the-sofa',
      size: 20852163n,
      root: Buffer.from(ROOT, 'base64'),
    });
    expect(formatCheckpoint(checkpoint)).toBe(EXAMPLE);
  });

  it("Go's tree note round-trips, and 2^64 - 1 leaves do", () => {
    // golang.org/x/mod/sumdb/tlog, note_test.go: the root is the record hash of "hello world".
    const text = 'go.sum database tree\n123456789012\nTszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0=\n';
    expect(parseCheckpoint(text).root).toEqual(leafHash(Buffer.from('hello world')));
    expect(parseCheckpoint(`o\n18446744073709551615\n${ROOT}\n`).size).toBe((1n << 64n) - 1n);
    expect(parseCheckpoint(`o\n0\n${EMPTY_ROOT.toString('base64')}\n`).size).toBe(0n);
  });

  it.each([
    // Go's bad trees.
    ['a hexadecimal size', `o\n0xabcdef\n${ROOT}\n`],
    ['a root of another length', 'o\n123456789012\nTszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBTOOBIG=\n'],
    ['an extension line', `o\n5\n${ROOT}\nextra\n`],
    ['a leading zero', `o\n05\n${ROOT}\n`],
    ['a sign', `o\n+5\n${ROOT}\n`],
    ['a negative size', `o\n-5\n${ROOT}\n`],
    ['a space before the size', `o\n 5\n${ROOT}\n`],
    ['an exponent', `o\n5e0\n${ROOT}\n`],
    ['no size', `o\n\n${ROOT}\n`],
    ['other digits', `o\n٥\n${ROOT}\n`],
    ['2^64 leaves', `o\n18446744073709551616\n${ROOT}\n`],
    ['a size of thousands of digits', `o\n${'9'.repeat(100_000)}\n${ROOT}\n`],
    ['an empty ledger with a root', `o\n0\n${ROOT}\n`],
    ['31 bytes', `o\n5\n${Buffer.alloc(31).toString('base64')}\n`],
    ['33 bytes', `o\n5\n${Buffer.alloc(33).toString('base64')}\n`],
    ['no root', 'o\n5\n\n'],
    ['URL-safe base64', `o\n5\n${ROOT.replace('/', '_')}\n`],
    ['no padding', `o\n5\n${ROOT.slice(0, -1)}\n`],
    ['trailing bits', `o\n5\n${ROOT.replace('2I=', '2J=')}\n`],
    ['no last line break', `o\n5\n${ROOT}`],
    ['a blank line at the end', `o\n5\n${ROOT}\n\n`],
    ['a blank line inside', `o\n\n5\n${ROOT}\n`],
    ['two lines', 'o\n5\n'],
    ['no origin', `\n5\n${ROOT}\n`],
    ['an origin of 256 bytes', `${'a'.repeat(256)}\n5\n${ROOT}\n`],
    ['carriage returns', `o\r\n5\r\n${ROOT}\r\n`],
    ['nothing', ''],
  ])('refuses %s', (_, text) => {
    expect(errorOf(() => parseCheckpoint(text)).code).toBe('NOTE_INVALID');
  });

  it('does not write what it would not read', () => {
    const good: Checkpoint = parseCheckpoint(EXAMPLE);
    for (const bad of [
      { ...good, origin: '' },
      { ...good, origin: 'a\nb' },
      { ...good, size: -1n },
      { ...good, size: 1n << 64n },
      { ...good, size: 0n },
      { ...good, root: Buffer.alloc(20) },
    ]) {
      expect(errorOf(() => formatCheckpoint(bad)).code).toBe('NOTE_INVALID');
    }
  });
});

const log = generateKey('ledger.example/obme');
const stranger = generateKey('ledger.example/other');
const witness = generateKey('witness.example/w1', 'cosignature');
const leaves = Array.from({ length: 600 }, (_, i) => leafHash(Buffer.from(`entry ${i}`)));

function tilesOf(hashes: readonly Buffer[]): HashTiles {
  const tiles = new HashTiles((start, end) => hashes.slice(start, end));
  for (const leaf of hashes) tiles.append(leaf);
  return tiles;
}

const tiles = tilesOf(leaves);
const at = (size: number, source = tiles): Checkpoint => ({
  origin: 'ledger.example/obme',
  size: BigInt(size),
  root: rootAt(source, size),
});

describe('signed checkpoints', () => {
  const trust = { logs: [log.verifier], witnesses: [witness.verifier] };

  it('verify with their origin’s key, and carry cosignatures', () => {
    const signed = verifyCheckpoint(signCheckpoint(at(600), log), trust);
    expect(signed.checkpoint).toEqual(at(600));
    expect(signed.cosignatures).toEqual([]);
    const cosigned = verifyCheckpoint(cosignCheckpoint(signed, witness, 1_800_000_000n), trust);
    expect(cosigned.log.key).toEqual(log.verifier);
    expect(cosigned.cosignatures).toEqual([{ key: witness.verifier, time: 1_800_000_000n }]);
    expect(checkpointOf(cosigned.note)).toEqual(at(600));
  });

  it('another ledger’s key cannot speak for it', () => {
    expect(errorOf(() => signCheckpoint(at(600), stranger)).code).toBe('KEY_INVALID');
    const text = formatCheckpoint(at(600));
    const forged = formatNote({ text, signatures: [signText(text, stranger)] });
    const error = errorOf(() => verifyCheckpoint(forged, { logs: [log.verifier, stranger.verifier] }));
    expect(error.code).toBe('SIGNATURE_INVALID');
    expect(error.evidence).toEqual({ origin: 'ledger.example/obme', signed_by: ['ledger.example/other'] });
  });

  it('a cosigner’s key is no ledger key, and a ledger key no cosigner’s', () => {
    const note = signCheckpoint(at(600), log);
    const posing = verifierKey(log.verifier.name, 'cosignature', log.verifier.publicKey);
    expect(errorOf(() => verifyCheckpoint(note, { logs: [posing] })).code).toBe('SIGNATURE_INVALID');
    expect(errorOf(() => verifyCheckpoint(note, { logs: [], witnesses: [log.verifier] })).code).toBe(
      'SIGNATURE_INVALID',
    );
  });

  it('a known witness with a bad cosignature refuses the whole note', () => {
    const signed = verifyCheckpoint(signCheckpoint(at(600), log), trust);
    const other = verifyCheckpoint(signCheckpoint(at(599), log), trust);
    const line = cosignCheckpoint(other, witness, 5n).toString().split('\n').at(-2) ?? '';
    const blob = Buffer.from(line.split(' ')[2] ?? '', 'base64');
    const moved = addSignature(signed.note, {
      name: witness.verifier.name,
      keyId: witness.verifier.id,
      bytes: blob.subarray(4),
    });
    expect(errorOf(() => verifyCheckpoint(moved, trust)).code).toBe('SIGNATURE_INVALID');
    expect(verifyCheckpoint(moved, { logs: [log.verifier] }).checkpoint.size).toBe(600n);
  });

  it('a signed text with an extension line is refused', () => {
    const text = `${formatCheckpoint(at(600))}extension\n`;
    const note = formatNote({ text, signatures: [signText(text, log)] });
    expect(errorOf(() => verifyCheckpoint(note, trust)).code).toBe('NOTE_INVALID');
  });
});

describe('extension', () => {
  const signed = (size: number, source = tiles): { checkpoint: Checkpoint; note: Buffer } => {
    const checkpoint = at(size, source);
    return { checkpoint, note: signCheckpoint(checkpoint, log) };
  };

  it('is proved between any two sizes', () => {
    for (const [old, size] of [
      [1, 600],
      [255, 256],
      [256, 600],
      [300, 599],
      [599, 600],
    ] as const) {
      expect(verifyExtension(signed(old), signed(size), consistencyProof(tiles, old, size))).toBe('extended');
    }
    expect(verifyExtension(signed(600), signed(600), [])).toBe('same');
    expect(verifyExtension(signed(0), signed(0), [])).toBe('same');
    expect(verifyExtension(signed(0), signed(600), [])).toBe('extended');
    expect(
      verifyExtension({ checkpoint: at(300) }, { checkpoint: at(600) }, consistencyProof(tiles, 300, 600)),
    ).toBe('extended');
  });

  const rewritten = tilesOf([
    ...leaves.slice(0, 299),
    leafHash(Buffer.from('rewritten')),
    ...leaves.slice(300),
  ]);

  function refusal(act: () => unknown): BoundbookError {
    const error = errorOf(act);
    expect(error.code).toBe('CHECKPOINT_INCONSISTENT');
    expect(error.exitCode).toBe(4);
    return error;
  }

  it('a rewritten entry is found, and the error carries both notes and the proof', () => {
    const [older, newer] = [signed(300), signed(600, rewritten)];
    const proof = consistencyProof(rewritten, 300, 600);
    const error = refusal(() => verifyExtension(older, newer, proof));
    expect(error.evidence).toEqual({
      reason: 'the consistency proof fails',
      older: older.note.toString(),
      newer: newer.note.toString(),
      proof: proof.map((node) => node.toString('base64')),
    });
    expect(error.cause).toMatchObject({ code: 'PROOF_INVALID' });
    // An entry after the old size may be any: that is no contradiction.
    expect(verifyExtension(signed(299), newer, consistencyProof(rewritten, 299, 600))).toBe('extended');
  });

  it('fewer entries, two roots for one size, another ledger, wrong proofs', () => {
    refusal(() => verifyExtension(signed(600), signed(599), []));
    refusal(() => verifyExtension(signed(600), signed(600, rewritten), []));
    const other = { checkpoint: { ...at(600), origin: 'ledger.example/other' } };
    refusal(() => verifyExtension(signed(300), other, consistencyProof(tiles, 300, 600)));
    refusal(() => verifyExtension(signed(300), signed(600), []));
    refusal(() => verifyExtension(signed(300), signed(600), consistencyProof(tiles, 301, 600)));
    refusal(() => verifyExtension(signed(0), signed(600), [rootAt(tiles, 600)]));
    refusal(() => verifyExtension(signed(600), signed(600), [rootAt(tiles, 600)]));
    refusal(() => verifyExtension(signed(300), signed(600), [Buffer.of(1)]));
  });

  it('shows the bare text of an unsigned side', () => {
    const error = refusal(() => verifyExtension({ checkpoint: at(300) }, signed(299), []));
    expect(error.evidence).toMatchObject({ older: formatCheckpoint(at(300)) });
  });
});
