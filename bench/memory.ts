import { readFileSync } from 'node:fs';

/**
 * The most memory that this process ever held resident, in bytes, as the kernel counts it for the running program.
 * `process.resourceUsage().maxRSS` is no substitute: the kernel carries the peak of the program that started this one
 * over into it (getrusage(2) counts across execve).
 */
export function peakMemory(): number {
  return kernelFigure('VmHWM');
}

/** What this process holds resident now, in bytes. */
export function residentMemory(): number {
  return kernelFigure('VmRSS');
}

function kernelFigure(name: 'VmHWM' | 'VmRSS'): number {
  const line = new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'utf8'));
  if (line?.[1] === undefined) throw new Error('the kernel does not say how much memory this process holds');
  return Number(line[1]) * 1024;
}
