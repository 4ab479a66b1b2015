import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { command as show } from '../../src/commands/show.js';
import { digestOf } from '../../src/core/digest.js';
import { openBook } from '../../src/ledger/book.js';
import type { EntryOf } from '../../src/ledger/entries/entry.js';
import { ObjectFolder } from '../../src/ledger/objects.js';
import { runStage } from '../../src/runner/adapters/stage-process.js';
import { hasEnded, readStat } from '../../src/runner/process-identity.js';
import { commandContext } from '../commands/context.js';
import { COMMAND_PLAN, COMMAND_RUNNER } from './command-plan.js';
import { type PlanSetting, type Trial, temporaryFolder, trial } from './fixture.js';
import { namesIn, outputOf } from './rooms.js';
import { settled, story, undetermined } from './story.js';

function plan(
  prompts: Record<string, string>,
  runner: string,
  more: Partial<PlanSetting> = {},
): Promise<Trial> {
  // The machine may be busy: only limits that are to be met are short.
  return trial({ prompts, ...COMMAND_PLAN, runner: runner.replaceAll('wall_s: 5', 'wall_s: 60'), ...more });
}

/** The runner with further lines in `generate` and after it. */
function runnerWith(generate: string, more = ''): string {
  return `${COMMAND_RUNNER.replace('    env: [', `${generate}    env: [`)}${more}`;
}

async function stageOf(plan: Trial, task: string, stage = 'generate'): Promise<EntryOf<'stage.finished'>> {
  const started = (await plan.of('attempt.started')).find(({ key }) => key.task === task);
  const found = (await plan.of('stage.finished')).find(
    (entry) => entry.attempt === started?.attempt && entry.stage === stage,
  );
  if (found === undefined) throw new Error(`no ${stage} of ${task}`);
  return found;
}

async function objectOf(plan: Trial, entry: EntryOf<'stage.finished'>, name: string): Promise<Buffer | null> {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    const digest = entry.objects[name];
    return digest === undefined ? null : book.store.getObject(digest);
  } finally {
    book.close();
  }
}

async function captureOf(plan: Trial, task: string, stage = 'generate'): Promise<unknown> {
  const bytes = await objectOf(plan, await stageOf(plan, task, stage), 'capture');
  return bytes === null ? null : JSON.parse(bytes.toString());
}

/** A process that nobody has waited for yet has ended, too. */
function isAlive(pid: string): boolean {
  const stat = readStat(Number(pid));
  return stat !== null && !hasEnded(stat);
}

