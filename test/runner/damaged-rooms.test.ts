import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { DEFAULT_RULES } from '../../src/attempts/default-rules.js';
import { COMMAND_PLAN, COMMAND_RUNNER } from './command-plan.js';
import { type Trial, trial } from './fixture.js';
import { settled, story } from './story.js';

/** What a candidate can do to its own folders (P13): it costs its own attempt and no other. */

const damaged = (signals: string) => [
  'started first',
  `generate failure collect room_damaged ${signals}`,
  'undetermined by room-damaged',
  'finished failure',
  'unresolved undetermined',
];

const CASES: Readonly<Record<string, readonly string[]>> = {
  'removes-output': damaged('0'),
  'removes-room': damaged('0'),
  'removes-home': damaged('0'),
  'removes-home-and-dies': damaged('SIGKILL'),
  'removes-home-and-talks': damaged('0'),
  'makes-output-anew one': damaged('0'),
  'output-is-a-file one': damaged('0'),
  'output-is-a-link one': damaged('0'),
  'room-is-a-link one': damaged('0'),
  'home-is-a-link one': damaged('0'),
  'home-is-a-file one': damaged('0'),
  'locks-output one': damaged('0'),
  'locks-home one': damaged('0'),
  'fills one': settled(1),
  'slow one': settled(1),
  'good removes-room': [
    'started first',
    'generate candidate',
    'grade failure collect room_damaged 0',
    'undetermined by room-damaged',
    'finished failure',
    'unresolved undetermined',
  ],
};

const taskOf = (mode: string) => mode.replaceAll(' ', '-');

let plan: Trial;

// Its folders are too deep for Node to remove.
afterAll(() => void spawnSync('rm', ['-rf', join(plan.ledger, 'work')]));

test('damage to the folders of an attempt ends that attempt alone, and nothing is tried again', async () => {
  const runner = `${COMMAND_RUNNER}\n  artifacts: [{ name: answer, file: answer.txt, max_bytes: 1000 }]`;
  const attempts = `{ replacements: 1, regrades: 1, breaker: 50, rules: ${JSON.stringify(DEFAULT_RULES)} }`;
  const prompts = Object.fromEntries(Object.keys(CASES).map((mode) => [taskOf(mode), mode]));
  plan = await trial({ ...COMMAND_PLAN, runner, attempts, prompts });
  expect((await plan.run({ workers: 6 })).reason).toBe('finished');
  for (const [mode, expected] of Object.entries(CASES)) {
    expect(await story(plan, taskOf(mode)), mode).toEqual(expected);
  }
  expect(await plan.of('attempt.recovered')).toEqual([]);
});

test('the audit finds nothing against it', async () => {
  expect(await plan.findings()).toEqual([]);
});

test('nothing that lies outside of the folders is taken for a candidate or an artifact', async () => {
  expect(readdirSync(plan.ledger)).toContain('outside');
  const stages = await plan.of('stage.finished');
  const failed = stages.filter(({ result }) => result.kind === 'failure');
  expect(failed).toHaveLength(14);
  for (const { objects, stage } of failed) {
    expect(Object.keys(objects).filter((name) => name.startsWith('artifact/'))).toEqual([]);
    if (stage === 'generate') expect(Object.keys(objects)).toContain('capture');
  }
});

test('the marks of the stages are there after all', async () => {
  const starts = await plan.of('attempt.started');
  for (const { attempt, key } of starts) {
    expect(readdirSync(join(plan.ledger, 'work', attempt)), key.task).toContain('generate.ended');
  }
});
