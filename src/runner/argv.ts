import { BoundbookError } from '../core/errors.js';
import { fillTemplate, parseTemplate } from '../protocol/template.js';

/** The bound sources: their paths as the protocol writes them, and the paths that the gate verified on this host. */
export type SourcePaths = ReadonlyMap<string, string>;

/**
 * An argv with its placeholders filled in. An argument that names a bound source, or something inside one, becomes
 * exactly the path that the gate verified, so that what runs is what was hashed, in whatever folder it runs.
 *
 * @throws {BoundbookError} PROTOCOL_INVALID for a placeholder that has no value here.
 */
export function fillArgv(
  argv: readonly string[],
  values: Readonly<Record<string, string | undefined>>,
  sources: SourcePaths,
): string[] {
  return argv.map((argument) => sourcePath(argument, sources) ?? fill(argument, values));
}

function fill(argument: string, values: Readonly<Record<string, string | undefined>>): string {
  const parsed = parseTemplate(argument);
  if (!parsed.ok) return refuse(`${JSON.stringify(argument)} has ${parsed.problem}`);
  return fillTemplate(
    parsed.template,
    (name) =>
      (Object.hasOwn(values, name) ? values[name] : undefined) ?? refuse(`{${name}} has no value here`),
  );
}

function sourcePath(argument: string, sources: SourcePaths): string | null {
  const path = argument.replace(/^\.\//, '');
  for (const [declared, verified] of sources) {
    const source = declared.replace(/^\.\//, '').replace(/\/$/, '');
    if (path === source) return verified;
    if (path.startsWith(`${source}/`)) return verified + path.slice(source.length);
  }
  return null;
}

function refuse(problem: string): never {
  throw new BoundbookError('PROTOCOL_INVALID', `a command of the runner cannot be started: ${problem}`, {
    hint: 'Declare what the placeholder stands for (a tokenizer, for example), or leave it out, and freeze again.',
  });
}
