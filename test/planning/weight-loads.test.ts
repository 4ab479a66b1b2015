import { describe, expect, test } from 'vitest';
import { weightLoads } from '../../src/planning/weight-loads.js';
import type { Protocol } from '../../src/protocol/schema/protocol.js';
import { PROTOCOL, TASK_IDS } from '../ledger/support.js';

/** Arms O (seeds 1, 2) and base. */
function loads(groupBy: Protocol['order']['group_by'], maxUp?: number) {
  const { runner } = PROTOCOL;
  if (runner.adapter !== 'openai' || 'external' in runner.service) throw new Error('another plan');
  const service = { ...runner.service, ...(maxUp === undefined ? {} : { max_up: maxUp }) };
  const order = { ...PROTOCOL.order, group_by: groupBy };
  return weightLoads({ ...PROTOCOL, order, runner: { ...runner, service } }, TASK_IDS);
}

describe('weights are loaded', () => {
  test('once each when groups hold one set', () => {
    expect(loads(['arm', 'training_seed'])).toEqual({ sets: 3, loads: 3, held: 1 });
  });

  test('again for each queue when queues come first, unless they are kept', () => {
    const both = loads(['queue', 'arm', 'training_seed']);
    expect(both?.loads).toBeGreaterThan(3);
    expect(loads(['queue', 'arm', 'training_seed'], 3)).toEqual({ sets: 3, loads: 3, held: 3 });
  });

  test('never fewer times with fewer at once, and not by a command', () => {
    const counts = [1, 2, 3].map((held) => loads([], held)?.loads ?? 0);
    expect(counts).toEqual([...counts].sort((a, b) => b - a));
    expect(counts[2]).toBe(3);
    expect(weightLoads({ ...PROTOCOL, runner: { adapter: 'command' } as never }, TASK_IDS)).toBeNull();
  });
});
