import { type Digest, hexOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import type { JsonObject } from '../../core/json.js';
import {
  CONDITION_NAMES,
  type ConfigValues,
  conditionValue,
  fillConfig,
  OF_THE_HOST,
  type Wanted,
} from '../../protocol/config-template.js';
import type { Condition } from '../../protocol/schema/conditions.js';
import type { Grader } from '../../protocol/schema/grader.js';
import type { HarborRunner } from '../../protocol/schema/harbor-runner.js';
import { renderPrompt } from '../prompt.js';
import type { Work } from './adapter.js';

export type RewardGrader = Extract<Grader, { kind: 'reward' }>;

/** What a trial must be for its outcome to count: fixed by the plan, for one attempt. */
export interface TrialExpectations {
  /** The trial's name. */
  readonly trial: string;
  readonly task: string;
  /** Harbor's digest of the task folder; null when the task's fields are not at hand, and then not compared. */
  readonly taskDigest: string | null;
  readonly config: Wanted;
  readonly grader: RewardGrader;
  readonly whenAbsent: HarborRunner['candidate']['when_absent'];
  /** What a regrade grades; null for a trial that makes its candidate. */
  readonly graded: Digest | null;
}

/** A trial that only grades. */
export interface Regrade {
  readonly candidate: Digest;
  /** The session that goes on with it, when another one had begun it. */
  readonly takenOver: string | null;
}

/**
 * The name of an attempt's trial. Harbor names containers after it and believes what it finds under a name that was
 * used before, so that no two trials of a host may share one, not even those of two manifests, or of a regrade that
 * a session left unfinished and the next one that begins it anew.
 *
 * @param takenOver the session that begins a regrade anew
 */
export function trialName(manifest: Digest, attempt: string, takenOver: string | null): string {
  const name = `bb-${hexOf(manifest).slice(0, 12)}-${attempt}`;
  return takenOver === null ? name : `${name}-${takenOver.slice(0, 8)}`;
}

/** Whether a condition's grader reads rewards. */
export function rewardGrader({ grader }: Condition): RewardGrader {
  if (grader.kind === 'reward') return grader;
  throw new BoundbookError('PROTOCOL_INVALID', `the harbor adapter does not grade by "${grader.kind}"`, {
    hint: 'Use the grader kind reward.',
  });
}

/** @param candidate the path of what is regraded; {@link OF_THE_HOST} where it does not matter */
export function trialConfig(
  { trial, regrade }: HarborRunner,
  work: Pick<Work, 'model' | 'samplingSeed' | 'condition' | 'slot'> & { readonly fields: JsonObject },
  candidate: string | typeof OF_THE_HOST | null,
): Wanted {
  const template = candidate === null ? trial.config : (regrade?.config ?? {});
  const { condition, fields, model, samplingSeed, slot } = work;
  const prompt = renderPrompt(condition, fields);
  const said = CONDITION_NAMES.map((name) => [name, conditionValue(condition, name)] as const);
  const values: ConfigValues = {
    ...Object.fromEntries(said),
    user: prompt.user,
    ...(prompt.system === null ? {} : { system: prompt.system }),
    model,
    sampling_seed: samplingSeed,
    task_id: slot.task,
    ...(candidate === null ? {} : { candidate }),
  };
  return fillConfig(template, values);
}

/** The expectations for an attempt whose task is at hand. */
export function trialExpectations(
  runner: HarborRunner,
  manifest: Digest,
  attempt: string,
  work: Pick<Work, 'model' | 'samplingSeed' | 'condition' | 'slot' | 'fields'>,
  regrade: Regrade | null,
): TrialExpectations {
  const digest = Object.hasOwn(work.fields, runner.tasks.digest) ? work.fields[runner.tasks.digest] : null;
  return {
    trial: trialName(manifest, attempt, regrade?.takenOver ?? null),
    task: work.slot.task,
    taskDigest: typeof digest === 'string' ? digest : null,
    config: trialConfig(runner, work, regrade === null ? null : OF_THE_HOST),
    grader: rewardGrader(work.condition),
    whenAbsent: runner.candidate.when_absent,
    graded: regrade?.candidate ?? null,
  };
}
