import type { Protocol } from '../protocol/schema/protocol.js';
import { trainingSeeds } from '../slots/plan.js';
import type { Pairing } from './value.js';

export interface Pair {
  readonly minuend: number | null;
  readonly subtrahend: number | null;
}

/**
 * Matches the weights of two arms. Training seeds are paired by value (P2), in the order in which the minuend declares
 * them; a seed that only one arm has is left out (P3: M42 − E42); an arm without training seeds is met by every seed
 * of the other.
 */
export function pairArms(
  protocol: Protocol,
  minuend: string,
  subtrahend: string,
): { readonly pairs: readonly Pair[]; readonly pairing: Pairing } {
  const left = trainingSeeds(protocol, minuend);
  const right = trainingSeeds(protocol, subtrahend);
  const leftFixed = left.every((seed) => seed === null);
  const rightFixed = right.every((seed) => seed === null);
  if (leftFixed && rightFixed) return { pairs: [{ minuend: null, subtrahend: null }], pairing: 'no_seed' };
  const pairs = leftFixed
    ? right.map((seed) => ({ minuend: null, subtrahend: seed }))
    : rightFixed
      ? left.map((seed) => ({ minuend: seed, subtrahend: null }))
      : left.filter((seed) => right.includes(seed)).map((seed) => ({ minuend: seed, subtrahend: seed }));
  return { pairs, pairing: pairingOf(pairs, leftFixed || rightFixed) };
}

function pairingOf(pairs: readonly Pair[], fixed: boolean): Pairing {
  if (pairs.length === 0) return 'none';
  if (pairs.length === 1) return 'one_seed';
  return fixed ? 'one_side_fixed' : 'paired_seeds';
}
