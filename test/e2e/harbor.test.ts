import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command as check } from '../../src/commands/check.js';
import type { CommandDefinition } from '../../src/commands/command.js';
import { command as freeze } from '../../src/commands/freeze.js';
import { command as init } from '../../src/commands/init.js';
import { command as plan } from '../../src/commands/plan.js';
import { command as report } from '../../src/commands/report.js';
import { command as run } from '../../src/commands/run.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { digestOf } from '../../src/core/digest.js';
import { commandContext } from '../commands/context.js';

/** The road of somebody with Harbor and a dataset: from `init --runner harbor` to a report, with a stand-in on PATH. */

const PATH = process.env.PATH;
const STAND_INS = join(import.meta.dirname, '../runner');
const PROTOCOL = 'protocol/example.yaml';
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'boundbook-harbor-'));
});

afterEach(() => {
  process.env.PATH = PATH;
  rmSync(folder, { recursive: true, force: true });
});

function put(path: string, content: string | Uint8Array): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** A program by that name on PATH. */
function install(name: string, script: string): void {
  chmodSync(put(`bin/${name}`, `#!/bin/sh\n${script}\n`), 0o755);
  process.env.PATH = `${join(folder, 'bin')}:${PATH}`;
}

async function told(command: CommandDefinition, args: string[] = [], options: Record<string, string> = {}) {
  const result = await command.run(args, options, commandContext(folder));
  return { ...result, json: JSON.parse(JSON.stringify(result.json)) as Record<string, unknown> };
}

const remarks = async () =>
  ((await told(check, [PROTOCOL])).json.remarks as { about: string; message: string }[])
    .filter(({ about }) => about === 'task-folders')
    .map(({ message }) => message);

function weights(fill: number): Buffer {
  const header = Buffer.from('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}');
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([size, header, Buffer.alloc(4, fill)]);
}

test('another runner has no starting protocol', async () => {
  await expect(told(init, [], { runner: 'inspect' })).rejects.toMatchObject({ code: 'USAGE', exitCode: 2 });
});

test('check names what the starting protocol lacks; with that it runs to its report', async () => {
  await told(init, [], { runner: 'harbor' });
  await expect(told(check, [PROTOCOL])).rejects.toMatchObject({
    code: 'TASKS_INVALID',
    faults: ['first-task', 'second-task'].map((id) => ({
      where: `task "${id}" of dataset`,
      message: 'the field "digest" is no digest (sha256:…); runner.tasks.digest uses it',
      hint: "It is Harbor's own: lock.json of any trial of the task says it under task.digest.",
    })),
  });
  const tasks = ['pass', 'fail'].map((id) => JSON.stringify({ id, folder: id, digest: digestOf('task') }));
  put('tasks/example.jsonl', `${tasks.join('\n')}\n`);
  expect(await remarks()).toEqual(['the folder harbor-tasks of the Harbor tasks is not there']);
  put('harbor-tasks/pass/instruction.md', 'pass\n');
  expect(await remarks()).toEqual(['folders of Harbor tasks are not there: harbor-tasks/fail']);
  put('harbor-tasks/fail/instruction.md', 'fail\n');
  expect(await remarks()).toEqual([]);

  // Two tasks, two arms, four repetitions, the trained arm with three training seeds.
  expect((await told(plan, [PROTOCOL])).text).toMatch(/\b32\b/);
  for (const [i, name] of ['base', 'tuned-1', 'tuned-2', 'tuned-3'].entries()) {
    put(`models/${name}/model.safetensors`, weights(i));
    put(`models/${name}/config.json`, '{"model_type":"none"}');
  }
  await told(freeze, [PROTOCOL]);

  for (const name of ['harbor-stub.mjs', 'harbor-linger.mjs'])
    put(`bin/${name.replace('harbor-linger', 'linger')}`, readFileSync(join(STAND_INS, name)));
  install('harbor', `exec "${process.execPath}" "${join(folder, 'bin/harbor-stub.mjs')}" "$@"`);
  install('docker', `echo "$@" >> "${join(folder, 'docker.log')}"`);
  const done = await told(run, [], { workers: '8' });
  expect(done.json).toMatchObject({ slots: { settled: 32 } });
  const trials = readFileSync(join(folder, 'trials.log'), 'utf8').trimEnd().split('\n');
  expect(trials).toHaveLength(32);
  const stops = readFileSync(join(folder, 'docker.log'), 'utf8').trimEnd().split('\n').sort();
  const names = trials.map((line) => line.split(' ')[1]);
  expect(stops).toEqual(
    names.map((name) => `compose --project-name ${name}__env down --remove-orphans`).sort(),
  );
  await told(unblind);
  const { text } = await told(report);
  expect(text).toContain("rests on the operator's word");
  expect((await audit(folder, undefined)).findings).toEqual([]);
}, 60_000);
