import { canonicalText } from '../core/canonical-json.js';
import { bindingOf, type Manifest } from '../manifest/manifest.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { trainingSeeds } from '../slots/plan.js';

/** A part of a plan that another revision does not have, and the slots that the plan has in it. */
export interface PlanPart {
  readonly kind: 'queue' | 'arm' | 'training_seed' | 'evaluation_seed' | 'reps' | 'tasks';
  readonly queue: string;
  /** The arm, `arm@seed`, the evaluation seed, or `before to after`; empty for a whole queue. */
  readonly name: string;
  readonly slots: number;
}

/** What a revision changed of the plan that it supersedes, as the two manifests say. */
export interface PlanChanges {
  readonly slots: { readonly before: number | null; readonly after: number | null };
  readonly dropped: readonly PlanPart[];
  readonly added: readonly PlanPart[];
  /** Declared scores, contrasts, tables and decisions, as `contrast M-B`. */
  readonly analysis: {
    readonly dropped: readonly string[];
    readonly added: readonly string[];
    readonly changed: readonly string[];
  };
  /** Members of the protocol whose values differ, ascending. */
  readonly protocol: readonly string[];
  /** Names of bindings that both have, with other digests, ascending. */
  readonly bindings: readonly string[];
}

/** Compares a plan with the one that it supersedes. Counts are those that the protocols declare. */
export function planChanges(before: Manifest, after: Manifest): PlanChanges {
  const [old, now] = [before.protocol, after.protocol];
  const [scoresBefore, scoresAfter] = [declared(old), declared(now)];
  return {
    slots: { before: before.plan?.count ?? null, after: after.plan?.count ?? null },
    dropped: missingParts(old, now),
    added: missingParts(now, old),
    analysis: {
      dropped: [...scoresBefore.keys()].filter((name) => !scoresAfter.has(name)),
      added: [...scoresAfter.keys()].filter((name) => !scoresBefore.has(name)),
      changed: [...scoresAfter].flatMap(([name, text]) =>
        scoresBefore.has(name) && scoresBefore.get(name) !== text ? [name] : [],
      ),
    },
    protocol: differingMembers(old, now),
    bindings: after.bindings.flatMap(({ name, digest }) =>
      (bindingOf(before, name)?.digest ?? digest) === digest ? [] : [name],
    ),
  };
}

/** What one plan holds that another does not, by queue in the order of names. */
function missingParts(plan: Protocol, other: Protocol): readonly PlanPart[] {
  return Object.keys(plan.queues)
    .sort()
    .flatMap((queue) => {
      const [own, others] = [shapeOf(plan, queue), shapeOf(other, queue)];
      if (own === null) return [];
      if (others === null) return [{ kind: 'queue' as const, queue, name: '', slots: sizeOf(own) }];
      return missingInQueue(queue, own, others);
    });
}

interface Shape {
  readonly tasks: number;
  readonly reps: number;
  readonly evaluationSeeds: readonly number[];
  readonly arms: ReadonlyMap<string, readonly (number | null)[]>;
}

function shapeOf(plan: Protocol, name: string): Shape | null {
  const queue = plan.queues[name];
  if (queue === undefined) return null;
  return {
    tasks: plan.task_sets[queue.tasks]?.count ?? 0,
    reps: queue.reps,
    evaluationSeeds: queue.evaluation_seeds ?? [0],
    arms: new Map([...queue.arms].sort().map((arm) => [arm, trainingSeeds(plan, arm)])),
  };
}

function missingInQueue(queue: string, own: Shape, others: Shape): PlanPart[] {
  const parts: PlanPart[] = [];
  const perModel = own.tasks * own.reps * own.evaluationSeeds.length;
  for (const [arm, seeds] of own.arms) {
    const kept = others.arms.get(arm);
    if (kept === undefined) parts.push({ kind: 'arm', queue, name: arm, slots: perModel * seeds.length });
    for (const seed of kept === undefined ? [] : seeds.filter((one) => !kept.includes(one)))
      parts.push({ kind: 'training_seed', queue, name: `${arm}@${seed}`, slots: perModel });
  }
  const size = sizeOf(own);
  for (const seed of own.evaluationSeeds.filter((one) => !others.evaluationSeeds.includes(one)))
    parts.push({
      kind: 'evaluation_seed',
      queue,
      name: String(seed),
      slots: size / own.evaluationSeeds.length,
    });
  for (const kind of ['reps', 'tasks'] as const) {
    const [more, less] = [own[kind], others[kind]];
    if (more > less)
      parts.push({ kind, queue, name: `${more} to ${less}`, slots: (size / more) * (more - less) });
  }
  return parts;
}

function sizeOf({ tasks, reps, evaluationSeeds, arms }: Shape): number {
  const models = [...arms.values()].reduce((sum, seeds) => sum + seeds.length, 0);
  return models * tasks * reps * evaluationSeeds.length;
}

/** Everything of the analysis that has a name, with its canonical text. */
function declared({ analysis }: Protocol): ReadonlyMap<string, string> {
  const { scores, contrasts, tables = [], decisions = [] } = analysis;
  const named = [
    ...scores.map((one) => ['score', one] as const),
    ...contrasts.map((one) => ['contrast', one] as const),
    ...tables.map((one) => ['table', one] as const),
    ...decisions.map((one) => ['decision', one] as const),
  ];
  return new Map(named.map(([kind, one]) => [`${kind} ${one.id}`, canonicalText(one)]));
}

const IDENTITY: ReadonlySet<string> = new Set(['boundbook', 'name', 'revision']);

function differingMembers(before: Protocol, after: Protocol): readonly string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof Protocol)[];
  const differs = (name: keyof Protocol) =>
    canonicalText(before[name] ?? null) !== canonicalText(after[name] ?? null);
  return names.filter((name) => !IDENTITY.has(name) && differs(name)).sort();
}
