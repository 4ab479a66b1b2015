import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { digestOf } from '../../src/core/digest.js';
import type { JsonValue } from '../../src/core/json.js';
import { ObjectFolder } from '../../src/ledger/objects.js';
import type { Condition } from '../../src/protocol/schema/conditions.js';
import type { RunningAttempt, Work } from '../../src/runner/adapters/adapter.js';
import { CommandAdapter } from '../../src/runner/adapters/command.js';
import { generateRecord, gradeRecord } from '../../src/runner/drafts.js';
import { bootId } from '../../src/runner/process-identity.js';
import { temporaryFolder } from './fixture.js';
import { namesIn } from './rooms.js';

/**
 * How a crash inside a stage is told from one between the stages: an adapter does a part of an attempt, and another one, which
 * knows nothing but the folder, says what is to be adopted.
 */

const ATTEMPT = 'a'.repeat(32);
const SLOT = 'b'.repeat(32);
const CONDITION: Condition = {
  prompt: { user: '{prompt}' },
  decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 },
  grader: { kind: 'report', reward: { min: 0, max: 1 } },
};

function adapterIn(workFolder: string): CommandAdapter {
  const step = { wall_s: 60, output_bytes: 1000 };
  const script = (name: string) => join(import.meta.dirname, name);
  return new CommandAdapter({
    runner: {
      adapter: 'command',
      generate: { argv: ['node', script('command-generate.mjs'), '{request}', '{output}'], ...step },
      grade: { argv: ['node', script('command-grade.mjs'), '{request}', '{candidate}', '{output}'], ...step },
      grace_s: 1,
      candidate: 'answer.txt',
      gpus: 0,
      sources: {},
    },
    sources: new Map(),
    modelPaths: () => ({ weights: '/w', tokenizer: null }),
    schemaOf: () => null,
    workFolder,
    objects: new ObjectFolder(workFolder),
    cgroups: null,
    markPrefix: 'test',
    watchdog: null,
  });
}

function attemptOf(mode: string, adapter: CommandAdapter): RunningAttempt {
  const work: Work = {
    slot: { id: SLOT, queue: 'q', arm: 'M', trainingSeed: null, evaluationSeed: 0, task: 't', rep: 0 },
    model: 'M',
    condition: CONDITION,
    fields: { prompt: mode },
    samplingSeed: 1,
  };
  return { work, attempt: ATTEMPT, kind: 'first', request: adapter.request(work, ATTEMPT), takenOver: null };
}

const NEVER = new AbortController().signal;
const NAMES = { attempt: ATTEMPT, slot: SLOT };

async function generated(mode: string) {
  const folder = temporaryFolder();
  const adapter = adapterIn(folder);
  const running = attemptOf(mode, adapter);
  const end = await adapter.generate(running, NEVER);
  if (end.kind !== 'candidate') throw new Error(`no candidate: ${JSON.stringify(end)}`);
  const recover = (stage: 'generate' | 'grade', candidate = digestOf(end.bytes)) =>
    adapterIn(folder).recover(stage, {
      attempt: ATTEMPT,
      work: running.work,
      candidate: stage === 'grade' ? candidate : null,
      takenOver: null,
    });
  return { home: join(folder, ATTEMPT), adapter, running, end, recover };
}

test('a crash while the candidate is made leaves nothing to adopt, whatever lies in its folder', async () => {
  const { recover } = await generated('good one');
  // Its process had ended, but nothing durable says so.
  expect(await recover('generate')).toBeNull();
  expect(await recover('grade')).toBeNull();
});

test('a crash between the stages leaves a candidate; what it planted for the grader is not there any more', async () => {
  const { home, adapter, end, recover } = await generated('forges');
  expect(namesIn(home)).toEqual(['generate-*', 'generate.began']);
  await adapter.mark(ATTEMPT, generateRecord(NAMES, end));
  expect((await recover('generate'))?.draft.result.kind).toBe('candidate');
  expect(await recover('grade')).toBeNull();
});