describe.concurrent('commands', () => {
  test('silence ends a stage, words do not', async () => {
    const silent = await plan({ a: 'hangs', b: 'talks one' }, runnerWith('    idle_s: 2.5\n'));
    await silent.run();
    expect(await story(silent, 'a')).toEqual(undetermined('running idle_limit SIGTERM'));
    expect(await story(silent, 'b')).toEqual(settled(1));
    expect((await stageOf(silent, 'a')).finish_reason).toBe('idle limit, SIGTERM');
    expect(await silent.findings()).toEqual([]);
  });

  test('output that is cut is counted, and what is kept beyond 16 KiB was never held in memory', async () => {
    const flood = await plan({ a: 'flood one', b: 'good one' }, COMMAND_RUNNER);
    await flood.run();
    const stage = await stageOf(flood, 'a');
    expect((await objectOf(flood, stage, 'stdout'))?.equals(Buffer.alloc(100_000, 0x61))).toBe(true);
    expect(await captureOf(flood, 'a')).toEqual({
      streams: { stdout: { kept: 100_000, seen: 64 * 2 ** 20 } },
    });
    expect(await captureOf(flood, 'b')).toBeNull();
    const home = namesIn(join(flood.ledger, 'work', stage.attempt));
    const marks = ['generate.began', 'generate.ended', 'grade.began', 'grade.ended'];
    expect(home).toEqual(['generate-*', ...marks.slice(0, 2), 'grade-*', ...marks.slice(2)]);
    expect(await flood.findings()).toEqual([]);
  });

  test('bytes that are not UTF-8 are kept as they came, and the text of the failure is well-formed', async () => {
    const other = await plan({ a: 'not-utf8' }, COMMAND_RUNNER);
    await other.run();
    expect(await story(other, 'a')).toEqual(undetermined('running exit_status 4'));
    const stage = await stageOf(other, 'a');
    expect(await objectOf(other, stage, 'stdout')).toEqual(Buffer.of(0x61, 0xff, 0xfe, 0xc3, 0x28));
    expect(await objectOf(other, stage, 'stderr')).toEqual(Buffer.of(0xed, 0xa0, 0x80, 0x0a));
    const { result } = stage;
    expect(result.kind === 'failure' && result.signals.text).toBe('\ufffd\ufffd\ufffd\n');
    expect(await other.findings()).toEqual([]);
  });

  test('exit status 137 is a number like any other while no control group was watched', async () => {
    const other = await plan({ a: 'exit-137' }, COMMAND_RUNNER);
    await other.run();
    expect(await story(other, 'a')).toEqual(undetermined('running exit_status 137'));
    const { result } = await stageOf(other, 'a');
    expect(result.kind === 'failure' && 'oom_kill' in result.signals).toBe(false);
  });

  test('a process that was forked twice into a session of its own is ended with its stage (F-115)', async () => {
    const other = await plan({ a: 'twice-forked one' }, COMMAND_RUNNER);
    await other.run();
    expect(await story(other, 'a')).toEqual(settled(1));
    const { attempt } = await stageOf(other, 'a');
    const pid = readFileSync(
      join(outputOf(join(other.ledger, 'work', attempt), 'generate'), 'orphan.pid'),
      'utf8',
    );
    expect(isAlive(pid)).toBe(false);
  });

  test('artifacts are kept without following links; what is not there, a link or too large gets a word', async () => {
    const artifacts = `
  artifacts:
    - { name: log, file: log.txt, max_bytes: 100 }
    - { name: large, file: large.bin, max_bytes: 50000 }
    - { name: link, file: link.txt, max_bytes: 100 }
    - { name: over, file: deep/over.bin, max_bytes: 100 }
    - { name: none, file: none.txt, max_bytes: 100 }`;
    const other = await plan({ a: 'artifacts one', b: 'fails' }, COMMAND_RUNNER + artifacts);
    await other.run();
    expect(await story(other, 'a')).toEqual(settled(1));
    const stage = await stageOf(other, 'a');
    expect(Object.keys(stage.objects).sort()).toEqual(['artifact/large', 'artifact/log', 'capture']);
    expect((await objectOf(other, stage, 'artifact/log'))?.toString()).toBe('a small log');
    expect((await objectOf(other, stage, 'artifact/large'))?.equals(Buffer.alloc(50_000, 0x62))).toBe(true);
    expect(await captureOf(other, 'a')).toEqual({
      artifacts: {
        link: { found: 'refused', reason: 'link.txt is a link' },
        none: { found: 'absent' },
        over: { found: 'too_large', size: 101 },
      },
    });
    // They change nothing about the end of the attempt.
    expect(await story(other, 'b')).toEqual(undetermined('running exit_status 3'));
    expect(await captureOf(other, 'a', 'grade')).toBeNull();
    expect(await other.findings()).toEqual([]);
  });
});

const FLOOD = process.env.BOUNDBOOK_FLOOD === 'long' ? 2 ** 31 : 2 ** 27;
const KEPT = 2 ** 23;

test(`a flood of ${FLOOD / 2 ** 20} MB (BOUNDBOOK_FLOOD=long: 2 GB) grows neither the memory nor the disk of the runner beyond the cap`, {
  timeout: 300_000,
}, async () => {
  const folder = temporaryFolder();
  let peak = 0;
  const before = process.memoryUsage().rss;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss - before);
  }, 5);
  const exit = await runStage(
    {
      argv: ['head', '-c', String(FLOOD), '/dev/zero'],
      cwd: folder,
      env: [],
      mark: 'flood',
      wallMs: 280_000,
      graceMs: 100,
      outputBytes: KEPT,
      spoolFolder: folder,
      watchdog: null,
    },
    new AbortController().signal,
  );
  const objects = new ObjectFolder(folder);
  const evidence = await exit?.stdout.evidence(objects);
  clearInterval(timer);
  expect([exit?.stdout.seen, exit?.stdout.kept]).toEqual([FLOOD, KEPT]);
  const digest = digestOf(Buffer.alloc(KEPT));
  expect(evidence).toEqual({ stored: digest, size: KEPT });
  expect(readdirSync(folder)).toEqual(['objects']);
  expect(peak).toBeLessThan(64 * 2 ** 20);
  expect(objects.read(digest)?.length).toBe(KEPT);
});

