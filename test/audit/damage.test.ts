import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command } from '../../src/commands/audit.js';
import type { CommandContext } from '../../src/commands/command.js';
import { BoundbookError } from '../../src/core/errors.js';
import { type Trial, trial } from '../runner/fixture.js';
import { Insider } from './insider.js';

let plan: Trial;
const folders: string[] = [];

beforeAll(async () => {
  plan = await trial({ prompts: { right: 'right a', wrong: 'wrong b' }, reps: 20 });
  await plan.run({ workers: 8 });
});

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** What an audit comes to: the codes of its findings, or of the error that it throws; nothing else may happen. */
async function outcome(insider: Insider): Promise<string> {
  try {
    const { findings } = await audit(insider.root, undefined);
    return `findings ${[...new Set(findings.map(({ code }) => code))].join(' ')}`.trim();
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    expect(error.message).not.toBe('');
    return error.code;
  }
}

/** A copy without anchor and log, so that the main file alone decides. */
function alone(): Insider {
  return new Insider(plan).removeAnchor();
}

describe('a ledger that is none', () => {
  test.each<[string, (insider: Insider) => void, string]>([
    ['missing', ({ file }) => rmSync(file), 'LEDGER_NOT_FOUND'],
    ['a folder', ({ file }) => replace(file, mkdirSync), 'FILE_NOT_REGULAR'],
    ['a text file', ({ file }) => writeFileSync(file, 'dear auditor\n'.repeat(100)), 'LEDGER_FOREIGN'],
    ['zeros', ({ file }) => writeFileSync(file, Buffer.alloc(8192)), 'LEDGER_FOREIGN'],
    ['empty', ({ file }) => writeFileSync(file, ''), 'LEDGER_DAMAGED'],
    [
      'a database without tables',
      ({ file }) => replace(file, (path) => newDatabase(path, 'VACUUM')),
      'LEDGER_DAMAGED',
    ],
    [
      'another database',
      ({ file }) => replace(file, (path) => newDatabase(path, 'CREATE TABLE t (x)')),
      'LEDGER_FOREIGN',
    ],
  ])('%s', async (_, damage, code) => {
    const insider = alone();
    for (const suffix of ['-wal', '-shm']) rmSync(insider.file + suffix, { force: true });
    damage(insider);
    expect(await outcome(insider)).toBe(code);
  });
});

function replace(file: string, make: (path: string) => void): void {
  rmSync(file);
  make(file);
}

function newDatabase(file: string, sql: string): void {
  const db = new Database(file);
  db.exec(sql);
  db.close();
}

describe('a ledger that is damaged', () => {
  test('cut at every length: a typed error or findings, and never a clean bill', async () => {
    const { size } = statSync(alone().file);
    for (let i = 1; i < 12; i++) {
      const insider = alone();
      truncateSync(insider.file, Math.floor((size * i) / 12));
      expect(await outcome(insider), `${i} / 12`).toMatch(/^(LEDGER_|findings [A-Z])/);
    }
  });

  test('each page overwritten with noise', async () => {
    const { size } = statSync(alone().file);
    const pages = Math.floor(size / 4096);
    for (let page = 0; page < pages; page += Math.max(1, Math.floor(pages / 24))) {
      const insider = alone();
      const bytes = readFileSync(insider.file);
      bytes.fill(0xa5, page * 4096, (page + 1) * 4096);
      writeFileSync(insider.file, bytes);
      expect(await outcome(insider), `page ${page}`).toMatch(/^(LEDGER_|findings [A-Z])/);
    }
  });

  test('entries behind an unreadable one are still judged', async () => {
    const insider = alone().sql((db) => {
      db.pragma('ignore_check_constraints = ON');
      db.exec('UPDATE entry SET body = zeroblob(100000) WHERE seq = 7');
      db.exec("UPDATE entry SET body = CAST('{}' AS BLOB) WHERE seq = 20");
    });
    const { findings, ledger } = await audit(insider.root, undefined);
    const at = (seq: number) => findings.filter(({ where }) => where.seq === seq).map(({ code }) => code);
    expect(at(7)).toContain('LEDGER_DAMAGED');
    expect(at(20)).toContain('CHAIN_BROKEN');
    expect(ledger.head.size).toBeGreaterThan(100);
  });

  test('an anchor that is no anchor', async () => {
    const insider = alone();
    writeFileSync(`${insider.folder}.head`, 'soon');
    expect(await outcome(insider)).toBe('findings LEDGER_DAMAGED');
  });

  test('objects that are links, folders, or huge in number of names', async () => {
    const insider = alone();
    mkdirSync(join(insider.folder, 'objects/aa'), { recursive: true });
    symlinkSync('/etc/passwd', join(insider.folder, 'objects/aa', 'b'.repeat(62)));
    mkdirSync(join(insider.folder, 'objects/aa', 'c'.repeat(62)));
    writeFileSync(join(insider.folder, 'objects/readme'), 'x');
    const { findings, remarks } = await audit(insider.root, undefined);
    expect(findings).toEqual([]);
    expect(remarks.filter((line) => line.startsWith('objects/')).length).toBe(3);
  });

  test('nothing is ever written by an audit', async () => {
    const insider = new Insider(plan);
    const before = readdirSync(insider.root, { recursive: true }).sort();
    const bytes = readFileSync(insider.file);
    await audit(insider.root, undefined);
    expect(readFileSync(insider.file).equals(bytes)).toBe(true);
    const after = readdirSync(insider.root, { recursive: true }).sort();
    expect(after.filter((name) => !/-(wal|shm)$/.test(String(name)))).toEqual(
      before.filter((name) => !/-(wal|shm)$/.test(String(name))),
    );
  });
});

