import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-git-'));
  folders.push(folder);
  return folder;
}

/** A real repository in a folder of its own. */
export class TestRepository {
  readonly folder: string;
  #minute = 0;

  constructor(...args: string[]) {
    this.folder = newFolder();
    this.git('init', '-q', '-b', 'main', ...args, '.');
  }

  /** Runs git without the configuration of this host; what it prints, without the last line break. */
  git(...args: string[]): string {
    return this.pipe('', ...args);
  }

  pipe(input: string | Buffer, ...args: string[]): string {
    const date = new Date(Date.UTC(2026, 10, 30, 12, this.#minute++)).toISOString();
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: this.folder,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_SYSTEM: '/dev/null',
      GIT_AUTHOR_NAME: 'Test',
      GIT_AUTHOR_EMAIL: 'test@example.org',
      GIT_COMMITTER_NAME: 'Test',
      GIT_COMMITTER_EMAIL: 'test@example.org',
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_DATE: date,
    };
    const options = { cwd: this.folder, env, input, stdio: ['pipe', 'pipe', 'ignore'] as const };
    return execFileSync('git', args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] })
      .toString()
      .replace(/\n$/, '');
  }

  write(path: string, content: string | Uint8Array): void {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  /** Commits some files; null removes one. */
  commit(files: Readonly<Record<string, string | Uint8Array | null>>, message = 'a commit'): string {
    for (const [path, content] of Object.entries(files)) {
      if (content === null) rmSync(join(this.folder, path));
      else this.write(path, content);
    }
    this.git('add', '-A');
    this.git('commit', '-q', '--allow-empty', '-m', message);
    return this.git('rev-parse', 'HEAD');
  }
}
