import { z } from 'zod';

/** Forms that several parts of the protocol share. */

/** Names that become parts of file names. */
export const fileName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    'use 1 to 64 of a-z, 0-9, dot, dash and underscore, starting with a letter or digit',
  );

export const id = z.string().min(1).max(200);

export const count = z.int().min(1).max(10_000_000);

export const seconds = z
  .number()
  .positive()
  .max(7 * 24 * 3600);

export const byteCount = z
  .int()
  .min(1)
  .max(2 ** 40);

export const path = z.string().min(1).max(4096);

export const argv = z.array(z.string().max(4096)).min(1).max(256);

export const environmentNames = z.array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/)).max(64);

export const sources = z.record(id, path).describe('files and folders of the runner that are bound, by name');
