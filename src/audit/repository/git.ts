import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { BoundbookError, systemCode } from '../../core/errors.js';

/**
 * Runs git in a repository that may be hostile. Only verbs that read history are used; nothing of the repository's
 * configuration that could run a program, fetch, or change what history looks like is in force: no hooks, no file-system
 * monitor, no replacement objects, no grafts, no commit graph, no signature programs, no transport.
 */

const TIMEOUT_MS = 120_000;
const MAX_OUTPUT = 256 * 1024 * 1024;

const SETTINGS: readonly string[] = [
  'core.fsmonitor=false',
  'core.hooksPath=/dev/null',
  'core.commitGraph=false',
  'core.multiPackIndex=false',
  'core.useReplaceRefs=false',
  'core.quotePath=true',
  'gc.auto=0',
  'log.showRoot=true',
  'log.showSignature=false',
  'log.follow=false',
  'log.mailmap=false',
  'diff.renames=false',
  'protocol.allow=never',
];

export interface GitOptions {
  /** The git program. */
  readonly program?: string;
  /** For each call, in milliseconds. */
  readonly timeoutMs?: number;
  /** Of each call, in bytes. */
  readonly maxOutput?: number;
}

export interface GitResult {
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export class Git {
  readonly #folder: string;
  readonly #program: string;
  readonly #timeoutMs: number;
  readonly #maxOutput: number;

  constructor(folder: string, options: GitOptions = {}) {
    this.#folder = resolve(folder);
    this.#program = options.program ?? 'git';
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#maxOutput = options.maxOutput ?? MAX_OUTPUT;
  }

  /**
   * Runs one verb. A status that is not 0 is the caller's to judge.
   *
   * @param input what is written to its standard input
   * @throws {BoundbookError} GIT_UNAVAILABLE when it is missing, does not end, or says more than is read
   */
  run(args: readonly string[], input?: string): Promise<GitResult> {
    const settings = SETTINGS.flatMap((setting) => ['-c', setting]);
    const all = [
      '--no-pager',
      '--no-replace-objects',
      '--literal-pathspecs',
      '-C',
      this.#folder,
      ...settings,
    ];
    const options = {
      env: environment(),
      timeout: this.#timeoutMs,
      killSignal: 'SIGKILL' as const,
      maxBuffer: this.#maxOutput,
      encoding: 'buffer' as const,
    };
    return new Promise((done, reject) => {
      const child = execFile(this.#program, [...all, ...args], options, (error, stdout, stderr) => {
        const text = stderr.toString('utf8').slice(0, 2000);
        if (error === null) done({ status: 0, stdout, stderr: text });
        else if (typeof error.code === 'number') done({ status: error.code, stdout, stderr: text });
        else reject(unavailable(this.#program, error, this.#timeoutMs));
      });
      // A program that ends early does not read; what it says decides.
      child.stdin?.on('error', () => undefined).end(input);
    });
  }

  /** The output of a verb that must succeed. @throws {BoundbookError} GIT_UNAVAILABLE also when it fails. */
  async read(args: readonly string[], input?: string): Promise<Buffer> {
    const { status, stdout, stderr } = await this.run(args, input);
    if (status === 0) return stdout;
    throw new BoundbookError('GIT_UNAVAILABLE', `git ${args[0]} failed: ${firstLine(stderr)}`, {
      hint: 'Clone the repository anew and give that clone; `git fsck` shows damage.',
      evidence: { status, stderr },
    });
  }

  /** {@link read} as text without the final line break. */
  async text(args: readonly string[]): Promise<string> {
    return (await this.read(args)).toString('latin1').trimEnd();
  }
}

/** Nothing of our own environment but the path; the configuration of host and user is left out. */
function environment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH ?? '',
    LC_ALL: 'C',
    HOME: '/nonexistent',
    XDG_CONFIG_HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_GRAFT_FILE: '/dev/null',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    // A name that is no protocol: whatever a repository allows for itself is void then.
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    GIT_SSH_COMMAND: '/bin/false',
  };
}

function unavailable(
  program: string,
  error: Error & { killed?: boolean },
  timeoutMs: number,
): BoundbookError {
  const code = systemCode(error);
  const reason =
    code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
      ? 'it says more than is read'
      : error.killed === true
        ? `it did not end within ${timeoutMs / 1000} seconds`
        : `it does not run (${code ?? 'unknown error'})`;
  return new BoundbookError('GIT_UNAVAILABLE', `the program "${program}" cannot be used: ${reason}`, {
    hint: 'Install git, or leave out --repository.',
    cause: error,
  });
}

export function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').slice(0, 300) || 'it gave no reason';
}
