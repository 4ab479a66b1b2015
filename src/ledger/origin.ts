import { BoundbookError } from '../core/errors.js';
import { type SignerKey, signerKey, type VerifierKey, verifierKey } from '../signing/keys.js';

/**
 * Origins of checkpoints: `<key name>/<ledger id>/<incarnation>`. C2SP binds a key to one origin by its name; a key of
 * ours has a short name and signs for every ledger under an origin below it. Pure.
 */

/** Which tree a ledger is: its random name, and how often an older copy was put back. */
export interface LedgerIdentity {
  /** 32 hexadecimal digits. */
  readonly ledger: string;
  /** 1; one more for each restored copy. */
  readonly incarnation: number;
}

export interface Origin extends LedgerIdentity {
  /** Name of the key that signs. */
  readonly name: string;
}

/** Longest name of a key, in bytes of UTF-8, so that every origin below it fits into a checkpoint. */
export const MAX_KEY_NAME_BYTES = 200;

export function originText({ name, ledger, incarnation }: Origin): string {
  return `${name}/${ledger}/${incarnation}`;
}

/** Reads an origin; null for one of another kind. */
export function parseOrigin(text: string): Origin | null {
  const [, name, ledger, incarnation] = /^(.+)\/([0-9a-f]{32})\/([1-9][0-9]{0,8})$/.exec(text) ?? [];
  return name === undefined || ledger === undefined
    ? null
    : { name, ledger, incarnation: Number(incarnation) };
}

/**
 * Checks the name of a new key: short enough, and not an origin itself.
 *
 * @throws {BoundbookError} KEY_INVALID.
 */
export function assertShortName(name: string): void {
  const reason =
    Buffer.byteLength(name) > MAX_KEY_NAME_BYTES
      ? `it has more than ${MAX_KEY_NAME_BYTES} bytes`
      : parseOrigin(name) === null
        ? null
        : 'it is the origin of a ledger';
  if (reason === null) return;
  throw new BoundbookError('KEY_INVALID', `the key name is refused: ${reason}`, {
    hint: 'A short name without white space and "+", best one that you own, such as example.org/evaluation.',
  });
}

/** @throws {BoundbookError} KEY_INVALID for a key that signs cosignatures only, or whose name is too long. */
export function assertLedgerKey({ verifier: { name, type } }: SignerKey): void {
  if (type !== 'ed25519') {
    throw new BoundbookError('KEY_INVALID', `the key "${name}" signs cosignatures only`, {
      hint: 'Make one for ledgers with `boundbook keygen` without --cosigner.',
    });
  }
  assertShortName(name);
}

/** The key under the origin of one of its ledgers. @throws {BoundbookError} as {@link assertLedgerKey}. */
export function keyOfLedger(key: SignerKey, identity: LedgerIdentity): SignerKey {
  assertLedgerKey(key);
  return signerKey(originText({ name: key.verifier.name, ...identity }), 'ed25519', key.privateKey);
}

/**
 * The keys that speak for an origin, under the origin's name: those of its name, and those whose short name it lies
 * below. Who trusts `K` trusts every origin `K/<ledger id>/<incarnation>`.
 */
export function keysForOrigin(origin: string, keys: readonly VerifierKey[]): readonly VerifierKey[] {
  const name = parseOrigin(origin)?.name;
  return keys.flatMap((key) => {
    if (key.type !== 'ed25519') return [];
    if (key.name === origin) return [key];
    return key.name === name ? [verifierKey(origin, key.type, key.publicKey)] : [];
  });
}
