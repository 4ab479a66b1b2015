import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openBook } from '../../src/ledger/book.js';
import { type Desk, LEAKS, listed, makeDesk } from './support.js';

const CLI = join(import.meta.dirname, '../../dist/cli.js');
const hasTmux = spawnSync('tmux', ['-V']).status === 0;

let desk: Desk;
afterEach(() => desk.remove());

async function committed(): Promise<number> {
  const book = await openBook(desk.root, undefined, 'read');
  const open = book.fold.adjudications.open;
  book.close();
  return open?.judged.length ?? -1;
}

/** A terminal of its own, as a person has one. */
class Terminal {
  readonly #socket = `boundbook-${process.pid}-${Math.random().toString(36).slice(2)}`;

  constructor(command: string) {
    this.#tmux('new-session', '-d', '-x', '110', '-y', '50', `${command}; echo "exit $?"; sleep 60`);
  }

  type(...keys: readonly string[]): void {
    this.#tmux('send-keys', ...keys);
  }

  screen(): string {
    return this.#tmux('capture-pane', '-p', '-S', '-500');
  }

  async until(text: string | RegExp): Promise<string> {
    await expect.poll(() => this.screen(), { timeout: 40_000, interval: 200 }).toMatch(text);
    return this.screen();
  }

  end(): void {
    this.#tmux('kill-server');
  }

  #tmux(...args: readonly string[]): string {
    return spawnSync('tmux', ['-L', this.#socket, ...args], { encoding: 'utf8' }).stdout;
  }
}

describe.skipIf(!hasTmux)('on a real terminal (needs tmux)', () => {
  it('asks one item after the other; Ctrl-C loses nothing; the last verdict closes the round', {
    timeout: 120_000,
  }, async () => {
    desk = await makeDesk([1, 4]);
    await listed(desk, { duplicates: '0' });
    const command = `${process.execPath} ${CLI} -C ${desk.root} adjudicate`;
    const first = new Terminal(command);
    try {
      await first.until(/^>/m);
      first.type('/', 'upstream', 'Enter');
      await first.until(/generate, response:1: <html><script>/);
      first.type('i', 'Enter');
      await first.until(/Reason/);
      first.type('bad', 'Enter');
      await first.until('a reason has at least 3 words');
      first.type('the proxy closed it', 'Enter');
      await first.until('Committed.');
      await first.until(/1 of 2 judged/);
      first.type('C-c');
      const screen = await first.until('exit 5');
      expect(screen).toContain('1 of 2 questions have a verdict.');
      for (const leak of LEAKS) expect(screen).not.toContain(leak);
    } finally {
      first.end();
    }
    expect(await committed()).toBe(1);
    const second = new Terminal(command);
    try {
      await second.until(/1 of 2 judged/);
      second.type('m', 'Enter');
      await second.until(/Reason/);
      second.type('the answer is no number', 'Enter');
      await second.until(/apply them now/);
      second.type('y', 'Enter');
      expect(await second.until('exit 0')).toMatch(/verdicts +2 opened/);
    } finally {
      second.end();
    }
    const book = await openBook(desk.root, undefined, 'read');
    expect(book.fold.adjudications.closed).toMatchObject([{ verdicts: 2, abandoned: null }]);
    book.close();
  });
});

describe('without a terminal', () => {
  it('shows the next item, for a pipe', async () => {
    desk = await makeDesk([4]);
    const { status, stdout } = spawnSync(process.execPath, [CLI, '-C', desk.root, 'adjudicate', '--json'], {
      encoding: 'utf8',
      input: '',
    });
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ judged: 0, item: { judged: false } });
  });

  it('the page ends on Ctrl-C', { timeout: 60_000 }, async () => {
    desk = await makeDesk([4]);
    const child = spawn(process.execPath, [CLI, '-C', desk.root, 'adjudicate', '--serve'], { stdio: 'pipe' });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      said += part;
    });
    await expect.poll(() => said, { timeout: 30_000 }).toMatch(/http:\/\/127\.0\.0\.1:\d+\/\S{32}\//);
    const [address = ''] = /http:\S+/.exec(said) ?? [];
    expect((await fetch(address)).status).toBe(200);
    const refused = spawnSync(process.execPath, [CLI, '-C', desk.root, 'adjudicate', '--list'], {
      encoding: 'utf8',
    });
    expect([refused.status, refused.stderr]).toEqual([
      5,
      expect.stringContaining('another adjudicator is at work'),
    ]);
    child.kill('SIGINT');
    const status = await new Promise((resolve) => child.once('exit', resolve));
    expect(status).toBe(0);
  });
});
