import { resolve } from 'node:path';
import { readFileBounded } from '../core/files.js';

/** A note with its proof and a hundred cosignatures stays far below. */
const MAX_BYTES = 1_010_000;

/** The bytes of a note that a person names. @throws {BoundbookError} FILE_NOT_FOUND, FILE_EMPTY and the like. */
export function readNote(file: string, root: string): Promise<Buffer> {
  return readFileBounded(resolve(root, file), { maxBytes: MAX_BYTES });
}
