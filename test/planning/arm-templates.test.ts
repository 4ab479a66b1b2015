import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { command as check } from '../../src/commands/check.js';
import { command as init } from '../../src/commands/init.js';
import type { JsonObject } from '../../src/core/json.js';
import { commandContext } from '../commands/context.js';
import { CLOSES, IGNORES, LEAVES, OPENS, RAISES } from '../support/chat-templates.js';

let folder = '';
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'arm-templates-'));
  await init.run([], {}, commandContext(folder));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const PROTOCOL = 'protocol/example.yaml';

function write(path: string, text: string): void {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function edit(from: string | RegExp, to: string): void {
  const before = readFileSync(join(folder, PROTOCOL), 'utf8');
  const after = before.replace(from, to);
  expect(after).not.toBe(before);
  writeFileSync(join(folder, PROTOCOL), after);
}

async function checked(): Promise<JsonObject> {
  const { json } = await check.run([PROTOCOL], {}, commandContext(folder));
  return JSON.parse(JSON.stringify(json)) as JsonObject;
}

async function remarks(): Promise<readonly string[]> {
  const { remarks } = (await checked()) as { remarks: { about: string; message: string }[] };
  return remarks.filter(({ about }) => about === 'template').map(({ message }) => message);
}

function put(model: string, template: string): void {
  write(`models/${model}/chat_template.jinja`, template);
}

test('says what each arm is asked, by the flag of its condition', async () => {
  put('base', CLOSES);
  for (const seed of [1, 2, 3]) put(`tuned-${seed}`, CLOSES);
  const { chat_templates } = (await checked()) as { chat_templates: JsonObject[] };
  expect(
    chat_templates.map(({ arm, seed, enable_thinking, reasoning }) => [
      arm,
      seed,
      enable_thinking,
      reasoning,
    ]),
  ).toEqual([
    ['base', null, 'false', 'closed'],
    ['tuned', 1, 'false', 'closed'],
    ['tuned', 2, 'false', 'closed'],
    ['tuned', 3, 'false', 'closed'],
  ]);
  expect(await remarks()).toEqual([]);
  const { text } = await check.run([PROTOCOL], {}, commandContext(folder));
  expect(text).toMatch(/^tuned {2,}false {2,}closed {2,}[0-9a-f]{12}$/m);
});

test('warns when arms of a queue reason differently or have other templates (F-155)', async () => {
  put('base', IGNORES);
  for (const seed of [1, 2]) put(`tuned-${seed}`, OPENS);
  put('tuned-3', LEAVES);
  expect(await remarks()).toEqual([
    'the chat template of the model "base": enable_thinking has no effect: true and false give the same prompt',
    'the seeds 1 and 3 of the arm "tuned" have different chat templates',
    'in the queue "main" the arms "base" and "tuned" reason differently: one prompt is left to the model, the other closed',
    'in the queue "main" the arms "base" and "tuned" have different chat templates',
  ]);
});

test('warns when seeds of one arm have other templates', async () => {
  put('base', OPENS);
  for (const seed of [1, 2]) put(`tuned-${seed}`, OPENS);
  put('tuned-3', `${OPENS}.`);
  expect(await remarks()).toContain('the seeds 1 and 3 of the arm "tuned" have different chat templates');
});

test('says which templates were not looked at', async () => {
  mkdirSync(join(folder, 'models/base'), { recursive: true });
  expect(await remarks()).toEqual([
    'no chat template lies with "base": the server decides the prompt',
    'chat templates were not looked at, because the weights are not here: "tuned"',
  ]);
});

test('the template beside a tokenizer counts where the weights have none', async () => {
  edit('    weights: models/base', '    weights: models/base\n    tokenizer: tok/tokenizer.json');
  mkdirSync(join(folder, 'models/base'), { recursive: true });
  write('tok/tokenizer_config.json', JSON.stringify({ chat_template: OPENS }));
  const { chat_templates } = (await checked()) as { chat_templates: JsonObject[] };
  expect(chat_templates).toMatchObject([
    { arm: 'base', file: 'tok/tokenizer_config.json', reasoning: 'closed' },
  ]);
});

describe('refused', () => {
  test('a template that raises for the flag of an arm', async () => {
    put('base', RAISES);
    await expect(checked()).rejects.toMatchObject({
      code: 'TEMPLATE_INVALID',
      exitCode: 2,
      faults: [
        {
          where: '/arms/base',
          message:
            'the chat template in models/base/chat_template.jinja raises for it: this model always reasons',
        },
      ],
    });
    edit('reasoning: off', 'reasoning: on');
    await expect(checked()).resolves.toMatchObject({ ok: true });
  });

  test('arms that differ in a flag which the template ignores (F-153)', async () => {
    const text = readFileSync(join(folder, PROTOCOL), 'utf8');
    const start = text.indexOf('  default:\n');
    const condition = text.slice(start, text.indexOf('\n# An arm is'));
    const other = condition.replace('  default:', '  reasons:').replace('reasoning: off', 'reasoning: on');
    write(PROTOCOL, text.replace(condition, `${condition}${other}`));
    edit('tuned: { model: tuned, condition: default }', 'tuned: { model: base, condition: reasons }');
    put('base', IGNORES);
    await expect(checked()).rejects.toMatchObject({
      code: 'TEMPLATE_NO_EFFECT',
      exitCode: 2,
      faults: [
        {
          where: '/arms/tuned',
          message:
            'differs from "base" in the reasoning flag alone (false, true), and the chat template in ' +
            'models/base/chat_template.jinja gives both the same prompt',
        },
      ],
    });
    put('base', OPENS);
    await expect(checked()).resolves.toMatchObject({ ok: true });
  });
});

test('completions have no template', async () => {
  edit('endpoint: chat', 'endpoint: completions');
  put('base', '{% broken');
  expect((await checked()).chat_templates).toEqual([]);
});