describe('the command', () => {
  function context(root: string): CommandContext {
    const signal = new AbortController().signal;
    return {
      root,
      json: false,
      terminal: false,
      progress: () => undefined,
      signal,
      force: signal,
      now: () => '',
    };
  }

  test('a clean ledger: exit 0, verdict, digest and head on stdout', async () => {
    const { text, json, exitCode } = await command.run([], {}, context(plan.root));
    expect(exitCode).toBeUndefined();
    expect(text).toContain('clean');
    expect(text).toContain(plan.stored.digest);
    expect(json).toMatchObject({ schema: 'boundbook/audit/1', verdict: 'clean', findings: [] });
    const [, head] = /^head +(\d+:[0-9a-f]{64})$/m.exec(text) ?? [];
    expect((await command.run([], { head }, context(plan.root))).exitCode).toBeUndefined();
  });

  test('findings: exit 4, and all of them on stdout', async () => {
    const insider = new Insider(plan);
    insider.find('attempt.started').sampling_seed = 1;
    insider.rechain();
    const { text, json, exitCode } = await command.run([], {}, context(insider.root));
    expect(exitCode).toBe(4);
    expect(text).toMatch(/UNLAWFUL \(P18\) entry \d+ slot [0-9a-f]{32}/);
    expect(json).toMatchObject({ verdict: 'findings' });
  });

  test('a ledger that lies elsewhere, and flags that are wrong', async () => {
    const insider = new Insider(plan);
    const elsewhere = mkdtempSync(join(tmpdir(), 'boundbook-audit-'));
    folders.push(elsewhere);
    const run = (options: Record<string, string>) => command.run([], options, context(insider.root));
    expect((await run({ ledger: insider.folder })).exitCode).toBeUndefined();
    await expect(run({ ledger: elsewhere })).rejects.toMatchObject({ code: 'LEDGER_NOT_FOUND' });
    await expect(run({ head: '7' })).rejects.toMatchObject({ code: 'USAGE' });
    await expect(run({ report: 'absent.json' })).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(command.run(['nobody'], {}, context(insider.root))).rejects.toMatchObject({
      code: 'MANIFEST_NOT_FOUND',
    });
  });

  test('what a file name or an entry says cannot forge a line of the text', async () => {
    const insider = new Insider(plan);
    const name = 'x\nverdict: clean\u202e';
    mkdirSync(join(insider.folder, 'work', name), { recursive: true });
    const { text } = await command.run([], {}, context(insider.root));
    expect(text).not.toMatch(/^verdict: clean/m);
    expect(text).not.toContain('\u202e');
  });
});
