import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { auditTemplate } from '../../src/chat-template/audit.js';
import { findTemplate } from '../../src/chat-template/source.js';
import { IGNORES, OPENS } from '../support/chat-templates.js';
import { ggufBytes } from '../support/gguf.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gguf-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (name: string, bytes: Buffer | string) => writeFileSync(join(folder, name), bytes);
const METADATA = {
  'general.architecture': 'llama',
  'tokenizer.chat_template': `{{ bos_token }}${OPENS}`,
  'tokenizer.ggml.tokens': ['<unk>', '<s>', '</s>'],
  'tokenizer.ggml.bos_token_id': 1,
  'tokenizer.ggml.eos_token_id': 2,
  'tokenizer.ggml.unknown_token_id': 0,
};

test('the template of a GGUF file renders with the tokens that its metadata name', async () => {
  put('M-Q4_K_M.gguf', ggufBytes(METADATA));
  const source = await findTemplate(folder);
  expect(source).toEqual({
    file: 'M-Q4_K_M.gguf',
    template: `{{ bos_token }}${OPENS.trimEnd()}`,
    tokens: { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>', pad_token: '' },
    disagreeing: [],
  });
  if (source === null) return;
  const { flags } = auditTemplate(source, 'M');
  expect([flags.unset.slot, flags.true.slot, flags.false.slot]).toEqual(['opened', 'opened', 'closed']);
});

test('a vocabulary of several megabytes before the template is read over', async () => {
  const vocabulary = Array.from({ length: 100_000 }, (_, token) => `token-number-${token}`);
  put('big.gguf', ggufBytes({ 'tokenizer.ggml.tokens': vocabulary, 'tokenizer.chat_template': IGNORES }));
  expect((await findTemplate(folder))?.template).toBe(IGNORES.trimEnd());
});

test('of numbered shards the first is read, and without a template there is none', async () => {
  put('m-00002-of-00002.gguf', 'no header at all');
  put('m-00001-of-00002.gguf', ggufBytes({ 'general.architecture': 'llama' }));
  expect(await findTemplate(folder)).toBeNull();
});

test('a template beside the GGUF file that is another one is told of: servers choose differently (F-43)', async () => {
  put('chat_template.jinja', IGNORES);
  put('m.gguf', ggufBytes(METADATA));
  expect(await findTemplate(folder)).toMatchObject({
    file: 'chat_template.jinja',
    disagreeing: ['m.gguf'],
  });
});

const WHOLE = ggufBytes({ 'tokenizer.chat_template': OPENS });
test.each([
  ['no GGUF file', Buffer.from('PK\x03\x04 something else'), /no-good\.gguf cannot be read as GGUF: /],
  ['one of zero bytes', Buffer.alloc(0), /cannot be read as GGUF/],
  ['cut in its template', WHOLE.subarray(0, WHOLE.length - 20), /cut short/],
])('%s is refused', async (_, bytes, message) => {
  put('no-good.gguf', bytes);
  await expect(findTemplate(folder)).rejects.toMatchObject({
    code: 'FILE_UNREADABLE',
    message: expect.stringMatching(message) as string,
    hint: expect.stringContaining('again') as string,
  });
});
