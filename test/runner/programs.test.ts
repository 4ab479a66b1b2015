import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { HarborRunner } from '../../src/protocol/schema/harbor-runner.js';
import { requirePrograms } from '../../src/runner/programs.js';
import { put, temporaryFolder, trial } from './fixture.js';
import { harborPlan } from './harbor-plan.js';

const folder = temporaryFolder();
chmodSync(put(folder, 'bin/harbor', ''), 0o755);
put(folder, 'bin/no-program', '');
const path = `/nowhere:${join(folder, 'bin')}`;
const sources = new Map([['tools', join(folder, 'tools')]]);

/** What is wanting; null when nothing is. */
function wanting(argv: readonly string[], stop: readonly string[] = ['tools/stop']): unknown {
  try {
    requirePrograms({ trial: { argv }, stop: { argv: stop } } as unknown as HarborRunner, sources, path);
    return null;
  } catch (error) {
    return (error as { evidence: unknown }).evidence;
  }
}

test.each<[argv: string[], program: string | null]>([
  [['harbor', 'trial'], null],
  [['env', 'HARBOR_TELEMETRY=0', 'A=b', 'harbor', 'trial'], null],
  [['/usr/bin/env', 'A=b', 'harbour'], 'harbour'],
  [['env', 'A=b', 'no-program'], 'no-program'],
  [['env', '-i', 'harbour'], null],
  [['env', 'A=b'], null],
  [['tools/harbor'], null],
  [['tools'], null],
  [[join(folder, 'bin/harbor')], null],
  [[join(folder, 'bin/none')], join(folder, 'bin/none')],
  [[join(folder, 'bin')], join(folder, 'bin')],
])('of %j', (argv, program) => {
  expect(wanting(argv)).toEqual(program === null ? null : { program, where: 'runner.trial' });
});

test('a stop command counts, too', () => {
  expect(wanting(['harbor'], ['docker', 'compose'])).toEqual({ program: 'docker', where: 'runner.stop' });
});

test('without Harbor on this host nothing is started and no slot is touched', async () => {
  const setting = harborPlan(['pass', 'fail']);
  const runner = setting.runner?.replaceAll('[node, harbor/harbor.mjs,', '[env, A=0, no-such-harbor,');
  const plan = await trial({ ...setting, ...(runner === undefined ? {} : { runner }) });
  await expect(plan.run()).rejects.toMatchObject({
    code: 'HARNESS_REFUSED',
    exitCode: 3,
    message: 'the program "no-such-harbor" of runner.trial is not on this host; nothing was started',
  });
  expect(await plan.of('attempt.started')).toEqual([]);
  expect(await plan.findings()).toEqual([]);
});
