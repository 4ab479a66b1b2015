import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Protocol } from '../src/protocol/schema/protocol.js';
import { planDigest } from '../src/slots/plan.js';
import { atMost, type Figure } from './figure.js';
import { peakMemory } from './memory.js';

const SLOTS = 1_000_000;

/** Expanding and digesting a plan of a million slots, in a process of its own so that its memory can be read. */
export async function planBench(): Promise<Figure[]> {
  const output = execFileSync(process.execPath, [fileURLToPath(import.meta.url), 'child'], {
    encoding: 'utf8',
  });
  const { seconds, megabytes, count } = JSON.parse(output) as Record<string, number>;
  if (count !== SLOTS) throw new Error(`expanded ${count} slots instead of ${SLOTS}`);
  return [
    atMost('expand and digest 1,000,000 slots, seconds', seconds ?? Number.NaN, 6),
    atMost('expand and digest 1,000,000 slots, MB resident', megabytes ?? Number.NaN, 250),
  ];
}

if (process.argv[2] === 'child' && process.argv[1] === fileURLToPath(import.meta.url)) {
  const tasks = Array.from({ length: 12_500 }, (_, i) => `task-${String(i).padStart(5, '0')}`);
  const protocol = {
    arms: { O: { model: 'O', condition: 'c' }, M: { model: 'M', condition: 'c' } },
    models: { O: { weights: 'o', training_seeds: [1, 2] }, M: { weights: 'm', training_seeds: [1, 2, 3] } },
    queues: { q: { tasks: 'all', reps: 16, arms: ['O', 'M'], role: 'confirmatory' } },
  } as unknown as Protocol;
  const start = performance.now();
  const { count } = planDigest(protocol, new Map([['all', tasks]]));
  const seconds = (performance.now() - start) / 1000;
  process.stdout.write(JSON.stringify({ seconds, count, megabytes: peakMemory() / 2 ** 20 }));
}
