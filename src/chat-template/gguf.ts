import { basename } from 'node:path';
import { gguf, parseGgufShardFilename } from '@huggingface/gguf';
import { BoundbookError } from '../core/errors.js';

export interface GgufTemplate {
  readonly template: string;
  /** Texts of the tokens that the metadata name by their ids: `bos_token` and its like. */
  readonly tokens: Readonly<Record<string, string>>;
}

/** Names that templates use, and the metadata keys that hold their ids (GGUF specification, "Special tokens"). */
const TOKEN_IDS = {
  bos_token: 'tokenizer.ggml.bos_token_id',
  eos_token: 'tokenizer.ggml.eos_token_id',
  unk_token: 'tokenizer.ggml.unknown_token_id',
  pad_token: 'tokenizer.ggml.padding_token_id',
} as const;

/** Whether a file name is that of a GGUF file whose metadata count: of numbered shards only the first has them all. */
export function isGgufHead(path: string): boolean {
  if (!path.endsWith('.gguf')) return false;
  const shard = parseGgufShardFilename(basename(path));
  return shard === null || Number(shard.shard) === 1;
}

/**
 * The chat template in the metadata of a GGUF file, which llama.cpp applies.
 *
 * @returns null when the metadata hold none
 * @throws {BoundbookError} FILE_UNREADABLE for what is no GGUF file, or a cut one
 */
export async function templateInGguf(absolute: string): Promise<GgufTemplate | null> {
  const metadata = await metadataOf(absolute);
  const template = metadata['tokenizer.chat_template'];
  if (typeof template !== 'string') return null;
  // The reader pads a file that ends too early with zeros.
  if (template.includes('\0')) throw unreadable(absolute, 'its metadata are cut short');
  return { template, tokens: tokensOf(metadata) };
}

type Metadata = Readonly<Record<string, unknown>>;

async function metadataOf(absolute: string): Promise<Metadata> {
  try {
    const { metadata } = await gguf(absolute, { allowLocalFile: true });
    return metadata as object as Metadata;
  } catch (error) {
    throw unreadable(absolute, error instanceof Error ? error.message : String(error), error);
  }
}

function tokensOf(metadata: Metadata): Readonly<Record<string, string>> {
  const vocabulary = metadata['tokenizer.ggml.tokens'];
  const texts: readonly unknown[] = Array.isArray(vocabulary) ? vocabulary : [];
  return Object.fromEntries(
    Object.entries(TOKEN_IDS).map(([name, key]) => {
      const id = metadata[key];
      const text = typeof id === 'number' ? texts[id] : undefined;
      return [name, typeof text === 'string' ? text : ''];
    }),
  );
}

function unreadable(absolute: string, what: string, cause?: unknown): BoundbookError {
  return new BoundbookError('FILE_UNREADABLE', `${basename(absolute)} cannot be read as GGUF: ${what}`, {
    hint: 'Copy the file again from its source, or make it again with the converter of llama.cpp.',
    ...(cause === undefined ? {} : { cause }),
  });
}
