import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { exists, isFolder, readFileBounded } from '../core/files.js';
import { readLoaderObject } from '../core/loader-json.js';
import { isGgufHead, templateInGguf } from './gguf.js';

const MAX_TEMPLATE_BYTES = 16 * 1024 * 1024;

/** Files of a model that can hold its chat template. Servers choose differently when they disagree (F-43). */
export const TEMPLATE_FILES = ['chat_template.jinja', 'tokenizer_config.json', 'chat_template.json'] as const;

/** The tokens that templates write by name, as tokenizer_config.json gives them. */
const TOKENS = ['bos_token', 'eos_token', 'unk_token', 'pad_token'] as const;

/** A model's chat template and what it may write by name. */
export interface TemplateSource {
  /** The file, relative to the model's folder. */
  readonly file: string;
  readonly template: string;
  readonly tokens: Readonly<Record<string, string>>;
  /** Other files of the folder whose template is another one. */
  readonly disagreeing: readonly string[];
}

/**
 * Finds the chat template in a model's folder, in the order of {@link TEMPLATE_FILES}, and then in its GGUF files by
 * name.
 *
 * @returns null when no file holds one
 * @throws {BoundbookError} what reading a file throws, except that a file which is absent is passed over
 */
export async function findTemplate(folder: string): Promise<TemplateSource | null> {
  const found: Omit<TemplateSource, 'disagreeing'>[] = [];
  for (const file of TEMPLATE_FILES) {
    if (!(await exists(join(folder, file)))) continue;
    const template = await templateIn(join(folder, file));
    if (template !== null) found.push({ file, template, tokens: await specialTokens(folder) });
  }
  for (const file of await ggufHeads(folder)) {
    const inside = await templateInGguf(join(folder, file));
    if (inside !== null) found.push({ file, ...inside, template: withoutLastBreak(inside.template) });
  }
  const [first, ...others] = found;
  if (first === undefined) return null;
  const disagreeing = others.filter(({ template }) => template !== first.template).map(({ file }) => file);
  return { ...first, disagreeing };
}

async function ggufHeads(folder: string): Promise<readonly string[]> {
  if (!(await isFolder(folder))) return [];
  return (await readdir(folder)).filter(isGgufHead).sort();
}

/**
 * The template that a file holds: the whole of a .jinja file, or the member `chat_template` of a JSON file, of several
 * named ones that named `default`. Without its last line break, which Jinja drops.
 *
 * @returns null when it holds none
 * @throws {BoundbookError} as {@link readFileBounded}
 */
export async function templateIn(absolute: string): Promise<string | null> {
  if (absolute.endsWith('.jinja')) {
    const bytes = await readFileBounded(absolute, { maxBytes: MAX_TEMPLATE_BYTES, allowEmpty: true });
    return withoutLastBreak(bytes.toString('utf8'));
  }
  const value = (await readLoaderObject(absolute))?.chat_template;
  if (typeof value === 'string') return withoutLastBreak(value);
  if (!Array.isArray(value)) return null;
  const named = value.find((item: unknown) => isNamed(item) && item.name === 'default') as unknown;
  return isNamed(named) && typeof named.template === 'string' ? withoutLastBreak(named.template) : null;
}

async function specialTokens(folder: string): Promise<Readonly<Record<string, string>>> {
  const file = join(folder, 'tokenizer_config.json');
  const config = (await exists(file)) ? await readLoaderObject(file) : null;
  const tokens: Record<string, string> = {};
  for (const name of TOKENS) {
    const value = config?.[name];
    const text = isContent(value) ? value.content : value;
    tokens[name] = typeof text === 'string' ? text : '';
  }
  return tokens;
}

function isNamed(item: unknown): item is { readonly name: unknown; readonly template?: unknown } {
  return typeof item === 'object' && item !== null && 'name' in item;
}

/** A token with its settings, as tokenizers write it. */
function isContent(value: unknown): value is { readonly content: unknown } {
  return typeof value === 'object' && value !== null && 'content' in value;
}

function withoutLastBreak(template: string): string {
  return template.replace(/\r?\n$/, '');
}
