import { digestOf } from '../../src/core/digest.js';
import type { Protocol } from '../../src/protocol/schema/protocol.js';
import type { ReportInput, SlotOutcome } from '../../src/report/report-input.js';
import { expandSlots, planDigest, type TaskIds } from '../../src/slots/plan.js';
import type { SlotKey } from '../../src/slots/slot.js';

const condition: Protocol['conditions'][string] = {
  prompt: { user: '{question}' },
  decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 },
  grader: { kind: 'integer', answer: 'sum' },
};

const seeds = [42, 314159, 271828];

/** A small relative of the protocol in seed 004: three seeds, E with one, a base without, two queues, partitions. */
export const protocol: Protocol = {
  boundbook: 1,
  name: 'small',
  revision: 1,
  title: 'Small final evaluation',
  task_sets: {
    all: { file: 'tasks/all.jsonl', id: 'id', count: 6 },
    holdout: { subset_of: 'all', ids: 'tasks/holdout.txt', count: 4 },
    rest: { subset_of: 'all', ids: 'tasks/rest.txt', count: 2 },
  },
  models: {
    O: { training_seeds: seeds, weights: 'models/O-{seed}' },
    B: { training_seeds: seeds, weights: 'models/B-{seed}' },
    M: { training_seeds: seeds, weights: 'models/M-{seed}' },
    E: { training_seeds: [42], weights: 'models/E-{seed}' },
    base: { weights: 'models/base' },
  },
  conditions: { default: condition },
  arms: {
    O: { model: 'O', condition: 'default' },
    B: { model: 'B', condition: 'default' },
    M: { model: 'M', condition: 'default' },
    E: { model: 'E', condition: 'default' },
    base: { model: 'base', condition: 'default' },
  },
  queues: {
    main: { tasks: 'holdout', reps: 2, arms: ['O', 'B', 'M', 'E', 'base'], role: 'confirmatory' },
    wide: { tasks: 'all', reps: 1, arms: ['B', 'M'], role: 'exploratory' },
  },
  sampling: { namespace: 'small', bits: 31 },
  order: { group_by: ['arm', 'training_seed'], within: 'hash' },
  runner: {
    adapter: 'openai',
    endpoint: 'chat',
    service: {
      argv: ['serve'],
      ready: { path: '/health', timeout_s: 10 },
      restarts: 1,
      stop_grace_s: 5,
      gpus: 1,
    },
    limits: { request_s: 10, queue_wait_s: 10, response_bytes: 1000 },
    sources: {},
  },
  attempts: { replacements: 1, regrades: 1, breaker: 5, rules: [] },
  blinding: 'masked',
  analysis: {
    scores: [
      { id: 'main-scores', queue: 'main' },
      { id: 'wide-scores', queue: 'wide' },
    ],
    contrasts: [
      { id: 'M-B', minuend: 'M', subtrahend: 'B', queue: 'main', role: 'primary' },
      { id: 'M-O', minuend: 'M', subtrahend: 'O', queue: 'main', role: 'secondary' },
      { id: 'M-E', minuend: 'M', subtrahend: 'E', queue: 'main', role: 'secondary' },
      { id: 'M-base', minuend: 'M', subtrahend: 'base', queue: 'main', role: 'exploratory' },
    ],
    tables: [{ id: 'parts', queue: 'wide', partitions: ['holdout', 'rest'], role: 'secondary' }],
    decisions: [
      {
        id: 'adopt',
        contrast: 'M-B',
        comparator: '>',
        threshold: 0.1,
        when_met: 'M is adopted',
        otherwise: 'B stays',
      },
    ],
    interval: { method: 'two_way_bootstrap', resamples: 10_000, seed: 20260927, level: 0.95 },
  },
  pending: [],
};

export const taskIds: TaskIds = new Map([
  ['all', ['t1', 't2', 't3', 't4', 't5', 't6']],
  ['holdout', ['t1', 't2', 't3', 't4']],
  ['rest', ['t5', 't6']],
]);

