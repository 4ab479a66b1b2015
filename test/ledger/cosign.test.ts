import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Checkpoint, signCheckpoint, verifyCheckpoint } from '../../src/ledger/checkpoint.js';
import { type CosignRequest, cosign } from '../../src/ledger/cosign.js';
import { CosignerRecord } from '../../src/ledger/cosigner-record.js';
import { HashTiles } from '../../src/ledger/hash-tiles.js';
import { leafHash } from '../../src/ledger/merkle.js';
import { keyOfLedger, keysForOrigin, originText } from '../../src/ledger/origin.js';
import { consistencyProof, rootAt } from '../../src/ledger/proofs.js';
import { generateKey } from '../../src/signing/keys.js';
import { rejectionOf } from '../signing/support.js';
import { tempFolder } from './support.js';

const LAB = generateKey('lab');
const IDENTITY = { ledger: 'a'.repeat(32), incarnation: 1 };
const ORIGIN = originText({ name: 'lab', ...IDENTITY });
const SIGNER = keyOfLedger(LAB, IDENTITY);

/** A ledger of leaves that say so; a fork says something else from one leaf on. */
function tree(size: number, fork = Number.POSITIVE_INFINITY): HashTiles {
  const leaf = (i: number) => leafHash(Buffer.from(i >= fork ? `forged ${i}` : `leaf ${i}`));
  const tiles = new HashTiles(function* (start, end) {
    for (let i = start; i < end; i++) yield leaf(i);
  });
  for (let i = 0; i < size; i++) tiles.append(leaf(i));
  return tiles;
}

function noteOf(tiles: HashTiles, size = tiles.size): Buffer {
  const checkpoint: Checkpoint = { origin: ORIGIN, size: BigInt(size), root: rootAt(tiles, size) };
  return signCheckpoint(checkpoint, SIGNER);
}

class Cosigner {
  readonly key = generateKey('w', 'cosignature');
  readonly record = new CosignerRecord(join(tempFolder(), 'w.key'));
  time = 1000n;

  ask(tiles: HashTiles, changes: Partial<CosignRequest> = {}) {
    return cosign({
      note: noteOf(tiles),
      key: this.key,
      logs: [LAB.verifier],
      record: this.record,
      since: null,
      first: false,
      proof: async (oldSize, newSize) => consistencyProof(tiles, Number(oldSize), Number(newSize)),
      time: this.time++,
      ...changes,
    });
  }
}

