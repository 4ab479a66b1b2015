import { spawn } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { temporaryFolder } from './support.js';

const CLI = join(import.meta.dirname, '../../../dist/cli.js');
/**
 * Writes the most memory that the program ever held when it ends: the kernel's VmHWM in kB. (`maxRSS` would count that of
 * the test run too, which the kernel carries over to the programs that it starts.)
 */
const WATCH = `import { readFileSync, writeFileSync } from 'node:fs';
process.on('exit', () => writeFileSync(process.env.WATCH_FILE, /VmHWM:\\s*(\\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1]));`;

export interface Audited {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Peak resident memory, bytes. */
  readonly memory: number;
}

/**
 * `boundbook audit PATH` as a process of its own, and what holds for any bundle: it ends by itself with a verdict or one
 * typed line, never with a stack trace; what it prints steers no terminal; it writes nothing and leaves nothing behind.
 */
export async function auditHostile(path: string, ...flags: string[]): Promise<Audited> {
  const host = temporaryFolder();
  const [cwd, temporary, watch] = ['work', 'tmp', 'watch'].map((name) => join(host, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [cwd, temporary, watch]) mkdirSync(folder);
  writeFileSync(join(watch, 'watch.mjs'), WATCH);
  const before = listing(path);
  const child = spawn(
    process.execPath,
    ['--import', join(watch, 'watch.mjs'), CLI, 'audit', path, ...flags],
    {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: temporary, WATCH_FILE: join(watch, 'memory') },
    },
  );
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const audited = {
    status,
    stdout: stdout(),
    stderr: stderr(),
    memory: Number(readFileSync(join(watch, 'memory'), 'utf8')) * 1024,
  };
  rmSync(watch, { recursive: true });
  expect(audited.stderr).not.toMatch(/^\s+at /m);
  expect(audited.stderr).toMatch(/^(|boundbook: .*\[[A-Z_]+\]\n(hint: .*\n)?)$/);
  for (const output of [audited.stdout, audited.stderr]) {
    expect(output).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  }
  expect(readdirSync(cwd)).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
  expect(listing(path)).toEqual(before);
  return audited;
}

function text(stream: NodeJS.ReadableStream): () => string {
  let all = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    all += chunk;
  });
  return () => all;
}

/** Names, sizes and times of everything that lies there, links not followed; names are bytes. */
function listing(path: string): string[] {
  const found: string[] = [];
  const open = existsSync(path) ? [Buffer.from(path)] : [];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const stats = lstatSync(name);
    found.push(`${name.toString('latin1')} ${stats.size} ${stats.mtimeMs} ${stats.mode}`);
    if (!stats.isDirectory()) continue;
    const above = Buffer.concat([name, Buffer.from('/')]);
    for (const below of readdirSync(name, { encoding: 'buffer' })) open.push(Buffer.concat([above, below]));
  }
  return found.sort();
}

const BLOCK = 512;

/** What a member of a tar says of itself; anything goes. */
export interface Member {
  readonly path: string | Buffer;
  readonly content?: Buffer;
  /** `0` a file, `1` a hard link, `2` a link, `3` a device, `5` a folder, `6` a pipe, `x` `g` `L` extensions. */
  readonly type?: string;
  readonly link?: string;
  /** The twelve bytes of its size, when they are not to be those of its content. */
  readonly size?: Buffer;
}

/** A tar byte by byte, without anybody's good manners. */
export function craftTar(members: readonly Member[], end = Buffer.alloc(2 * BLOCK)): Buffer {
  const parts = members.flatMap((member) => {
    const { content = Buffer.of() } = member;
    return [headerOf(member), content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];
  });
  return Buffer.concat([...parts, end]);
}

function headerOf({ path, content = Buffer.of(), type = '0', link = '', size }: Member): Buffer {
  const header = Buffer.alloc(BLOCK);
  Buffer.from(path).copy(header, 0, 0, 100);
  header.write('0000644\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  (size ?? Buffer.from(`${content.length.toString(8).padStart(11, '0')}\0`)).copy(header, 124);
  header.write('00000000000\0', 136);
  header.fill(' ', 148, 156);
  header.write(type, 156);
  header.write(link, 157, 100);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/** A pax extension for the member that follows. */
export function pax(records: Readonly<Record<string, string>>): Member {
  const content = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    let length = rest.length;
    while (String(length).length + Buffer.byteLength(rest) !== length) {
      length = String(length).length + Buffer.byteLength(rest);
    }
    return Buffer.from(`${length}${rest}`);
  });
  return { path: 'PaxHeader/x', type: 'x', content: Buffer.concat(content) };
}