test('show says what a stage keeps back, once outcomes may be seen', async () => {
  const runner = runnerWith('    stop: [node, runner/container.mjs, fail, "{container}", "."]\n').replace(
    'grace_s: 0.3',
    'grace_s: 20',
  );
  const artifacts = '\n  artifacts: [{ name: log, file: no.txt, max_bytes: 9 }]';
  const open = await plan({ a: 'flood one' }, runner + artifacts, { blinding: 'none' });
  const masked = await plan({ a: 'flood one' }, runner + artifacts, { blinding: 'masked' });
  for (const one of [open, masked]) await one.run();
  const shown = async (one: Trial) =>
    show.run([(await stageOf(one, 'a')).attempt], {}, commandContext(one.root));
  const { attempt } = await stageOf(open, 'a');
  expect((await shown(open)).text).toContain(
    [
      `Evidence of generate in attempt ${attempt.slice(0, 8)}:`,
      '  stdout was cut: 100000 of 67108864 bytes are kept',
      '  artifact log is not kept: there was no such file',
      `  the stop command failed: exit 1, "no container boundbook-${attempt}-generate\\n"`,
    ].join('\n'),
  );
  expect((await shown(masked)).text).not.toMatch(/Evidence of|capture|artifact/);
});

describe.concurrent('a stop command', () => {
  /** The runner with a container in a folder, and what stops it. */
  function contained(folder: string, verb: string, wall = '60'): string {
    const stop = `    stop: [node, runner/container.mjs, ${verb}, "{container}", ${folder}]\n`;
    return runnerWith(stop)
      .replace('"{output}"]', `"{output}", "{container}", ${folder}]`)
      .replace('wall_s: 5', `wall_s: ${wall}`);
  }

  test.each([
    ['after a good end', 'contains one', '60', settled(1)],
    ['at a limit', 'contains-and-hangs one', '3', undetermined('running time_limit SIGTERM')],
  ])('ends by name what neither group, mark nor parent leads to: %s', async (_when, mode, wall, expected) => {
    const folder = temporaryFolder();
    const other = await plan(
      { a: mode, b: 'good one' },
      contained(folder, 'stop', wall).replace('grace_s: 0.3', 'grace_s: 10'),
    );
    await other.run();
    expect(await story(other, 'a')).toEqual(expected);
    expect(await story(other, 'b')).toEqual(settled(1));
    const name = `boundbook-${(await stageOf(other, 'a')).attempt}-generate.stopped`;
    expect(readdirSync(folder)).toEqual([name]);
    expect(isAlive(readFileSync(join(folder, name), 'utf8'))).toBe(false);
    expect(await captureOf(other, 'a')).toBeNull();
    expect(await other.findings()).toEqual([]);
  });

  test.each([
    ['fail', '20', { exit_status: 1, signal: null, timed_out: false }],
    ['hang', '0.5', { exit_status: null, signal: expect.stringMatching(/^SIG/), timed_out: true }],
  ])('that does nothing but %s is recorded and holds up nothing for ever', async (verb, grace, expected) => {
    const runner = contained(temporaryFolder(), verb).replace('grace_s: 0.3', `grace_s: ${grace}`);
    const other = await plan({ a: 'good one' }, runner);
    await other.run();
    expect(await story(other, 'a')).toEqual(settled(1));
    const { attempt } = await stageOf(other, 'a');
    const text = verb === 'hang' ? null : `no container boundbook-${attempt}-generate\n`;
    expect(await captureOf(other, 'a')).toEqual({ stop: { ...expected, text } });
    expect(await other.findings()).toEqual([]);
  });
});