describe('a cosigner', () => {
  it('signs the first state when told so, and then what extends it', async () => {
    const witness = new Cosigner();
    const first = await witness.ask(tree(5), { first: true });
    expect(first).toMatchObject({ after: null, before: false });
    const trust = { logs: keysForOrigin(ORIGIN, [LAB.verifier]), witnesses: [witness.key.verifier] };
    expect(verifyCheckpoint(first.note, trust).cosignatures).toMatchObject([{ time: 1000n }]);
    expect(await witness.ask(tree(5))).toMatchObject({ after: 5n });
    expect(await witness.ask(tree(300))).toMatchObject({ after: 5n });
    expect((await witness.record.last(ORIGIN))?.checkpoint.size).toBe(300n);
    // The same state was not noted again.
    const [folder = ''] = readdirSync(witness.record.path);
    expect(readdirSync(join(witness.record.path, folder)).sort()).toEqual(['00000001.note', '00000002.note']);
  });

  it('refuses a fork, with both signed notes and the failing proof', async () => {
    const witness = new Cosigner();
    await witness.ask(tree(6), { first: true });
    const forged = tree(9, 4);
    const error = await rejectionOf(witness.ask(forged));
    expect(error).toMatchObject({ code: 'CHECKPOINT_INCONSISTENT', exitCode: 4 });
    expect(error.evidence).toMatchObject({
      older: noteOf(tree(6)).toString('utf8'),
      newer: noteOf(forged).toString('utf8'),
      proof: consistencyProof(forged, 6, 9).map((hash) => hash.toString('base64')),
    });
    // One size, two roots.
    const same = await rejectionOf(witness.ask(tree(6, 2)));
    expect(same).toMatchObject({
      code: 'CHECKPOINT_INCONSISTENT',
      message: expect.stringContaining('one size, two roots'),
    });
    expect((await witness.record.last(ORIGIN))?.checkpoint.size).toBe(6n);
  });

  it('refuses to go back, and a state that it has no record of', async () => {
    const witness = new Cosigner();
    expect(await rejectionOf(witness.ask(tree(5)))).toMatchObject({ code: 'PROOF_UNAVAILABLE' });
    expect(await witness.record.last(ORIGIN)).toBeNull();
    await witness.ask(tree(8), { first: true });
    // --first does not make it forget.
    expect(await rejectionOf(witness.ask(tree(5), { first: true }))).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    expect(await rejectionOf(witness.ask(tree(9, 3), { first: true }))).toMatchObject({
      code: 'CHECKPOINT_INCONSISTENT',
    });
  });

  it('takes the last note that it cosigned where its record is lost or older', async () => {
    const witness = new Cosigner();
    const five = (await witness.ask(tree(5), { first: true })).note;
    const eight = (await witness.ask(tree(8))).note;
    const lost = new CosignerRecord(join(tempFolder(), 'w.key'));
    expect(await rejectionOf(witness.ask(tree(6), { record: lost, since: eight }))).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    expect(await rejectionOf(witness.ask(tree(9, 7), { record: lost, since: eight }))).toMatchObject({
      code: 'CHECKPOINT_INCONSISTENT',
    });
    // One without its own cosignature proves nothing of what it signed.
    expect(await rejectionOf(witness.ask(tree(9), { record: lost, since: noteOf(tree(8)) }))).toMatchObject({
      code: 'SIGNATURE_INVALID',
    });
    expect(await witness.ask(tree(8), { record: lost, since: eight })).toMatchObject({ after: 8n });
    expect((await lost.last(ORIGIN))?.checkpoint.size).toBe(8n);
    // An older one does not set the record back.
    expect(await rejectionOf(witness.ask(tree(7), { record: lost, since: five }))).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    expect(await witness.ask(tree(9), { record: lost, since: five })).toMatchObject({ after: 8n });
  });

  it('notes the state before it signs, and one of two that ask at once is refused', async () => {
    const witness = new Cosigner();
    await witness.ask(tree(4), { first: true });
    const answers = await Promise.allSettled([
      witness.ask(tree(6)),
      witness.ask(tree(7, 5)),
      witness.ask(tree(8)),
    ]);
    const kept = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    expect(kept.length).toBe(1);
    for (const answer of answers) {
      if (answer.status === 'rejected')
        expect(answer.reason).toMatchObject({ code: 'LEDGER_BUSY', exitCode: 5 });
    }
    expect((await witness.record.last(ORIGIN))?.checkpoint).toEqual(kept[0]?.signed.checkpoint);
  });

  it('signs nothing when the state cannot be noted', async () => {
    const witness = new Cosigner();
    const folder = tempFolder();
    writeFileSync(join(folder, 'w.key.cosigned'), 'in the way');
    const record = new CosignerRecord(join(folder, 'w.key'));
    const error = await rejectionOf(witness.ask(tree(4), { record, first: true }));
    expect(error.code).toMatch(/^FILE_/);
  });

  it('keeps states by origin, and refuses a record that was edited', async () => {
    const witness = new Cosigner();
    await witness.ask(tree(4), { first: true });
    const other = { ledger: 'b'.repeat(32), incarnation: 1 };
    const root = rootAt(tree(2), 2);
    const note = signCheckpoint(
      { origin: originText({ name: 'lab', ...other }), size: 2n, root },
      keyOfLedger(LAB, other),
    );
    expect(await witness.ask(tree(2), { note, first: true })).toMatchObject({ after: null });
    for (const folder of readdirSync(witness.record.path)) {
      writeFileSync(join(witness.record.path, folder, '00000009.note'), note);
    }
    expect(await rejectionOf(witness.ask(tree(5)))).toMatchObject({ code: 'NOTE_INVALID' });
  });

  it('refuses a signer it does not know, and keys of the wrong kind', async () => {
    const witness = new Cosigner();
    const stranger = generateKey('lab').verifier;
    expect(await rejectionOf(witness.ask(tree(4), { first: true, logs: [stranger] }))).toMatchObject({
      code: 'SIGNATURE_INVALID',
    });
    expect(await rejectionOf(witness.ask(tree(4), { first: true, logs: [] }))).toMatchObject({
      code: 'SIGNATURE_INVALID',
    });
    expect(await rejectionOf(witness.ask(tree(4), { first: true, key: LAB }))).toMatchObject({
      code: 'KEY_INVALID',
    });
    expect(await witness.record.last(ORIGIN)).toBeNull();
  });
});
