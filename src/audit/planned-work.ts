import type { JsonObject } from '../core/json.js';
import type { Work } from '../runner/adapters/adapter.js';

/** What the plan fixes for a slot, as far as it is at hand. */
export interface PlannedWork extends Omit<Work, 'fields'> {
  /** The task's fields; null when its file is redacted. */
  readonly fields: JsonObject | null;
}

/** What a request and a grade depend on, seed and candidate apart. Ids hold no control characters. */
export function planKey({ slot }: PlannedWork): string {
  return `${slot.queue}\0${slot.arm}\0${slot.trainingSeed}\0${slot.task}`;
}
