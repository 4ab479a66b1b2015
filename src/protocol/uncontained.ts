import type { Protocol } from './schema/protocol.js';

/**
 * What a plan of commands cannot rule out that runs them neither in control groups nor in containers: in words, or null
 * where it does.
 */
export function uncontained({ runner }: Protocol): string | null {
  if (runner.adapter !== 'command' || runner.cgroup !== undefined) return null;
  const bare = (['generate', 'grade'] as const).filter((stage) => runner[stage].stop === undefined);
  if (bare.length === 0) return null;
  return `${bare.join(' and ')} run without a control group (runner.cgroup) and without a container (stop): a process that leaves its parents, its environment and its folder can outlive its stage and write to the next one`;
}
