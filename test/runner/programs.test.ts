import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportBundle } from '../../src/audit/bundle/export.js';
import type { HarborRunner } from '../../src/protocol/schema/harbor-runner.js';
import { requirePrograms } from '../../src/runner/programs.js';
import { hasPython, python, VERIFIER } from '../verify/python.js';
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

test.each([
  ['{ argv: [sh, -c, "echo 0.22.0"], output: 0.22.0 }', null],
  ['{ argv: [sh, -c, "echo 0.21.0"], output: 0.22.0 }', 'the harness says "0.21.0", the plan "0.22.0"'],
  ['{ argv: [sh, -c, "echo 0.22.0; exit 1"], output: 0.22.0 }', 'the harness says nothing that counts'],
  ['{ argv: [no-such-program], output: 0.22.0 }', 'the program "no-such-program" of runner.version is not'],
])('a harness asked by %s', async (version, refusal) => {
  const plan = await trial(harborPlan(['pass'], { version }));
  if (refusal === null) {
    await plan.run();
    expect((await plan.of('slot.settled')).map(({ value }) => value)).toEqual([1]);
    expect(await plan.findings()).toEqual([]);
    const out = { out: 'bundle', beforeUnblinding: true } as const;
    const { folder: bundle } = await exportBundle(plan.root, undefined, out);
    if (hasPython) expect(python([VERIFIER, bundle]).stdout).toContain('verified');
    return;
  }
  await expect(plan.run()).rejects.toMatchObject({
    code: 'HARNESS_REFUSED',
    message: expect.stringContaining(refusal),
  });
  expect(await plan.of('attempt.started')).toEqual([]);
});
