import type { Protocol } from '../protocol/schema/protocol.js';
import { modelName } from '../slots/model-name.js';
import { trainingSeeds } from '../slots/plan.js';
import type { AccountBook } from './accounts.js';
import { type ArmCosts, armCosts, type Held } from './arm-costs.js';
import { addParts, type EffortParts, NO_PARTS } from './costs.js';
import { type Session, type SessionBook, serviceSeconds, sessionSeconds } from './sessions.js';

/** P21, in all and by arm. */
export interface Costs extends EffortParts {
  /** Sessions at work, off-time excluded (B8). */
  readonly session_seconds: number;
  readonly service_seconds: number;
  /** Devices × seconds that they were held, busy or not: as the scheduler says where it said so, else as declared. */
  readonly gpu_seconds: number;
  /** Of `gpu_seconds`, what schedulers said. */
  readonly accounted_gpu_seconds: number;
  /** Of every arm of the plan, ascending. */
  readonly arms: readonly ArmCosts[];
}

/** Seconds that the services of a session were up, and devices × seconds, by what was served: a model, or all arms. */
type HeldBy = Map<string | null, { service_seconds: number; gpu_seconds: number }>;

export function planCosts(
  protocol: Protocol,
  effort: readonly (readonly [arm: string, parts: EffortParts])[],
  sessions: SessionBook,
  accounts: AccountBook,
): Costs {
  const { runner } = protocol;
  const held: HeldBy = new Map();
  const time = { session_seconds: 0, service_seconds: 0, gpu_seconds: 0, accounted_gpu_seconds: 0 };
  for (const [job, ofJob] of byJob(sessions)) {
    const ofSessions: HeldBy = new Map();
    for (const session of ofJob) {
      time.session_seconds += sessionSeconds(session);
      holdSession(ofSessions, session, runner);
    }
    const account = job === null ? undefined : accounts.get(job);
    if (account !== undefined) {
      allot(ofSessions, account.seconds * account.gpus);
      time.accounted_gpu_seconds += account.seconds * account.gpus;
    }
    for (const [model, { service_seconds, gpu_seconds }] of ofSessions) {
      hold(held, model, service_seconds, gpu_seconds);
      time.service_seconds += service_seconds;
      time.gpu_seconds += gpu_seconds;
    }
  }
  const armsOf = (model: string | null): string[] =>
    Object.keys(protocol.arms)
      .filter((arm) => model === null || modelsOf(protocol, arm).includes(model))
      .sort();
  const total = effort.reduce((sum, [, parts]) => addParts(sum, parts), NO_PARTS);
  const groups = [...held].map(([model, whole]) => ({ arms: armsOf(model), held: whole }));
  return { ...total, ...time, arms: armCosts(effort, groups) };
}

/** Sessions by the scheduler's job that they ran in; null for those of no job. */
function byJob(sessions: SessionBook): Map<string | null, Session[]> {
  const jobs = new Map<string | null, Session[]>();
  for (const session of sessions.all()) {
    const job = session.host.slurm_job ?? null;
    jobs.set(job, [...(jobs.get(job) ?? []), session]);
  }
  return jobs;
}

function holdSession(held: HeldBy, session: Session, runner: Protocol['runner']): void {
  // What is started for each attempt holds its devices as long as its session works.
  if (runner.adapter !== 'openai') {
    hold(held, null, 0, sessionSeconds(session) * runner.gpus);
    return;
  }
  for (const service of session.services.values()) {
    const seconds = serviceSeconds(session, service);
    hold(held, service.model, seconds, seconds * (service.gpus ?? runner.service.gpus));
  }
}

/** Puts what was allocated in the place of what was declared, in the same proportions; by time up where nothing was. */
function allot(held: HeldBy, gpuSeconds: number): void {
  if (held.size === 0) hold(held, null, 0, 0);
  const by = [...held.values()].some(({ gpu_seconds }) => gpu_seconds > 0)
    ? 'gpu_seconds'
    : 'service_seconds';
  const whole = sum([...held.values()].map((each) => each[by]));
  for (const each of held.values()) {
    each.gpu_seconds = gpuSeconds * (whole === 0 ? 1 / held.size : each[by] / whole);
  }
}

function hold(held: HeldBy, model: string | null, serviceSeconds: number, gpuSeconds: number): void {
  const before: Held = held.get(model) ?? { service_seconds: 0, gpu_seconds: 0 };
  held.set(model, {
    service_seconds: before.service_seconds + serviceSeconds,
    gpu_seconds: before.gpu_seconds + gpuSeconds,
  });
}

/** What services call the models of an arm. */
function modelsOf(protocol: Protocol, arm: string): readonly string[] {
  return trainingSeeds(protocol, arm).map((trainingSeed) => modelName(protocol, { arm, trainingSeed }));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
