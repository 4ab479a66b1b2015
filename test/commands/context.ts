import type { CommandContext } from '../../src/commands/command.js';

/** What a verb gets of the outside in tests. */
export function commandContext(root: string): CommandContext {
  return {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    force: new AbortController().signal,
    now: () => '2026-12-01T00:00:00.000Z',
  };
}
