import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { command as bind } from '../../src/commands/bind.js';
import { command as check } from '../../src/commands/check.js';
import type { CommandDefinition } from '../../src/commands/command.js';
import { command as freeze } from '../../src/commands/freeze.js';
import { command as plan } from '../../src/commands/plan.js';
import { command as verify } from '../../src/commands/verify.js';
import { STARTERS } from '../../src/planning/starter.js';
import { createWorkspace } from '../../src/planning/workspace.js';
import { newWorkspace } from '../ledger/support.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'words-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function run(command: CommandDefinition, root: string, args: string[], options: Record<string, string> = {}) {
  const { signal } = new AbortController();
  const now = () => '2026-12-01T00:00:00.000Z';
  const context = {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal,
    force: signal,
    now,
  };
  return command.run(args, options, context);
}

test('plan says in which order slots run and how they split', async () => {
  const { text, json } = await run(plan, ROOT, ['protocol/demo.yaml']);
  expect(text).toContain('Order: a group for each arm, training_seed, one group after the other;');
  expect(text).toContain('(within: hash)');
  const [, two = ''] = /2 shards: (.*) slots/.exec(text) ?? [];
  const { shards } = (await run(plan, ROOT, ['protocol/demo.yaml'], { shards: '2' })).json as unknown as {
    shards: readonly number[];
  };
  expect(two.split(', ').map((size) => Number(size.replaceAll(/\D/g, '')))).toEqual(shards);
  expect(json).toMatchObject({ shards: null });
  for (const line of text.split('\n')) expect(line.length, line).toBeLessThanOrEqual(100);
});

test('check and freeze refuse a chat whose condition leaves reasoning out (B2); the starter says it', async () => {
  await createWorkspace(folder, 'openai');
  const path = 'protocol/example.yaml';
  await run(check, folder, [path]);
  const without = STARTERS.openai.protocol.replace(/^ +reasoning: .*\n/m, '');
  writeFileSync(join(folder, path), without);
  const refusal = {
    code: 'PROTOCOL_INVALID',
    exitCode: 2,
    faults: [
      expect.objectContaining({
        where: '/conditions/default',
        message: expect.stringContaining('nothing says whether the model may reason') as string,
        hint: expect.stringContaining('Write reasoning: on or off.') as string,
      }) as object,
    ],
  };
  await expect(run(check, folder, [path])).rejects.toMatchObject(refusal);
  await expect(run(freeze, folder, [path])).rejects.toMatchObject(refusal);
  // The completions endpoint renders no template, so that there is nothing to switch.
  writeFileSync(join(folder, path), without.replace('endpoint: chat', 'endpoint: completions'));
  await run(check, folder, [path]);
});

test('verify of a protocol names freeze, and is no refusal of the gate', async () => {
  await createWorkspace(folder, 'openai');
  await expect(run(verify, folder, ['protocol/example.yaml'])).rejects.toMatchObject({
    code: 'MANIFEST_NOT_FOUND',
    exitCode: 2,
    hint: expect.stringContaining('boundbook freeze protocol/example.yaml'),
  });
});

test('bind of an item where none is declared says what comes next', async () => {
  const { root } = await newWorkspace();
  await expect(run(bind, root, [], { resolve: 'nope', evidence: 'e.txt' })).rejects.toMatchObject({
    code: 'PENDING_UNKNOWN',
    hint: expect.stringMatching(/declares no pending item.*Next: boundbook bind/),
  });
});