export function planned(plan: Protocol = protocol, ids: TaskIds = taskIds): readonly SlotKey[] {
  return [...expandSlots(plan, ids)].map(({ id: _id, ...key }) => key);
}

/** A value for every slot: M is right more often than B, and t1 is easy. Any rule will do, so long as it is fixed. */
export function outcomeOf(key: SlotKey): number {
  const skill = { O: 2, B: 1, M: 3, E: 2, base: 0 }[key.arm] ?? 0;
  const seed = key.trainingSeed === 42 ? 1 : 0;
  const ease = 6 - Number(key.task.slice(1));
  return skill + seed + ease + key.rep > 5 ? 1 : 0;
}

export function settled(key: SlotKey, value: number = outcomeOf(key)): SlotOutcome {
  return { key, state: 'settled', value };
}

export function complete(): readonly SlotOutcome[] {
  return planned().map((key) => settled(key));
}

const effort = {
  stages: 0,
  seconds: 0,
  queue_seconds: 0,
  generated_tokens: 0,
  uncounted_generations: 0,
  gradings: 0,
};

export function input(change: Partial<ReportInput> = {}): ReportInput {
  const plan = change.protocol ?? protocol;
  const ids = change.taskIds ?? taskIds;
  return {
    manifest: { digest: digestOf('manifest'), sequence: 1, supersedes: null, task_use: [] },
    protocol: plan,
    taskIds: ids,
    plan: planDigest(plan, ids),
    ledger: { name: 'f'.repeat(32), entries: 1234, leaf: 'a'.repeat(64), root: 'b'.repeat(64) },
    unblinded: { partial: false },
    slots: complete(),
    attempts: { first: 100, replacement: 2, regrade: 1, recovered: 1, after_unblinding: 0 },
    revisions: [],
    successor: null,
    carried: null,
    failures: [
      { arm: 'M', stage: 'generate', cause: 'connection_lost', attribution: 'infrastructure', attempts: 2 },
      { arm: 'B', stage: 'generate', cause: 'body_no_choice', attribution: 'undetermined', attempts: 1 },
    ],
    generations: [
      { arm: 'M', finish_reason: 'stop', generations: 30 },
      { arm: 'M', finish_reason: 'length', generations: 2 },
      { arm: 'B', finish_reason: null, generations: 4 },
    ],
    costs: {
      used: { ...effort, stages: 200, seconds: 12.5, generated_tokens: 4000, gradings: 100 },
      failed: { ...effort, stages: 1, seconds: 0.25, generated_tokens: 5 },
      unused: { ...effort, stages: 2, seconds: 1, queue_seconds: 0.5, generated_tokens: 12 },
      open: effort,
      accounted_gpu_seconds: 360,
      arms: [
        {
          arm: 'B',
          used: { ...effort, stages: 80, seconds: 5, generated_tokens: 1500, gradings: 40 },
          failed: effort,
          unused: effort,
          open: effort,
          service_seconds: 8,
          gpu_seconds: 800,
          divided: false,
        },
        {
          arm: 'M',
          used: { ...effort, stages: 120, seconds: 7.5, generated_tokens: 2500, gradings: 60 },
          failed: { ...effort, stages: 1, seconds: 0.25, generated_tokens: 5 },
          unused: { ...effort, stages: 2, seconds: 1, queue_seconds: 0.5, generated_tokens: 12 },
          open: effort,
          service_seconds: 11,
          gpu_seconds: 1000,
          divided: true,
        },
      ],
      session_seconds: 20.5,
      service_seconds: 19,
      gpu_seconds: 1800,
    },
    incidents: [{ what: 'services stopped: died', count: 1 }],
    services: { changes: [], doubts: [], swaps: [] },
    regradings: [],
    rechecks: [],
    noted: [],
    restorations: [],
    ...change,
  };
}
