import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LedgerStore } from '../../src/ledger/store.js';
import { compiledSources } from './compiled.js';
import { gateDraft, newLedger, SLOTS, SlotScript, testClock } from './support.js';

let sources: ReturnType<typeof compiledSources>;
beforeAll(() => {
  sources = compiledSources();
});
afterAll(() => sources.remove());

interface Ended {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

/** Runs a script as a process of its own; `Store`, `now` and `folder` are at hand. */
function start(folder: string, script: string, uid?: number): { child: ChildProcess; ended: Promise<Ended> } {
  const url = pathToFileURL(join(sources.folder, 'ledger/store.js')).href;
  const prelude = `
    const { LedgerStore } = await import(${JSON.stringify(url)});
    const folder = ${JSON.stringify(folder)};
    const now = () => new Date().toISOString();
    const gate = (n) => ({ ...${JSON.stringify(gateDraft())}, session: n.toString(16).padStart(32, '0') });
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + script], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: sources.folder,
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (status, signal) => resolve({ status, signal, output })),
  );
  return { child, ended };
}

describe('several processes on one ledger', () => {
  it('lose no append and break no link', async () => {
    const store = await newLedger();
    store.close();
    const script = (base: number) => `
      const store = LedgerStore.openWriter(folder, { now, busyMs: 30000 });
      for (let i = 0; i < 60; i++) console.log(store.append([gate(${base} + i)])[0].seq);
      store.close();`;
    const ended = await Promise.all(
      [1000, 2000, 3000, 4000].map((base) => start(store.folder, script(base)).ended),
    );
    expect(ended.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    const acknowledged = ended.flatMap(({ output }) => output.trim().split('\n').map(Number));
    expect(acknowledged.sort((a, b) => a - b)).toEqual(Array.from({ length: 240 }, (_, i) => i + 1));
    const reader = LedgerStore.openReader(store.folder);
    const sessions = new Set(
      [...reader.entries(1)].map(({ entry }) => (entry.type === 'gate.passed' ? entry.session : '')),
    );
    expect(sessions.size).toBe(240);
    reader.close();
  });

  it('F-109: claim every slot once', async () => {
    const store = await newLedger();
    store.close();
    const claims = SLOTS.map((slot) => new SlotScript(slot).start().drafts[0]);
    writeFileSync(join(store.folder, 'claims.json'), JSON.stringify(claims));
    const script = `
      const { readFileSync } = await import('node:fs');
      const claims = JSON.parse(readFileSync(folder + '/claims.json', 'utf8'));
      const taken = new Set();
      const store = LedgerStore.openWriter(folder, { now, busyMs: 30000, follow: ({ entry }) => { if (entry.type === 'attempt.started') taken.add(entry.slot); } });
      for (;;) {
        const { result } = store.transact(() => {
          const claim = claims.find(({ slot }) => !taken.has(slot));
          return { drafts: claim === undefined ? [] : [claim], result: claim?.slot };
        });
        if (result === undefined) break;
        console.log(result);
      }
      store.close();`;
    const ended = await Promise.all([1, 2, 3, 4].map(() => start(store.folder, script).ended));
    expect(ended.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    const claimed = ended.flatMap(({ output }) =>
      output
        .trim()
        .split('\n')
        .filter((line) => line !== ''),
    );
    expect([...claimed].sort()).toEqual(SLOTS.map(({ id }) => id).sort());
  });

  it('F-109: make a ledger once when they start together', async () => {
    const store = await newLedger();
    const [opened] = [...store.entries()];
    const { seq, prev, time, ...draft } = opened?.entry ?? {};
    void [seq, prev, time];
    const folder = `${store.folder}-two`;
    const script = `
      try { (await LedgerStore.create(folder, { draft: ${JSON.stringify(draft)}, objects: [] }, { now })).close(); console.log('made'); }
      catch (error) { console.log(error.code); }`;
    const ended = await Promise.all([1, 2, 3, 4].map(() => start(folder, script).ended));
    expect(ended.map(({ output }) => output.trim()).sort()).toEqual([
      'FILE_EXISTS',
      'FILE_EXISTS',
      'FILE_EXISTS',
      'made',
    ]);
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('keep every acknowledged entry when they are killed', async () => {
    const store = await newLedger();
    store.close();
    for (let round = 0; round < 4; round++) {
      const { child, ended } = start(
        store.folder,
        `const { writeSync: write } = await import('node:fs');
         const store = LedgerStore.openWriter(folder, { now });
         for (let i = 0; ; i++) { const [entry] = store.append([gate(${round + 1} * 1e6 + i)]); write(1, entry.seq + '\\n'); }`,
      );
      // Killed some way into its work, however slow the machine is.
      let lines = 0;
      child.stdout?.on('data', (chunk: Buffer) => {
        lines += chunk.toString().split('\n').length - 1;
        if (lines > 10 + 7 * round) child.kill('SIGKILL');
      });
      const { signal, output } = await ended;
      expect(signal).toBe('SIGKILL');
      const acknowledged = Number(output.trim().split('\n').at(-1));
      const reader = LedgerStore.openReader(store.folder);
      // One more may be there: committed, and killed before it could say so.
      expect([acknowledged + 1, acknowledged + 2]).toContain([...reader.entries()].length);
      reader.close();
    }
  });
});

describe('F-97: busy', () => {
  it('waits for another process no longer than it was told, and loses nothing', async () => {
    const store = await newLedger({ busyMs: 200 });
    const other = new Database(store.file);
    other.exec('BEGIN IMMEDIATE');
    const from = performance.now();
    expect(() => store.append([gateDraft()])).toThrowError(
      expect.objectContaining({ code: 'LEDGER_BUSY', exitCode: 5, hint: expect.stringMatching(/./) }),
    );
    const waited = performance.now() - from;
    expect(waited).toBeGreaterThan(150);
    expect(waited).toBeLessThan(5_000);
    other.exec('COMMIT');
    expect(store.append([gateDraft()])[0]?.seq).toBe(1);
    other.close();
  });

  it('meets no snapshot error when others committed since it last read', async () => {
    const store = await newLedger();
    const other = LedgerStore.openWriter(store.folder, { now: testClock() });
    const pages = store.entries();
    pages.next();
    for (let i = 1; i < 20; i++) {
      expect(other.append([gateDraft(`a${i}`.padStart(32, '0'))])[0]?.seq).toBe(2 * i - 1);
      expect(store.append([gateDraft(`b${i}`.padStart(32, '0'))])[0]?.seq).toBe(2 * i);
    }
    other.close();
  });
});

describe.skipIf(process.getuid?.() !== 0)('without the right (needs root to take it away)', () => {
  const NOBODY = 65_534;
  const report = (call: string) =>
    `try { ${call}; console.log('opened'); } catch (error) { console.log(error.code + ' ' + error.exitCode); }`;

  it('each refusal is typed', async ({ skip }) => {
    const store = await newLedger();
    store.close();
    chmodSync(join(store.folder, '..'), 0o755);
    const reader = report('LedgerStore.openReader(folder).close()');
    const writer = report('LedgerStore.openWriter(folder, { now }).close()');
    const outcome = async (script: string) => (await start(store.folder, script, NOBODY).ended).output.trim();
    if ((await outcome("console.log('ready')")) !== 'ready') skip('another user cannot read this checkout');
    // Readable, but the folder takes no -wal file, which SQLite needs for reading as well.
    expect(await outcome(reader)).toBe('FILE_UNREADABLE 2');
    expect(await outcome(writer)).toBe('FILE_UNWRITABLE 2');
    chmodSync(store.file, 0o600);
    expect(await outcome(reader)).toBe('FILE_UNREADABLE 2');
    expect(await outcome(writer)).toBe('FILE_UNWRITABLE 2');
    chmodSync(store.file, 0o444);
    chownSync(store.folder, NOBODY, NOBODY);
    expect(await outcome(reader)).toBe('opened');
    expect(await outcome(writer)).toBe('FILE_UNWRITABLE 2');
    chownSync(store.folder, 0, 0);
    chmodSync(store.folder, 0o700);
    expect(await outcome(reader)).toBe('FILE_UNREADABLE 2');
    expect(await outcome(writer)).toBe('FILE_UNREADABLE 2');
  });
});
