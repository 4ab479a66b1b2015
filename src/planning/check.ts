import { BoundbookError, type Fault } from '../core/errors.js';
import { pointerOf } from '../protocol/json-pointer.js';
import type { ProtocolDocument } from '../protocol/read.js';
import type { TaskSets } from '../protocol/tasks.js';
import { type SeedCollisions, seedCollisions } from './collisions.js';
import { countSlots, type PlanCounts } from './counts.js';
import { type PrecisionCheck, precisionChecks } from './precision.js';
import { type DecisionReach, decisionReach } from './reachable.js';
import { planRemarks, type Remark } from './remarks.js';

export interface PlanCheck {
  readonly counts: PlanCounts;
  readonly precision: readonly PrecisionCheck[];
  readonly decisions: readonly DecisionReach[];
  readonly collisions: SeedCollisions;
  readonly remarks: readonly Remark[];
}

/**
 * Tries to make a plan fail (DESIGN §5): decisions that can come out one way only, samples too small for the
 * precision that is asked of them. Form, references and task files were checked when they were read.
 *
 * @throws {BoundbookError} PLAN_ONE_SIDED, or PLAN_IMPRECISE when only precision is missed, with all faults.
 */
export function checkPlan(document: ProtocolDocument, sets: TaskSets): PlanCheck {
  const { protocol } = document;
  const decisions = decisionReach(protocol);
  const precision = precisionChecks(protocol, sets.ids);
  const oneSided = decisions.flatMap((reach, i) => decisionFault(reach, i, document));
  const imprecise = precision.flatMap((check, i) => precisionFault(check, i, document));
  const faults = [...oneSided, ...imprecise];
  if (faults.length > 0) {
    const code = oneSided.length > 0 ? 'PLAN_ONE_SIDED' : 'PLAN_IMPRECISE';
    throw new BoundbookError(code, MESSAGES[code], {
      hint: 'Change the plan now, while nobody has seen an outcome.',
      evidence: { decisions: decisions.map(reachJson), precision: precision.map(precisionJson) },
      faults,
    });
  }
  const collisions = seedCollisions(protocol, sets.ids);
  return {
    counts: countSlots(protocol, sets.ids),
    precision,
    decisions,
    collisions,
    remarks: planRemarks(protocol, collisions),
  };
}

const MESSAGES = {
  PLAN_ONE_SIDED: 'the plan cannot come out against its author',
  PLAN_IMPRECISE: 'the plan cannot reach the precision that it asks for',
} as const;

function decisionFault(reach: DecisionReach, i: number, document: ProtocolDocument): readonly Fault[] {
  if (reach.canBeMet && reach.canFail) return [];
  const { comparator, threshold, range } = reach;
  const outcome = reach.canBeMet ? 'always met' : 'never met';
  return [
    {
      where: pointerOf(['analysis', 'decisions', i]),
      message:
        `the decision ${JSON.stringify(reach.decision)} is ${outcome}: ${reach.contrast} ${comparator} ${threshold}, ` +
        `and ${reach.contrast} lies between ${range.lowest} and ${range.highest} whatever happens`,
      hint: 'Choose a threshold inside that range, so that both outcomes can happen.',
      ...document.locate(pointerOf(['analysis', 'decisions', i, 'threshold'])),
    },
  ];
}

function precisionFault(check: PrecisionCheck, i: number, document: ProtocolDocument): readonly Fault[] {
  if (check.met) return [];
  const { assumedAccuracy: p, tasks, reps, leastReps } = check;
  return [
    {
      where: pointerOf(['precision', i]),
      message:
        `the queue ${JSON.stringify(check.queue)} has a standard error of ${check.standardError.toFixed(5)} at ` +
        `accuracy ${p} (${tasks} tasks x ${reps} reps), above the ${check.maxStandardError} that is allowed`,
      hint:
        leastReps === null
          ? 'No number of reps that a queue may have is enough; add tasks or allow more.'
          : `It takes ${leastReps} reps.`,
      ...document.locate(pointerOf(['precision', i, 'max_standard_error'])),
    },
  ];
}

export function reachJson(reach: DecisionReach) {
  return {
    decision: reach.decision,
    contrast: reach.contrast,
    comparator: reach.comparator,
    threshold: reach.threshold,
    lowest: reach.range.lowest,
    highest: reach.range.highest,
    can_be_met: reach.canBeMet,
    can_fail: reach.canFail,
  };
}

export function precisionJson(check: PrecisionCheck) {
  return {
    queue: check.queue,
    assumed_accuracy: check.assumedAccuracy,
    tasks: check.tasks,
    reps: check.reps,
    standard_error: check.standardError,
    max_standard_error: check.maxStandardError,
    least_reps: check.leastReps,
    met: check.met,
  };
}
