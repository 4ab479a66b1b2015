import type { ExitCode } from '../core/error-codes.js';
import type { JsonValue } from '../core/json.js';

/** What a command may use of the outside. Tests hand in their own. */
export interface CommandContext {
  /** The workspace: protocol/, manifests/ and ledger/ lie here, and relative paths of a protocol start here. */
  readonly root: string;
  /** Whether `--json` was given: one JSON document on stdout, nothing else. */
  readonly json: boolean;
  /** Whether stderr is a terminal, so that a bar can be drawn. */
  readonly terminal: boolean;
  /** Progress and remarks for people, a line at a time, on stderr. */
  readonly progress: (line: string) => void;
  /** Aborts on Ctrl-C, SIGTERM and the end of the terminal (SIGHUP), for verbs that are `interruptible`. */
  readonly signal: AbortSignal;
  /** Aborts on the second such signal: whoever is still waiting stops at once. */
  readonly force: AbortSignal;
  /** The time as RFC 3339 with milliseconds, UTC. */
  readonly now: () => string;
}

export interface CommandResult {
  /** Printed on stdout without `--json`; ends without a line break. */
  readonly text: string;
  /** Printed on stdout with `--json`. */
  readonly json: JsonValue;
  /** 0 when absent. */
  readonly exitCode?: ExitCode;
}

export interface OptionDefinition {
  /** In commander's notation: `--workers <n>`. */
  readonly flags: string;
  readonly description: string;
  readonly required?: boolean;
  /** May be given several times; the values then come as a list. */
  readonly repeatable?: boolean;
}

/** What a flag came with: true without a value, a list when it is `repeatable`, undefined when it was not given. */
export type OptionValue = string | boolean | readonly string[] | undefined;

/**
 * One verb. The file that defines it imports types only at its top; `run` loads what it needs, so that `--help`
 * stays fast.
 */
export interface CommandDefinition {
  readonly name: string;
  /** In commander's notation: `<protocol>`, `[manifest]`, `<file...>` for any number. */
  readonly args: string;
  readonly summary: string;
  readonly options: readonly OptionDefinition[];
  readonly examples: readonly string[];
  /** The verb ends in order on Ctrl-C by itself; without this, Ctrl-C ends the program at once. */
  readonly interruptible?: boolean;
  /** What to do after it, in one line. */
  readonly next?: string;
  readonly run: (
    args: readonly string[],
    options: Readonly<Record<string, OptionValue>>,
    context: CommandContext,
  ) => Promise<CommandResult>;
}
