import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

/** Where the built program and the demo's models lie: what `npm test` has built before is needed. */
export const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), '../..');

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A workspace with the demo's tasks, models and server, inside the repository, so that the server finds its package. */
export function demoWorkspace(prefix: string): string {
  const folder = emptyFolder(prefix);
  for (const path of ['demo/tasks', 'demo/models', 'demo/dist/server', 'protocol/demo.yaml'])
    cpSync(join(REPOSITORY, path), join(folder, path), { recursive: true });
  return folder;
}

/** A copy of a workspace as it is now. */
export function copyOf(folder: string, prefix: string): string {
  const copy = emptyFolder(prefix);
  cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
  return copy;
}

function emptyFolder(prefix: string): string {
  mkdirSync(join(REPOSITORY, 'demo/work'), { recursive: true });
  const folder = mkdtempSync(join(REPOSITORY, `demo/work/${prefix}-`));
  folders.push(folder);
  return folder;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built program in a folder, as a user would. */
export function boundbook(folder: string, ...args: readonly string[]): Ended {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(REPOSITORY, 'dist/cli.js'), ...args], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64e6,
  });
  return { code: status, stdout, stderr };
}

/** As {@link boundbook}, for a call that has to succeed. @returns what it printed */
export function done(folder: string, ...args: readonly string[]): string {
  const { code, stdout, stderr } = boundbook(folder, ...args);
  if (code !== 0) throw new Error(`boundbook ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
  return stdout;
}

/** The document that a call prints with `--json`, whatever its exit status. */
export function document<T>(folder: string, ...args: readonly string[]): T {
  const { stdout, stderr } = boundbook(folder, ...args, '--json');
  try {
    return JSON.parse(stdout) as T;
  } catch {
    throw new Error(`boundbook ${args.join(' ')} printed no document: ${stdout}${stderr}`);
  }
}

/** The demo's protocol under another name, with every edit applied; an edit that finds nothing is an error. */
export function demoProtocol(folder: string, edits: readonly (readonly [RegExp, string])[]): string {
  return edits.reduce(
    (text, [from, to]) => {
      if (text.search(from) < 0) throw new Error(`${from} does not occur in the demo's protocol`);
      return text.replace(from, to);
    },
    readFileSync(join(folder, 'protocol/demo.yaml'), 'utf8'),
  );
}
