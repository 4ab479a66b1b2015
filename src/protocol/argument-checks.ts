import type { Path } from './json-pointer.js';
import type { FaultCollector } from './references.js';
import { argumentPlaceholders } from './template.js';

/** Checks the placeholders of a program's arguments, and gives them. */
export function checkArgv(
  path: Path,
  argv: readonly string[],
  known: readonly string[],
  collector: FaultCollector,
): readonly string[] {
  return argv.flatMap((argument, i) => checkArgument([...path, i], argument, known, collector));
}

/** The placeholders of an argument or path; faults for those that are not known there. */
export function checkArgument(
  path: Path,
  argument: string,
  known: readonly string[],
  collector: FaultCollector,
): readonly string[] {
  const found = argumentPlaceholders(argument);
  for (const name of found.filter((each) => !known.includes(each))) {
    const list = known.map((item) => `{${item}}`).join(' ');
    collector.add(path, `{${name}} is not known here`, `Known here: ${list}.`);
  }
  return found;
}

/** A file inside a folder: no way out of it. */
export function checkRelative(path: Path, file: string, collector: FaultCollector): void {
  const parts = file.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..') || file.includes('\\')) {
    collector.add(
      path,
      `${JSON.stringify(file)} is no path inside the output folder`,
      'Write for example "patch.diff".',
    );
  }
}
