import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { VERSION } from '../core/version.js';

/** This program as it runs now. */
export interface Product {
  readonly tool: {
    readonly name: 'boundbook';
    readonly version: string;
    /** The exact versions that the package pins. */
    readonly dependencies: Readonly<Record<string, string>>;
  };
  /** The folder that holds the running code: `src` or `dist`, absolute. */
  readonly folder: string;
  /** Its last part; where the package lies on a host is no part of its identity. */
  readonly shown: string;
}

const packageSchema = z.object({
  name: z.string(),
  dependencies: z.record(z.string(), z.string()).default({}),
});

/** Finds the running code by the place of this very file. */
export function runningProduct(): Product {
  const folder = dirname(dirname(fileURLToPath(import.meta.url)));
  return {
    tool: { name: 'boundbook', version: VERSION, dependencies: pinnedDependencies(folder) },
    folder,
    shown: basename(folder),
  };
}

function pinnedDependencies(folder: string): Readonly<Record<string, string>> {
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, 'package.json');
    if (existsSync(file)) {
      const parsed = packageSchema.safeParse(JSON.parse(readFileSync(file, 'utf8')));
      if (parsed.success && parsed.data.name === 'boundbook') return parsed.data.dependencies;
    }
    if (at === dirname(at)) return {};
  }
}
