import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command } from '../../src/commands/audit.js';
import { command as exportCommand } from '../../src/commands/export.js';
import { command as signCommand } from '../../src/commands/sign.js';
import { commandContext } from '../commands/context.js';
import { COMMAND_PLAN } from '../runner/command-plan.js';
import { trial } from '../runner/fixture.js';
import { rejectionOf } from '../signing/support.js';

test('what a command graded is not said to have been graded again', async () => {
  const plan = await trial({ ...COMMAND_PLAN, prompts: { a: 'right a' } });
  await plan.run();
  const { checked } = await audit(plan.root, undefined);
  expect(checked).toContain('every request against the plan');
  expect(checked.join('\n')).not.toContain('graded again');
});

test('the verb: flags of bundles, files that are no manifest, places of a bundle, width', async () => {
  const plan = await trial({ prompts: { a: 'right a' } });
  await plan.run();
  const context = commandContext(plan.root);
  for (const options of [{ object: ['x'] }, { salts: 'public.salts' }]) {
    const error = await rejectionOf(command.run([], options, context));
    expect(error).toMatchObject({ code: 'USAGE', exitCode: 2 });
    expect(error.message).toContain('only for a bundle');
  }

  writeFileSync(join(plan.root, 'lines.jsonl'), '{"id":"a","prompt":"p"}\n{"id":"b","prompt":"q"}\n');
  writeFileSync(join(plan.root, 'altered.json'), '{"format":"boundbook/manifest/1"}');
  const audited = (file: string) => rejectionOf(command.run([file], {}, context));
  expect(await audited('./lines.jsonl')).toMatchObject({ code: 'MANIFEST_NOT_FOUND', exitCode: 2 });
  expect(await audited('./altered.json')).toMatchObject({ code: 'MANIFEST_ALTERED', exitCode: 4 });
  const signed = await rejectionOf(signCommand.run(['lines.jsonl'], { key: 'none' }, context));
  expect(signed.exitCode).toBe(2);
  expect(signed.code).not.toBe('MANIFEST_ALTERED');

  const bundle = { beforeUnblinding: 'test' };
  for (const out of ['manifests/b', 'ledger/b', `${plan.ledger}/b`, 'manifests/new/deep', 'x/../ledger/b']) {
    const error = await rejectionOf(exportCommand.run([], { ...bundle, out }, context));
    expect(error).toMatchObject({ code: 'USAGE', exitCode: 2 });
    expect(error.hint).toContain('outside');
  }
  const tar = await rejectionOf(exportCommand.run([], { ...bundle, out: 'b', tar: 'ledger/b.tar' }, context));
  expect(tar.code).toBe('USAGE');
  const claim = { prml: 'adopt', producer: 'example.org', out: 'ledger/adopt.yaml' };
  expect((await rejectionOf(exportCommand.run([], claim, context))).message).toContain('lies in ledger/');

  const { text } = await command.run([], {}, context);
  const lines = text.slice(text.indexOf('\nnot checked:')).split('\n');
  expect(lines.length).toBeGreaterThan(8);
  expect(lines.filter((line) => line.length > 100)).toEqual([]);
});
