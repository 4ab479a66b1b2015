import type { Protocol } from '../protocol/schema/protocol.js';
import { modelName } from '../slots/model-name.js';
import { orderedSlots, type TaskIds } from '../slots/plan.js';

export interface WeightLoads {
  /** Different sets of weights that the plan needs. */
  readonly sets: number;
  /** How often a host that holds so many at once loads one, when nothing goes wrong. */
  readonly loads: number;
  readonly held: number;
}

/**
 * How often weights are loaded when the slots are worked on in plan order and the set whose last use lies back the
 * furthest makes room. One pass over the plan; null for a runner without services of its own.
 */
export function weightLoads(protocol: Protocol, taskIds: TaskIds): WeightLoads | null {
  const { runner } = protocol;
  if (runner.adapter !== 'openai' || 'external' in runner.service) return null;
  const held = runner.service.max_up ?? 1;
  const sets = new Set<string>();
  /** Those that are held, the one that was used last at the end. */
  const up = new Set<string>();
  let loads = 0;
  let last: string | null = null;
  for (const slot of orderedSlots(protocol, taskIds)) {
    const name = modelName(protocol, slot);
    if (name === last) continue;
    last = name;
    sets.add(name);
    if (!up.delete(name)) {
      loads++;
      const [oldest] = up;
      if (up.size >= held && oldest !== undefined) up.delete(oldest);
    }
    up.add(name);
  }
  return { sets: sets.size, loads, held };
}
