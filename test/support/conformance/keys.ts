import { hash } from 'node:crypto';
import { canonicalText } from '../../../src/core/canonical-json.js';
import { checkpointDraft } from '../../../src/ledger/checkpoint-entry.js';
import { CompactRange, leafHash } from '../../../src/ledger/merkle.js';
import type { LedgerIdentity } from '../../../src/ledger/origin.js';
import { privateKeyOf } from '../../../src/signing/ed25519.js';
import { formatVerifierKey, type KeyType, type SignerKey, signerKey } from '../../../src/signing/keys.js';
import type { LooseBundle } from '../loose-bundle.js';
import { chainAnew, dropReports } from './case.js';

/** Keys of made-up signers. Their seeds are public: they sign nothing but cases. */
function testKey(name: string, type: KeyType = 'ed25519', seed = name): SignerKey {
  return signerKey(name, type, privateKeyOf(hash('sha256', `conformance ${seed}`, 'buffer')));
}

export const LAB = testKey('lab.example/evaluation');
/** Another key under the same name. */
export const IMPOSTOR = testKey('lab.example/evaluation', 'ed25519', 'impostor');
export const STRANGER = testKey('stranger.example');
/** A cosigner that no policy knows. */
export const OUTSIDER = testKey('four.example', 'cosignature');
export const WITNESSES = ['one', 'two', 'three'].map((name) => testKey(`${name}.example`, 'cosignature'));

export const vkey = ({ verifier }: SignerKey): string => formatVerifierKey(verifier);

/**
 * Chains the entries and signs each checkpoint under its ledger and incarnation; notes lie as files, too. Reports, which name
 * the head, go.
 *
 * @param as what the origins say in place of the ledger's own identity
 */
export function signCheckpoints(bundle: LooseBundle, key: SignerKey, as: Partial<LedgerIdentity> = {}): void {
  dropReports(bundle);
  chainAnew(bundle.entries);
  const range = new CompactRange();
  let identity = { ledger: '', incarnation: 1 };
  let prev: string | null = null;
  for (const [size, entry] of bundle.entries.entries()) {
    if (entry.type === 'ledger.opened') {
      identity = { ledger: String(entry.ledger), incarnation: Number(entry.incarnation) };
    }
    if (entry.type === 'checkpoint') {
      const { note, root } = checkpointDraft(range, { ...identity, ...as }, key, []);
      Object.assign(entry, { note, root, size });
      bundle.files.set(noteFile(size), Buffer.from(note ?? ''));
    }
    entry.prev = prev;
    const leaf = leafHash(Buffer.from(canonicalText(entry)));
    range.append(leaf);
    prev = leaf.toString('hex');
  }
}

export function noteFile(size: number): string {
  return `checkpoints/${size}.note`;
}
