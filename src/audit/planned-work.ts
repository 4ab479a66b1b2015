import type { JsonObject } from '../core/json.js';
import type { Work } from '../runner/adapters/adapter.js';

/** What the plan fixes for the slots of one task under one arm, as far as it is at hand. */
export interface PlannedTask extends Pick<Work, 'model' | 'condition'> {
  /** Stands for the task under its queue, arm and training seed: on it rest request and grade, seed and candidate apart. */
  readonly number: number;
  /** The task's fields; null when its file is redacted. */
  readonly fields: JsonObject | null;
}

/** What the plan fixes for a slot, as far as it is at hand. */
export interface PlannedWork extends Omit<Work, 'fields'>, PlannedTask {
  readonly fields: JsonObject | null;
}
