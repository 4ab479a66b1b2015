import type { CommandContext, CommandDefinition, CommandResult } from '../../src/commands/command.js';

/** Runs a verb as the command line would, with flags as commander hands them over. */
export function invoke(
  command: CommandDefinition,
  root: string,
  args: readonly string[] = [],
  options: Readonly<Record<string, unknown>> = {},
): Promise<CommandResult> {
  const context: CommandContext = {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    force: new AbortController().signal,
    now: () => new Date().toISOString(),
  };
  return command.run(args, options as Parameters<CommandDefinition['run']>[1], context);
}
