import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The output folder of a stage, in the folder of its attempt. */
export function outputOf(home: string, stage: 'generate' | 'grade'): string {
  const room = readdirSync(home).find((name) => new RegExp(`^${stage}-[0-9a-f]{16}$`).test(name));
  if (room === undefined) throw new Error(`no room of ${stage} in ${home}`);
  return join(home, room, 'output');
}

/** The names in the folder of an attempt, without what is random in them. */
export function namesIn(home: string): readonly string[] {
  return readdirSync(home)
    .map((name) => name.replace(/-[0-9a-f]{16}$/, '-*'))
    .sort();
}
