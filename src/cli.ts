#!/usr/bin/env node
import { statSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import type { CommandContext, CommandDefinition, OptionValue } from './commands/command.js';
import { EXIT_CODES, helpAfter } from './commands/help-text.js';
import { COMMANDS } from './commands/registry.js';
import { renderError } from './commands/render-error.js';
import { BoundbookError, systemCode } from './core/errors.js';
import { VERSION } from './core/version.js';

/** Parses the command line, runs one verb and sets the exit code. */
async function main(argv: readonly string[]): Promise<void> {
  // Progress is written to a reader that may go away.
  process.stderr.on('error', () => undefined);
  const program = buildProgram();
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    const json = argv.includes('--json');
    if (!(error instanceof CommanderError)) return fail(error, json);
    // Help and version were printed; they are no faults, but a missing verb is.
    if (error.exitCode === 0) return;
    if (error.code === 'commander.help') process.exitCode = 2;
    else fail(usageError(error), json);
  }
}

function usageError(error: CommanderError): BoundbookError {
  return new BoundbookError('USAGE', error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' '), {
    hint: 'Add --help for the flags and examples.',
    cause: error,
  });
}

function buildProgram(): Command {
  const program = new Command('boundbook')
    .description(
      'Freeze an evaluation plan, run it under a gate, keep a book of every attempt, report bounds.',
    )
    .version(VERSION, '-V, --version')
    .option('-C <folder>', 'work as if started in this folder')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [verb]', 'show the help of a verb')
    .addHelpText('after', EXIT_CODES)
    .showSuggestionAfterError(true)
    .configureOutput({ writeOut: write, outputError: () => undefined })
    .exitOverride();
  for (const definition of COMMANDS) addCommand(program, definition);
  return program;
}

function addCommand(program: Command, definition: CommandDefinition): void {
  const command = program
    .command(`${definition.name} ${definition.args}`.trim())
    .description(definition.summary)
    .helpOption('-h, --help', 'show help')
    .addHelpText('after', helpAfter(definition))
    .allowExcessArguments(false)
    .exitOverride();
  for (const option of definition.options) {
    const { flags, description } = option;
    const takesOne = flags.includes('<') && !flags.includes('...');
    if (option.repeatable === true) command.option(flags, description, collect);
    else if (option.required === true && takesOne) command.requiredOption(flags, description, once(flags));
    else if (option.required === true) command.requiredOption(flags, description);
    else if (takesOne) command.option(flags, description, once(flags));
    else command.option(flags, description);
  }
  command.option('--json', 'print one JSON document on stdout');
  command.action(async (...received: unknown[]) => {
    const args = received
      .slice(0, -2)
      .flat()
      .filter((value) => value !== undefined);
    const options = command.opts<Record<string, OptionValue>>();
    await execute(definition, args.map(String), options, program.opts<{ C?: string }>().C);
  });
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Of a flag that is given twice, the first value would be lost without a word. */
function once(flags: string): (value: string, before: string | undefined) => string {
  return (value, before) => {
    if (before === undefined) return value;
    const flag = flags.split(' ')[0] ?? flags;
    throw new BoundbookError('USAGE', `${flag} was given more than once`, {
      hint: `Leave one of them out: ${before} or ${value}.`,
    });
  };
}

async function execute(
  definition: CommandDefinition,
  args: readonly string[],
  options: Readonly<Record<string, OptionValue>>,
  folder: string | undefined,
): Promise<void> {
  const { signal, force } = definition.interruptible === true ? catchSignals() : NEVER;
  const json = options.json === true;
  const context: CommandContext = {
    root: workspaceAt(folder ?? '.'),
    json,
    terminal: process.stderr.isTTY === true && !json,
    progress: (line) => void process.stderr.write(`${line}\n`),
    signal,
    force,
    now: () => new Date().toISOString(),
  };
  const result = await definition.run(args, options, context);
  write(`${json ? JSON.stringify(result.json, null, 2) : result.text}\n`);
  process.exitCode = result.exitCode ?? 0;
}

const NEVER = { signal: new AbortController().signal, force: new AbortController().signal };

/** The first signal asks the verb to end in order, the second to end at once. A closed terminal counts as one. */
function catchSignals(): { signal: AbortSignal; force: AbortSignal } {
  const first = new AbortController();
  const second = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => (first.signal.aborted ? second : first).abort(name));
  }
  return { signal: first.signal, force: second.signal };
}

function workspaceAt(folder: string): string {
  const root = resolve(folder);
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
    throw new BoundbookError('FILE_NOT_FOUND', `${folder} is no folder`, {
      hint: 'Name the workspace with -C, or make one with `boundbook init FOLDER`.',
    });
  }
  return root;
}

/** Writes all of it before the process may end; a reader that has gone away (`| head`) is no fault. */
function write(text: string): void {
  const bytes = Buffer.from(text, 'utf8');
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(1, bytes, offset);
    } catch (error) {
      const code = systemCode(error);
      if (code === 'EPIPE') return;
      if (code === 'EAGAIN') continue;
      throw new BoundbookError(
        'FILE_UNWRITABLE',
        `standard output cannot be written (${code ?? 'unknown error'})`,
        {
          hint: 'The command itself has ended; only its printed result is lost. `boundbook status` shows where things stand.',
          cause: error,
        },
      );
    }
  }
}

function fail(error: unknown, json: boolean): void {
  const typed = error instanceof BoundbookError ? error : internalFault(error);
  process.exitCode = typed.exitCode;
  try {
    if (json) write(`${JSON.stringify(typed.toJson(), null, 2)}\n`);
  } catch {
    // Standard output is what failed; standard error says so below.
  }
  try {
    writeSync(2, `${renderError(typed)}\n`);
    if (process.env.BOUNDBOOK_DEBUG === '1' && error instanceof Error) writeSync(2, `${error.stack}\n`);
  } catch {
    // Nobody listens: the exit code is all that is left.
  }
}

function internalFault(error: unknown): BoundbookError {
  const message = error instanceof Error ? error.message : String(error);
  return new BoundbookError('INTERNAL', `internal fault: ${message}`, {
    hint: 'Please report it with the command line; BOUNDBOOK_DEBUG=1 prints where it happened.',
    cause: error,
  });
}

await main(process.argv.slice(2));
