import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A call that changed files, or said something to the outside, in the order in which the calls returned. */
export type Event =
  | { readonly op: 'create'; readonly path: string }
  | { readonly op: 'write'; readonly path: string; readonly offset: number; readonly data: Buffer }
  | { readonly op: 'truncate'; readonly path: string; readonly length: number }
  | { readonly op: 'sync'; readonly path: string }
  | { readonly op: 'rename' | 'link'; readonly from: string; readonly to: string }
  | { readonly op: 'unlink' | 'mkdir' | 'rmdir'; readonly path: string }
  /** Text written to standard output, by which the program acknowledges something. */
  | { readonly op: 'say'; readonly text: string };

const CALLS =
  'openat,write,pwrite64,writev,pwritev,fsync,fdatasync,ftruncate,/^rename,/^link,/^unlink,/^mkdir,rmdir';

/**
 * Runs a program under strace and returns what it did to files below some folders. Other programs that it starts are not
 * followed. Names and data come in hexadecimal, so that nothing has to be unescaped.
 */
export function record(
  argv: readonly string[],
  options: { readonly cwd: string; readonly log: string; readonly below: readonly string[] },
): readonly Event[] {
  const { cwd, log, below } = options;
  const flags = ['-f', '-b', 'execve', '-qq', '-e', 'signal=none', '-y', '-xx'];
  const args = [...flags, '-s', '4000000', '-o', log, '-e', `trace=${CALLS}`, ...argv];
  const { status, stderr } = spawnSync('strace', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, UV_USE_IO_URING: '0' },
  });
  if (status !== 0) throw new Error(`the recorded program ended with ${status}: ${stderr}`);
  return parse(readFileSync(log, 'latin1'), cwd, below);
}

function parse(text: string, cwd: string, below: readonly string[]): readonly Event[] {
  const parser = new Parser(cwd, below);
  const begun = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/s.exec(line) ?? [];
    const unfinished = rest.indexOf(' <unfinished ...>');
    if (unfinished >= 0) {
      begun.set(thread, rest.slice(0, unfinished));
      continue;
    }
    const resumed = /^<\.\.\. [a-z0-9_]+ resumed>(.*)$/s.exec(rest);
    const whole = resumed === null ? rest : `${begun.get(thread) ?? ''}${resumed[1] ?? ''}`;
    begun.delete(thread);
    parser.take(whole);
  }
  return parser.events;
}

class Parser {
  readonly events: Event[] = [];
  readonly #cwd: string;
  readonly #below: readonly string[];
  /** Where the next plain write to a file goes. Files that are written so are written from one end to the other. */
  readonly #positions = new Map<string, number>();

  constructor(cwd: string, below: readonly string[]) {
    this.#cwd = cwd;
    this.#below = below;
  }

  take(call: string): void {
    const [, name = '', body = '', result = ''] = /^([a-z0-9_]+)\((.*)\) += (-?\d+.*)$/s.exec(call) ?? [];
    if (result === '' || result.startsWith('-')) return;
    if (name === 'write' && body.startsWith('1<')) this.#say(body);
    else if (name === 'openat') this.#open(this.#absolute(textsIn(name, body)[0]), body);
    else {
      const event = this.#eventOf(name, body);
      const path = event === null ? '' : 'to' in event ? event.to : event.path;
      if (event !== null && this.#isBelow(path)) this.events.push(event);
    }
  }

  /** What a call does to files; null when it is none that does something to them. */
  #eventOf(name: string, body: string): Exclude<Event, { op: 'say' }> | null {
    const path = fromHex(/^\d+<([^>]*)>/.exec(body)?.[1] ?? '').toString('utf8');
    const last = Number(/, (\d+)$/.exec(body)?.[1]);
    const texts = textsIn(name, body);
    const [first, second] = [this.#absolute(texts[0]), this.#absolute(texts[1])];
    switch (name) {
      case 'write':
        return this.#isBelow(path) ? this.#write(path, texts[0]) : null;
      case 'pwrite64':
        return { op: 'write', path, offset: last, data: texts[0] ?? Buffer.alloc(0) };
      case 'writev':
      case 'pwritev':
        if (this.#isBelow(path)) throw new Error(`${name} to ${path} is not understood`);
        return null;
      case 'fsync':
      case 'fdatasync':
        return { op: 'sync', path };
      case 'ftruncate':
        return { op: 'truncate', path, length: last };
      case 'rename':
      case 'renameat':
      case 'renameat2':
        return { op: 'rename', from: first, to: second };
      case 'link':
      case 'linkat':
        return { op: 'link', from: first, to: second };
      case 'unlink':
      case 'unlinkat':
        return { op: body.includes('AT_REMOVEDIR') ? 'rmdir' : 'unlink', path: first };
      case 'mkdir':
      case 'mkdirat':
        return { op: 'mkdir', path: first };
      case 'rmdir':
        return { op: 'rmdir', path: first };
      default:
        return null;
    }
  }

  #say(body: string): void {
    this.events.push({ op: 'say', text: (textsIn('write', body)[0] ?? '').toString('utf8') });
  }

  #open(path: string, body: string): void {
    if (!body.includes('O_CREAT') || !this.#isBelow(path)) return;
    this.#positions.set(path, 0);
    this.events.push({ op: 'create', path });
    if (body.includes('O_TRUNC')) this.events.push({ op: 'truncate', path, length: 0 });
  }

  #write(path: string, data = Buffer.alloc(0)): Event & { op: 'write' } {
    const offset = this.#positions.get(path) ?? 0;
    this.#positions.set(path, offset + data.length);
    return { op: 'write', path, offset, data };
  }

  #isBelow(path: string): boolean {
    return this.#below.some((folder) => path === folder || path.startsWith(`${folder}/`));
  }

  #absolute(bytes = Buffer.alloc(0)): string {
    const path = bytes.toString('utf8');
    return path.startsWith('/') ? path : `${this.#cwd}/${path}`;
  }
}

/** The texts of a call, which come in hexadecimal. */
function textsIn(name: string, body: string): Buffer<ArrayBuffer>[] {
  return [...body.matchAll(/"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?/g)].map((match) => {
    if (match[2] !== undefined) throw new Error(`${name}: the recording cut its data`);
    return fromHex(match[1] ?? '');
  });
}

/** `\x61\x62` → ab */
function fromHex(text: string): Buffer<ArrayBuffer> {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex');
}
