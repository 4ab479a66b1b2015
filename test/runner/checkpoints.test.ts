import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { CommandContext } from '../../src/commands/command.js';
import { command as runCommand } from '../../src/commands/run.js';
import { ledgerKeyOption } from '../../src/commands/signing-key.js';
import { verifyCheckpoint } from '../../src/ledger/checkpoint.js';
import { notePath, readNotes } from '../../src/ledger/note-files.js';
import { keysForOrigin } from '../../src/ledger/origin.js';
import { writeSignerKey } from '../../src/signing/key-file.js';
import { generateKey } from '../../src/signing/keys.js';
import { temporaryFolder, trial } from './fixture.js';

const KEY = generateKey('lab.example');

afterEach(() => {
  process.env.BOUNDBOOK_KEY = '';
});

describe('the checkpoints of a session', () => {
  test('stand after the gate, every so many starts, and before the end', async () => {
    const plan = await trial({
      prompts: { a: 'right a', b: 'right b' },
      reps: 10,
      attempts:
        '{ replacements: 1, regrades: 1, breaker: 50, rules: [] }\ncheckpoints: { every_attempts: 6 }',
    });
    const summary = await plan.run({ key: KEY, workers: 4 });
    const entries = await plan.entries();
    const types = entries.map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(['ledger.opened', 'gate.passed', 'checkpoint']);
    expect(types.slice(-2)).toEqual(['checkpoint', 'run.paused']);
    // After 6, 12 and 18 of 20 starts, each within the starts that may be under way by then.
    const starts = entries.flatMap((entry, seq) =>
      entry.type === 'checkpoint'
        ? [types.slice(0, seq).filter((type) => type === 'attempt.started').length]
        : [],
    );
    expect(starts.length).toBe(5);
    for (const [i, due] of [0, 6, 12, 18, 20].entries()) {
      expect(starts[i]).toBeGreaterThanOrEqual(due);
      expect(starts[i]).toBeLessThanOrEqual(due + 4);
    }
    const written = await plan.of('checkpoint');
    const notes = await readNotes(plan.ledger);
    expect(notes.map(({ bytes }) => bytes.toString())).toEqual(written.map(({ note }) => note));
    const [opened] = await plan.of('ledger.opened');
    const origin = `lab.example/${opened?.ledger}/1`;
    for (const { bytes } of notes) verifyCheckpoint(bytes, { logs: keysForOrigin(origin, [KEY.verifier]) });
    const last = written.at(-1);
    expect(summary.json.checkpoint).toEqual({
      size: last?.size,
      root: last?.root,
      note: last?.note,
      file: notePath(plan.ledger, last?.size ?? 0),
    });
    expect(await plan.findings()).toEqual([]);
  });

  test('without a key have no note; a file that was lost is made again by the next run', async () => {
    const plan = await trial({ prompts: { a: 'right a' } });
    const unsigned = await plan.run();
    expect((await plan.of('checkpoint')).map(({ note }) => note)).toEqual([null, null]);
    expect(unsigned.text).toContain('not signed');
    expect(existsSync(join(plan.ledger, 'checkpoints'))).toBe(false);
    await plan.run({ key: KEY });
    const [first = 0] = (await plan.of('checkpoint'))
      .filter(({ note }) => note !== null)
      .map(({ size }) => size);
    rmSync(notePath(plan.ledger, first));
    await plan.run();
    expect(existsSync(notePath(plan.ledger, first))).toBe(true);
    expect(await plan.findings()).toEqual([]);
  });

  test('a note that cannot be written stops nothing; its entry has it', async () => {
    const plan = await trial({ prompts: { a: 'right a' } });
    mkdirSync(plan.ledger, { recursive: true });
    writeFileSync(join(plan.ledger, 'checkpoints'), 'in the way');
    const summary = await plan.run({ key: KEY });
    expect(summary.reason).toBe('finished');
    expect(
      plan.lines.filter((line) => line.includes('was not written and will be by the next run')).length,
    ).toBe(3);
    expect((await plan.of('checkpoint')).map(({ note }) => note === null)).toEqual([false, false]);
    rmSync(join(plan.ledger, 'checkpoints'));
    await plan.run({ key: KEY });
    expect((await readNotes(plan.ledger)).length).toBe(4);
  });
});

describe('the key of a run', () => {
  async function refusal(prepare: (file: string) => Promise<void> | void, options = {}): Promise<unknown> {
    const plan = await trial({ prompts: { a: 'right a' } });
    const file = join(temporaryFolder(), 'lab.key');
    await prepare(file);
    const context = { root: plan.root, json: false, terminal: false, progress: () => undefined } as const;
    const error = await runCommand
      .run([], { key: file, ...options }, context as unknown as CommandContext)
      .then(() => null)
      .catch((thrown: unknown) => thrown);
    expect(existsSync(join(plan.ledger, 'ledger.sqlite'))).toBe(false);
    expect(plan.requests()).toEqual([]);
    return error;
  }

  test('that is missing, open to others, of another form or a cosigner’s refuses before anything is done', async () => {
    expect(await refusal(() => undefined)).toMatchObject({ code: 'FILE_NOT_FOUND' });
    const open = async (file: string) => {
      await writeSignerKey(file, KEY, temporaryFolder());
      chmodSync(file, 0o644);
    };
    expect(await refusal(open)).toMatchObject({ code: 'KEY_EXPOSED' });
    const garbage = (file: string) => writeFileSync(file, 'no key\n', { mode: 0o600 });
    expect(await refusal(garbage)).toMatchObject({ code: 'KEY_INVALID' });
    const cosigner = (file: string) =>
      writeSignerKey(file, generateKey('w', 'cosignature'), temporaryFolder());
    expect(await refusal(cosigner)).toMatchObject({ code: 'KEY_INVALID' });
    expect(await refusal(() => undefined, { key: 'lab+00000000+AA' })).toMatchObject({ code: 'USAGE' });
  });

  test('is that of the flag, else of BOUNDBOOK_KEY', async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'a.key');
    await writeSignerKey(file, KEY, temporaryFolder());
    expect(await ledgerKeyOption(undefined, temporaryFolder())).toBeNull();
    process.env.BOUNDBOOK_KEY = file;
    expect((await ledgerKeyOption(undefined, temporaryFolder()))?.verifier).toEqual(KEY.verifier);
    const other = join(folder, 'b.key');
    await writeSignerKey(other, generateKey('other'), temporaryFolder());
    expect((await ledgerKeyOption(other, temporaryFolder()))?.verifier.name).toBe('other');
    expect(readFileSync(file, 'utf8').startsWith('PRIVATE+KEY+lab.example+')).toBe(true);
  });
});
