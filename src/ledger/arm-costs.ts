import { type EffortParts, sumParts } from './costs.js';

/** What an arm cost (P21). */
export interface ArmCosts extends EffortParts {
  readonly arm: string;
  /** Seconds that services were up for the arm's model. */
  readonly service_seconds: number;
  /** Devices × seconds that were held for it. */
  readonly gpu_seconds: number;
  /** Whether both are shares of what several arms held together, by their stage seconds. */
  readonly divided: boolean;
}

/** What a model family held, whichever arm it worked for. */
export interface Held {
  readonly service_seconds: number;
  readonly gpu_seconds: number;
}

/**
 * Gives each arm the time that was held for it. What only one arm of the plan could have used is its own. What several
 * arms could have used, as of one model under two conditions or of a command runner's host, is divided among them in
 * proportion to their stage seconds; seconds of answers are a key for dividing and never a sum of device time (B8).
 *
 * @param effort by arm, ascending, for every arm of the plan
 * @param held by group of arms that shared it; arms in `effort`
 */
export function armCosts(
  effort: readonly (readonly [arm: string, parts: EffortParts])[],
  held: readonly { readonly arms: readonly string[]; readonly held: Held }[],
): readonly ArmCosts[] {
  const seconds = new Map(effort.map(([arm, parts]) => [arm, sumParts(parts).seconds]));
  const costs = new Map(
    effort.map(([arm, parts]) => [
      arm,
      { arm, ...parts, service_seconds: 0, gpu_seconds: 0, divided: false },
    ]),
  );
  for (const { arms, held: whole } of held) {
    const total = arms.reduce((sum, arm) => sum + (seconds.get(arm) ?? 0), 0);
    for (const arm of arms) {
      const share = total === 0 ? 1 / arms.length : (seconds.get(arm) ?? 0) / total;
      const cost = costs.get(arm);
      if (cost === undefined) continue;
      cost.service_seconds += whole.service_seconds * share;
      cost.gpu_seconds += whole.gpu_seconds * share;
      cost.divided ||= arms.length > 1;
    }
  }
  return [...costs.values()];
}
