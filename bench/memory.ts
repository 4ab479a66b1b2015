import { readFileSync } from 'node:fs';

/**
 * The most memory that this process ever held resident, in bytes, as the kernel counts it for the running program.
 * `process.resourceUsage().maxRSS` is no substitute: the kernel carries the peak of the program that started this one
 * over into it (getrusage(2) counts across execve).
 */
export function peakMemory(): number {
  const peak = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  if (peak === undefined) throw new Error('the kernel does not say how much memory this process held');
  return Number(peak) * 1024;
}
