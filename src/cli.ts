#!/usr/bin/env node
import { writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import type { CommandContext, CommandDefinition } from './commands/command.js';
import { COMMANDS } from './commands/registry.js';
import { renderError } from './commands/render-error.js';
import { BoundbookError, systemCode } from './core/errors.js';
import { VERSION } from './core/version.js';

const EXIT_CODES = `
Exit codes: 0 done · 1 internal fault · 2 wrong input · 3 refused by the gate · 4 integrity or audit failure ·
5 stopped with work left. Every error has a code that docs/errors.md explains.`;

await main(process.argv.slice(2));

/** Parses the command line, runs one verb and sets the exit code. */
async function main(argv: readonly string[]): Promise<void> {
  const program = buildProgram();
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      // commander has printed its message; help and version are no faults.
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    fail(error, argv.includes('--json'));
  }
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
    .showHelpAfterError('(add --help for the flags and examples)')
    .showSuggestionAfterError(true)
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
    .showHelpAfterError('(add --help for the flags and examples)')
    .allowExcessArguments(false)
    .exitOverride();
  for (const option of definition.options) {
    if (option.required === true) command.requiredOption(option.flags, option.description);
    else command.option(option.flags, option.description);
  }
  command.option('--json', 'print one JSON document on stdout');
  command.action(async (...received: unknown[]) => {
    const args = received.slice(0, -2).filter((value) => value !== undefined);
    const options = command.opts<Record<string, string | boolean | undefined>>();
    await execute(definition, args.map(String), options, program.opts<{ C?: string }>().C);
  });
}

function helpAfter(definition: CommandDefinition): string {
  const lines = ['', 'Examples:', ...definition.examples.map((example) => `  $ ${example}`)];
  if (definition.next !== undefined) lines.push('', `Next: ${definition.next}`);
  return lines.join('\n');
}

async function execute(
  definition: CommandDefinition,
  args: readonly string[],
  options: Readonly<Record<string, string | boolean | undefined>>,
  folder: string | undefined,
): Promise<void> {
  const interrupt = new AbortController();
  if (definition.interruptible === true) {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => interrupt.abort(name));
  }
  const json = options.json === true;
  const context: CommandContext = {
    root: resolve(folder ?? '.'),
    json,
    terminal: process.stderr.isTTY === true && !json,
    progress: (line) => void process.stderr.write(`${line}\n`),
    signal: interrupt.signal,
    now: () => new Date().toISOString(),
  };
  const result = await definition.run(args, options, context);
  print(json ? JSON.stringify(result.json, null, 2) : result.text);
  process.exitCode = result.exitCode ?? 0;
}

/** Writes all of it before the process may end; a reader that has gone away (`| head`) is no fault. */
function print(text: string): void {
  const bytes = Buffer.from(`${text}\n`, 'utf8');
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(1, bytes, offset);
    } catch (error) {
      const code = systemCode(error);
      if (code === 'EPIPE') return;
      if (code !== 'EAGAIN') throw error;
    }
  }
}

function fail(error: unknown, json: boolean): void {
  const typed =
    error instanceof BoundbookError
      ? error
      : new BoundbookError(
          'INTERNAL',
          `internal fault: ${error instanceof Error ? error.message : String(error)}`,
          {
            hint: 'Please report it with the command line; BOUNDBOOK_DEBUG=1 prints where it happened.',
            cause: error,
          },
        );
  if (json) print(JSON.stringify(typed.toJson(), null, 2));
  process.stderr.write(`${renderError(typed)}\n`);
  if (process.env.BOUNDBOOK_DEBUG === '1' && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  process.exitCode = typed.exitCode;
}
