import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AuditOptions } from '../../src/audit/audit.js';
import type { AuditResult } from '../../src/audit/result.js';
import { openBook } from '../../src/ledger/book.js';
import { writeCheckpoint } from '../../src/ledger/checkpoints.js';
import { storeAttestation } from '../../src/manifest/attestations.js';
import { readAttestable, statementAbout } from '../../src/report/attestable.js';
import { formatEnvelope } from '../../src/signing/dsse.js';
import { keyIdText, type SignerKey, signerKey } from '../../src/signing/keys.js';
import { signStatement } from '../../src/signing/statement.js';
import { type Life, makeSmallBook, type SmallBook } from '../support/small-book.js';
import type { Outcome } from './flips.js';

/** PKCS #8 of an Ed25519 key, without its 32 bytes (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED = createPrivateKey({
  key: Buffer.concat([PKCS8, Buffer.alloc(32, 7)]),
  format: 'der',
  type: 'pkcs8',
});
export const KEY: SignerKey = signerKey('lab.example/eval', 'ed25519', SEED);
export const TRUST: AuditOptions = { keys: [KEY.verifier] };

/** One answer so long that it lies in a file of its own. */
const LONG = `<html>${'busy '.repeat(3300)}</html>`;

/** Few lives, of different kinds: settled, replaced, unresolved, recovered. */
export const FEW: readonly Life[] = [
  [{ answer: '12' }],
  [{ failure: { cause: 'connection_lost', phase: 'body' } }, { answer: '7' }],
  ['crash', { answer: '12' }],
];
export const WITH_A_LONG_ANSWER: readonly Life[] = [
  [{ answer: '12' }],
  [{ failure: { cause: 'body_not_json', phase: 'body', http_status: 200 }, body: LONG }],
];

/** A small book whose manifest and last checkpoint are signed by {@link KEY}. */
export async function signedBook(root: string, lives: readonly Life[], unblind: boolean): Promise<SmallBook> {
  const book = await makeSmallBook(root, { lives, unblind });
  const open = await openBook(root, book.stored, 'write', book.now);
  try {
    await writeCheckpoint(open, { key: KEY, tokens: [] });
  } finally {
    open.close();
  }
  const manifest = readAttestable(readFileSync(book.stored.path), book.stored.file);
  const envelope = formatEnvelope(signStatement(statementAbout(manifest), [KEY]));
  await storeAttestation(root, keyIdText(KEY.verifier.id), 'envelope', envelope);
  return book;
}

/** Holds a verdict against that of the unchanged files. */
export function outcomeOf(result: AuditResult, clean: AuditResult): Outcome {
  if (result.verdict === 'findings') return 'found';
  return claimOf(result) === claimOf(clean) ? 'unnoticed' : 'claims less';
}

function claimOf({ checked, remarks, order, times, notChecked }: AuditResult): string {
  return JSON.stringify([checked, remarks, order, times, notChecked]);
}
