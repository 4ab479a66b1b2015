import type { Work } from '../runner/adapters/adapter.js';

/** What a request and a grade depend on, seed and candidate apart. Ids hold no control characters. */
export function planKey({ slot }: Work): string {
  return `${slot.queue}\0${slot.arm}\0${slot.trainingSeed}\0${slot.task}`;
}