test('a report that was there before grading began is stale and never read, after a crash too', async () => {
  const { home, adapter, end, recover } = await generated('good one');
  await adapter.mark(ATTEMPT, generateRecord(NAMES, end));
  const report = { task: 't', candidate: digestOf(end.bytes), tests: {}, reward: 1 };
  const room = `grade-${'0'.repeat(16)}`;
  mkdirSync(join(home, room, 'output'), { recursive: true });
  writeFileSync(join(home, room, 'output/report.json'), JSON.stringify(report));
  expect(await recover('grade')).toBeNull();
  const begin = (more: Record<string, JsonValue>) => {
    const folders = [room, join(room, 'output')].map((name) => {
      const { dev, ino } = statSync(join(home, name));
      return `${dev}:${ino}`;
    });
    const { candidate } = report;
    const began = { attempt: ATTEMPT, candidate, boot_id: bootId(), room, folders, ...more };
    writeFileSync(join(home, 'grade.began'), canonicalBytes(began));
  };
  // The same report counts once grading of this candidate has begun there.
  begin({});
  expect((await recover('grade'))?.draft.result).toMatchObject({ kind: 'report', value: 1 });
  for (const more of [
    { candidate: `sha256:${'0'.repeat(64)}` },
    { attempt: 'c'.repeat(32) },
    { folders: ['1:1', '1:1'] },
    { room: '../grade' },
  ]) {
    begin(more);
    expect(await recover('grade'), JSON.stringify(more)).toBeNull();
  }
  // What tells folders apart does not outlive a boot.
  begin({ boot_id: 'another', folders: ['1:1', '1:1'] });
  expect((await recover('grade'))?.draft.result.kind).toBe('report');
  rmSync(join(home, room), { recursive: true });
  symlinkSync(outside(report), join(home, room));
  expect(await recover('grade')).toBeNull();
});

function outside(report: JsonValue): string {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'output'));
  writeFileSync(join(folder, 'output/report.json'), JSON.stringify(report));
  return folder;
}

test('a crash while grading ran is told by its mark; after its end the end is adopted', async () => {
  const { home, adapter, running, end, recover } = await generated('good zero');
  await adapter.mark(ATTEMPT, generateRecord(NAMES, end));
  const graded = await adapter.grade(running, end.bytes, NEVER);
  const began = JSON.parse(readFileSync(join(home, 'grade.began'), 'utf8'));
  expect(began).toMatchObject({ attempt: ATTEMPT, candidate: digestOf(end.bytes) });
  // The report is whole, its process was not seen to end.
  const unseen = await recover('grade');
  expect(unseen?.draft).toMatchObject({
    finish_reason: null,
    seconds: 0,
    result: { kind: 'report', value: 0 },
  });
  if (graded.kind !== 'report') throw new Error(`no report: ${JSON.stringify(graded)}`);
  await adapter.mark(ATTEMPT, gradeRecord(NAMES, digestOf(end.bytes), graded));
  const seen = await recover('grade');
  expect(seen?.draft).toMatchObject({ finish_reason: 'exit 0', result: { kind: 'report', value: 0 } });
});

test('what an earlier candidate left in the folder of a later attempt is removed before it begins', async () => {
  const folder = temporaryFolder();
  const adapter = adapterIn(folder);
  const running = attemptOf('good one', adapter);
  const home = join(folder, ATTEMPT);
  mkdirSync(join(home, 'grade'), { recursive: true });
  for (const name of ['generate.ended', 'grade.ended', 'grade.began', 'grade/report.json']) {
    writeFileSync(join(home, name), 'planted');
  }
  expect((await adapter.generate(running, NEVER)).kind).toBe('candidate');
  expect(namesIn(home)).toEqual(['generate-*', 'generate.began']);
});

test('a room that was destroyed before the runner died is told from one that was never made', async () => {
  const folder = temporaryFolder();
  const adapter = adapterIn(folder);
  const running = attemptOf('removes-room', adapter);
  const lost = { attempt: ATTEMPT, work: running.work, candidate: null, takenOver: null };
  expect(await adapterIn(folder).recover('generate', lost)).toBeNull();
  expect(await adapter.generate(running, NEVER)).toMatchObject({ kind: 'failure' });
  const record = await adapterIn(folder).recover('generate', lost);
  expect(record?.draft).toMatchObject({
    finish_reason: null,
    result: { kind: 'failure', signals: { phase: 'collect', cause: 'room_damaged', exit_status: null } },
  });
  const path = join(folder, ATTEMPT, 'generate.began');
  const began = JSON.parse(readFileSync(path, 'utf8')) as Record<string, JsonValue>;
  writeFileSync(path, canonicalBytes({ ...began, boot_id: 'another' }));
  expect(await adapterIn(folder).recover('generate', lost)).toBeNull();
});

test('nothing runs in a folder that took the place of the one of all attempts, nor behind a link', async () => {
  const root = temporaryFolder();
  const work = join(root, 'work');
  mkdirSync(work);
  const { signal } = new AbortController();
  const adapter = adapterIn(work);
  expect((await adapter.generate(attemptOf('good one', adapter), signal)).kind).not.toBe('abandoned');
  renameSync(work, join(root, 'work.old'));
  symlinkSync(join(root, 'work.old'), work);
  await expect(adapter.generate(attemptOf('good one', adapter), signal)).rejects.toMatchObject({
    code: 'FILE_CHANGED',
    hint: expect.stringContaining('Find out what') as string,
  });
  const next = adapterIn(work);
  await expect(next.generate(attemptOf('good one', next), signal)).rejects.toMatchObject({
    code: 'FILE_NOT_REGULAR',
  });
});
