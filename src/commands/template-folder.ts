import { findTemplate, TEMPLATE_FILES, type TemplateSource } from '../chat-template/source.js';
import { BoundbookError } from '../core/errors.js';
import { isFolder } from '../core/files.js';

/** @throws {BoundbookError} FILE_NOT_FOUND for a folder that is absent or holds no chat template */
export async function requireTemplate(absolute: string, folder: string): Promise<TemplateSource> {
  if (!(await isFolder(absolute))) {
    throw new BoundbookError('FILE_NOT_FOUND', `${folder} is no folder`, {
      hint: 'Name the folder of a model, which holds its tokenizer_config.json or its GGUF file.',
    });
  }
  const source = await findTemplate(absolute);
  if (source !== null) return source;
  throw new BoundbookError('FILE_NOT_FOUND', `${folder} holds no chat template`, {
    hint: `It is looked for in ${TEMPLATE_FILES.join(', ')} and in GGUF files.`,
  });
}
