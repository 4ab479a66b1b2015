import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../src/manifest/manifest.js';
import { type Protocol, protocolSchema } from '../../src/protocol/schema/protocol.js';
import { planChanges } from '../../src/report/plan-changes.js';
import { planDigest } from '../../src/slots/plan.js';
import { protocol, taskIds } from './fixture.js';

function manifest(plan: Protocol, weights = 'a'): Manifest {
  const digest = `sha256:${weights.repeat(64)}`;
  return {
    protocol: plan,
    plan: planDigest(plan, taskIds),
    bindings: [{ name: 'weights/M@42', digest }],
  } as never;
}

function changed(edit: (value: Record<string, never>) => void): Protocol {
  const value = JSON.parse(JSON.stringify(protocol)) as Record<string, never>;
  edit(value);
  return protocolSchema.parse(value);
}

/** Slots of a plan that pass. */
function count(plan: Protocol, pass: (queue: string, arm: string) => number): number {
  return Object.entries(plan.queues).reduce(
    (sum, [name, { arms }]) => sum + arms.reduce((total, arm) => total + pass(name, arm), 0),
    0,
  );
}

describe('what a revision changed', () => {
  it('is nothing for the same plan', () => {
    expect(planChanges(manifest(protocol), manifest(protocol))).toMatchObject({
      dropped: [],
      added: [],
      analysis: { dropped: [], added: [], changed: [] },
      protocol: [],
      bindings: [],
    });
  });

  it('names a training seed that is gone in every queue of its arm, with its slots', () => {
    const seeds = protocol.models.M?.training_seeds ?? [];
    const [last] = seeds.slice(-1);
    const fewer = changed((value) => {
      (value as unknown as Protocol).models.M?.training_seeds?.pop();
    });
    const { dropped, added, slots, protocol: members } = planChanges(manifest(protocol), manifest(fewer));
    expect(added).toEqual([]);
    expect(members).toEqual(['models']);
    expect(dropped.map(({ kind, name }) => [kind, name])).toEqual(
      Object.values(protocol.queues)
        .filter(({ arms }) => arms.includes('M'))
        .map(() => ['training_seed', `M@${last}`]),
    );
    expect(dropped.reduce((sum, part) => sum + part.slots, 0)).toBe((slots.before ?? 0) - (slots.after ?? 0));
    // The other way round it is what was added.
    expect(planChanges(manifest(fewer), manifest(protocol)).added).toEqual(dropped);
  });

  it('names arms, queues, reps, contrasts and bindings', () => {
    const [first = '', second = ''] = Object.keys(protocol.queues).sort();
    const without = changed((value) => {
      const plan = value as unknown as { queues: Record<string, Protocol['queues'][string]> } & Protocol;
      delete plan.queues[second];
      plan.analysis.scores = plan.analysis.scores.filter(({ queue }) => queue !== second);
      plan.analysis.contrasts = plan.analysis.contrasts.filter(({ queue }) => queue !== second);
      delete plan.analysis.tables;
      const queue = plan.queues[first];
      if (queue !== undefined) Object.assign(queue, { arms: queue.arms.slice(1), reps: queue.reps - 1 });
    });
    const { dropped, analysis, bindings } = planChanges(manifest(protocol), manifest(without, 'b'));
    const queue = protocol.queues[first];
    const seeds = (arm: string) =>
      protocol.models[protocol.arms[arm]?.model ?? '']?.training_seeds?.length ?? 1;
    const tasks = protocol.task_sets[queue?.tasks ?? '']?.count ?? 0;
    const [arm = ''] = queue?.arms ?? [];
    const models = count(protocol, (name, one) => (name === first ? seeds(one) : 0));
    expect(dropped).toEqual([
      { kind: 'arm', queue: first, name: arm, slots: tasks * (queue?.reps ?? 0) * seeds(arm) },
      {
        kind: 'reps',
        queue: first,
        name: `${queue?.reps} to ${(queue?.reps ?? 0) - 1}`,
        slots: tasks * models,
      },
      {
        kind: 'queue',
        queue: second,
        name: '',
        slots: count(protocol, (name, one) =>
          name === second
            ? seeds(one) *
              (protocol.queues[second]?.reps ?? 0) *
              (protocol.task_sets[protocol.queues[second]?.tasks ?? '']?.count ?? 0)
            : 0,
        ),
      },
    ]);
    expect(analysis.dropped.length).toBeGreaterThan(0);
    expect(bindings).toEqual(['weights/M@42']);
  });
});
