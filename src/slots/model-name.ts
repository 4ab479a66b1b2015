import type { Protocol } from '../protocol/schema/protocol.js';
import type { SlotKey } from './slot.js';

/** `M@42`, or `base` for a model without training seed: as bindings are named and as requests call it. */
export function modelName(protocol: Protocol, key: Pick<SlotKey, 'arm' | 'trainingSeed'>): string {
  const model = protocol.arms[key.arm]?.model ?? key.arm;
  return key.trainingSeed === null ? model : `${model}@${key.trainingSeed}`;
}
