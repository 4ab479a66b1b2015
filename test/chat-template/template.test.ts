import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { auditTemplate } from '../../src/chat-template/audit.js';
import { reasoningSlot } from '../../src/chat-template/reasoning.js';
import { findTemplate } from '../../src/chat-template/source.js';
import { command } from '../../src/commands/template.js';
import { digestOf } from '../../src/core/digest.js';
import { commandContext } from '../commands/context.js';
import { CLOSES, IGNORES, LEAVES, OPENS, RAISES } from '../support/chat-templates.js';

const NO_TOKENS = {};

function audited(template: string, tokens: Readonly<Record<string, string>> = NO_TOKENS) {
  return auditTemplate({ file: 'chat_template.jinja', template, tokens, disagreeing: [] }, 'M');
}

function slots(template: string): readonly string[] {
  const { unset, true: on, false: off } = audited(template).flags;
  return [unset.slot, on.slot, off.slot];
}

describe('the place for reasoning, with the flag unset, true and false', () => {
  test.each([
    ['one that closes it', CLOSES, ['closed', 'opened', 'closed']],
    ['one that opens it', OPENS, ['opened', 'opened', 'closed']],
    ['one that leaves it to the model', LEAVES, ['left', 'left', 'closed']],
    ['one that ignores the flag', IGNORES, ['left', 'left', 'left']],
    ['one that raises', RAISES, ['opened', 'opened', 'raises']],
  ])('%s', (_, template, expected) => {
    expect(slots(template)).toEqual(expected);
  });

  test.each([
    ['<|im_start|>assistant\n', 'left'],
    ['<think>\n\n</think>\n\n', 'closed'],
    ['</think>', 'closed'],
    ['</think> again <think>', 'opened'],
    ['<seed:think>', 'opened'],
    ['[THINK]', 'opened'],
    ['[THINK][/THINK]', 'closed'],
    ['◁think▷◁/think▷', 'closed'],
    ['<|START_THINKING|><|END_THINKING|>', 'closed'],
    ['<|channel>thought\n<channel|>', 'closed'],
    ['<|start|>assistant<|channel|>analysis<|message|>', 'opened'],
    ['<|start|>assistant<|channel|>final<|message|>', 'closed'],
    ['<rethink>', 'left'],
  ])('after %j it is %s', (tail, slot) => {
    expect(reasoningSlot(tail)).toBe(slot);
  });

  test('the prompt is what transformers gives, and its digest is told', () => {
    const { flags, switches, warnings } = audited(`{{ bos_token }}${OPENS}`, { bos_token: '<s>' });
    const prompt = '<s><|user|>boundbook-probe-7f3a<|end|>\n<|assistant|>\n<think>\n';
    expect(flags.unset).toEqual({
      slot: 'opened',
      prompt: digestOf(prompt),
      tail: '<|end|>\n<|assistant|>\n<think>\n',
    });
    expect(switches).toEqual(['enable_thinking']);
    expect(warnings).toEqual([]);
  });
});

describe('warnings', () => {
  test('a flag without effect, and what is read instead (F-153)', () => {
    expect(audited(IGNORES).warnings).toEqual([
      'enable_thinking has no effect: true and false give the same prompt',
    ]);
    const other = `${IGNORES}{%- if thinking %}<think>{%- endif %}`;
    expect(audited(other).warnings).toEqual([
      'enable_thinking has no effect: true and false give the same prompt; it reads thinking instead',
    ]);
  });

  test('the clock stands still and is told of', () => {
    const { flags, warnings } = audited(`{{ strftime_now('%d %b %Y') }}${OPENS}`);
    expect(warnings).toEqual(['it reads the clock: the prompt is another one every day']);
    expect(flags.unset).toMatchObject({
      prompt: digestOf('01 Jan 2000<|user|>boundbook-probe-7f3a<|end|>\n<|assistant|>\n<think>\n'),
    });
  });

  test("the user's message is left out", () => {
    expect(audited('{% if enable_thinking %}a{% endif %}fixed').warnings).toEqual([
      "it leaves out the user's message",
    ]);
  });
});

describe('templates that do not render', () => {
  test.each([
    ['no Jinja', '{% if %}', /is no Jinja template/],
    ['raises always', "{{ raise_exception('no\\x1b[31m') }}", /raises whatever the reasoning flag is: no/],
    ['never ends', '{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}', /steps/],
    [
      'grows without end',
      `{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}`,
      /a text of more than/,
    ],
    ['asks for a huge range', '{% for a in range(1000000000) %}{% endfor %}', /a range of 1000000000/],
    ['nests too deeply', `{{ ${'('.repeat(50_000)}1${')'.repeat(50_000)} }}`, /nests too deeply/],
  ])('%s', (_, template, message) => {
    expect(() => audited(template)).toThrow(message);
    expect(() => audited(template)).toThrow(expect.objectContaining({ code: 'TEMPLATE_INVALID' }));
  });
});

describe('boundbook template', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'template-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function model(name: string, files: Readonly<Record<string, string>>): void {
    mkdirSync(join(folder, name));
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, name, file), text);
  }
  const run = (...folders: readonly string[]) => command.run(folders, {}, commandContext(folder));

  test('finds the template where tokenizers keep it, and tokens by name', async () => {
    model('M', {
      'tokenizer_config.json': JSON.stringify({
        bos_token: { content: '<s>' },
        eos_token: '</s>',
        chat_template: [
          { name: 'tool_use', template: IGNORES },
          { name: 'default', template: OPENS },
        ],
      }),
    });
    expect(await findTemplate(join(folder, 'M'))).toEqual({
      file: 'tokenizer_config.json',
      template: OPENS.trimEnd(),
      tokens: { bos_token: '<s>', eos_token: '</s>', unk_token: '', pad_token: '' },
      disagreeing: [],
    });
  });

  test('says closed, opened or left to the model, for several models', async () => {
    model('A', { 'chat_template.jinja': CLOSES });
    model('B', { 'chat_template.jinja': LEAVES, 'chat_template.json': '{"chat_template":"other"}' });
    model('C', { 'chat_template.jinja': OPENS });
    const { text, json } = await run('A', 'B', 'C');
    expect(text.split('\n').slice(0, 4)).toEqual([
      expect.stringMatching(/^model {2,}unset {2,}true {2,}false {2,}switches {2,}template$/),
      expect.stringMatching(/^A {2,}closed {2,}opened {2,}closed {2,}enable_thinking {2,}[0-9a-f]{12}$/),
      expect.stringMatching(/^B {2,}left to the model {2,}left to the model {2,}closed /),
      expect.stringMatching(/^C {2,}opened {2,}opened {2,}closed /),
    ]);
    expect(text).toContain('unset  "<|end|>\\n<|assistant|>\\n<think>\\n\\n</think>\\n\\n"');
    expect(text).toContain('warning: chat_template.json holds another template');
    expect(json).toMatchObject({
      models: [
        { folder: 'A', enable_thinking: { unset: { reasoning: 'closed' } } },
        { folder: 'B', enable_thinking: { unset: { reasoning: 'left' } } },
        { folder: 'C', enable_thinking: { unset: { reasoning: 'opened' } } },
      ],
    });
  });

  test('names a folder that is not there, or holds no template', async () => {
    await expect(run('nothing')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND', exitCode: 2 });
    model('M', { 'config.json': '{}', 'tokenizer_config.json': '{"chat_template": null}' });
    await expect(run('M')).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
      message: 'M holds no chat template',
    });
  });
});
