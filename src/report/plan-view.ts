import type { RewardRange } from '../analysis/bounds.js';
import { fromNumber } from '../analysis/rational.js';
import { BoundbookError } from '../core/errors.js';
import { rewardRange } from '../grading/reference.js';
import type { Condition } from '../protocol/schema/conditions.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Queue } from '../protocol/schema/queues.js';
import type { TaskIds } from '../slots/plan.js';
import type { Label } from './value.js';

/** What a report asks of the plan. Names were checked when the protocol was read; a gap here is a fault of ours. */
export interface PlanView {
  readonly protocol: Protocol;
  readonly taskIds: TaskIds;
  /** Outcomes were seen before the plan was complete, or before it was amended: nothing is confirmatory. */
  readonly demoted: boolean;
}

export function queueOf({ protocol }: PlanView, name: string): Queue {
  return protocol.queues[name] ?? missing('queue', name);
}

export function conditionOf({ protocol }: PlanView, arm: string): Condition {
  const condition = protocol.arms[arm]?.condition;
  return protocol.conditions[condition ?? ''] ?? missing('arm', arm);
}

export function tasksOf({ taskIds }: PlanView, set: string): readonly string[] {
  return taskIds.get(set) ?? missing('task set', set);
}

export function evaluationSeedsOf(view: PlanView, queue: string): readonly number[] {
  return queueOf(view, queue).evaluation_seeds ?? [0];
}

/** The reward range of an arm's grader, exactly. */
export function rangeOf(view: PlanView, arm: string): RewardRange {
  const { min, max } = rewardRange(conditionOf(view, arm).grader);
  return { min: fromNumber(min), max: fromNumber(max) };
}

/** law 9: a figure is worth what the protocol declared it to be, and never more than its queue. */
export function labelOf(view: PlanView, queue: string, role: 'primary' | 'secondary' | 'exploratory'): Label {
  if (view.demoted || role === 'exploratory' || queueOf(view, queue).role === 'exploratory') {
    return 'exploratory';
  }
  return role === 'primary' ? 'confirmatory' : 'secondary';
}

function missing(kind: string, name: string): never {
  throw new BoundbookError('INTERNAL', `the plan has no ${kind} ${JSON.stringify(name)}`);
}
