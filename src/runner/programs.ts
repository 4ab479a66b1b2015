import { accessSync, constants, statSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import type { HarborRunner } from '../protocol/schema/harbor-runner.js';
import type { SourcePaths } from './argv.js';

/**
 * Looks for the programs of a Harbor runner before anything is started: started through `env`, one that is missing would
 * look like a trial that failed, once for every slot.
 *
 * @param path directories as in PATH
 * @throws {BoundbookError} HARNESS_REFUSED
 */
export function requirePrograms(
  { trial, regrade, stop, version }: HarborRunner,
  sources: SourcePaths,
  path = process.env.PATH ?? '',
): void {
  for (const [where, command] of Object.entries({ trial, regrade, stop, version })) {
    const program = programOf(command?.argv ?? []);
    // A path that is no absolute one is a bound source's, or the trial folder's.
    if (program === null || (program.includes('/') && !isAbsolute(program)) || sources.has(program)) continue;
    const places = isAbsolute(program) ? [program] : path.split(delimiter).map((at) => join(at, program));
    if (places.some(isProgram)) continue;
    throw new BoundbookError(
      'HARNESS_REFUSED',
      `the program ${JSON.stringify(program)} of runner.${where} is not on this host; nothing was started`,
      {
        hint: isAbsolute(program) ? 'Install it there.' : 'Install it, or put its folder on PATH.',
        evidence: { program, where: `runner.${where}` },
      },
    );
  }
}

/** What an argv runs, behind `env NAME=VALUE …`; null when only `env` knows. */
function programOf(argv: readonly string[]): string | null {
  const [first = null, ...rest] = argv;
  if (first === null || basename(first) !== 'env') return first;
  const next = rest.find((argument) => !/^[A-Za-z_]\w*=/.test(argument));
  return next === undefined || next.startsWith('-') ? null : next;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
