import { canonicalText } from '../core/canonical-json.js';
import { sha256Hex } from '../core/digest.js';

/** What makes a slot the slot it is (P6). */
export interface SlotKey {
  readonly queue: string;
  readonly arm: string;
  /** null for a model that has no training seed (P3). */
  readonly trainingSeed: number | null;
  readonly evaluationSeed: number;
  readonly task: string;
  /** 0-based. */
  readonly rep: number;
}

export interface Slot extends SlotKey {
  /** 32 lower-case hexadecimal digits, see {@link slotId}. */
  readonly id: string;
}

/** `[queue, arm, training_seed|null, evaluation_seed, task, rep]`: the form that is hashed and exported. */
export function slotTuple(key: SlotKey): readonly (string | number | null)[] {
  return [key.queue, key.arm, key.trainingSeed, key.evaluationSeed, key.task, key.rep];
}

/** First 32 hexadecimal digits of SHA-256 over the canonical JSON of {@link slotTuple} (DESIGN §7). */
export function slotId(key: SlotKey): string {
  return sha256Hex(canonicalText(slotTuple(key))).slice(0, 32);
}

/**
 * The sampling seed: the leading `bits` bits of SHA-256 over canonical
 * `[namespace, queue, evaluation_seed, task, rep]` (DESIGN §7, P18). Neither arm nor training seed enters, so that
 * every model meets the same index; a replacement has the seed of the attempt that it replaces.
 *
 * @returns an integer in [0, 2^bits); bits ≤ 53.
 */
export function samplingSeed(
  sampling: { readonly namespace: string; readonly bits: number },
  key: Pick<SlotKey, 'queue' | 'evaluationSeed' | 'task' | 'rep'>,
): number {
  return seedOf(
    canonicalText([sampling.namespace, key.queue, key.evaluationSeed, key.task, key.rep]),
    sampling.bits,
  );
}

/** The sampling seed of a list that is already canonical text; {@link samplingSeed} is the rule. */
export function seedOf(text: string, bits: number): number {
  const hex = sha256Hex(text);
  if (bits <= 32) return Math.floor(Number.parseInt(hex.slice(0, 8), 16) / 2 ** (32 - bits));
  return Number(BigInt(`0x${hex.slice(0, 16)}`) >> BigInt(64 - bits));
}

/** SHA-256 of canonical `["order", namespace, slot id]`, hexadecimal: slots of a group run in its order (P19). */
export function orderKey(namespace: string, id: string): string {
  return sha256Hex(canonicalText(['order', namespace, id]));
}

/** The shard of a slot: the leading 64 bits of its id modulo `shards` (P19). */
export function shardOf(id: string, shards: number): number {
  return Number(BigInt(`0x${id.slice(0, 16)}`) % BigInt(shards));
}
