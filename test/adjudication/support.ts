import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command } from '../../src/commands/adjudicate.js';
import type {
  CommandContext,
  CommandDefinition,
  CommandResult,
  OptionValue,
} from '../../src/commands/command.js';
import { type Life, makeSmallBook, type SmallBook } from '../support/small-book.js';

/** What the kept answer of an undetermined failure holds: everything that must not be seen, and something that must. */
export const LEAKS = [
  'M@42',
  'M-42',
  '/data/models',
  '0.7071',
  '10.0.0.1',
  'gpu-a.cluster',
  '2026-11-29',
  '4711',
];
const BODY = `<html><script>alert(1)</script>proxy said no: upstream closed
served M@42 from /data/models/M-42 by gpu-a.cluster at 10.0.0.1:9000 pid=4711
2026-11-29T10:00:00Z reward: 0.7071 {"reward": 0.7071, "model": "M@42"}</html>`;

const UNKNOWN: Life = [{ failure: { cause: 'body_not_json', phase: 'body', http_status: 200 }, body: BODY }];
const RIGHT: Life = [{ answer: '12' }];

/** Eleven slots; those at the positions given could not be attributed. */
export function livesWith(undetermined: readonly number[]): readonly Life[] {
  return Array.from({ length: 11 }, (_, i) => (undetermined.includes(i) ? UNKNOWN : RIGHT));
}

export interface Desk {
  readonly book: SmallBook;
  readonly root: string;
  readonly run: (
    options?: Record<string, OptionValue>,
    signal?: AbortSignal,
    verb?: CommandDefinition,
  ) => Promise<CommandResult>;
  readonly said: string[];
  readonly remove: () => void;
}

/** A workspace with undetermined slots, and the verb at hand. */
export async function makeDesk(
  undetermined: readonly number[] = [1, 4, 6, 9],
  protocol: (text: string) => string = (text) =>
    text.replace('  breaker: 10', '  breaker: 10\n  adjudication: required'),
  unblind = false,
): Promise<Desk> {
  const root = mkdtempSync(join(tmpdir(), 'boundbook-adjudication-'));
  const book = await makeSmallBook(root, { lives: livesWith(undetermined), unblind, protocol });
  const said: string[] = [];
  const context = (signal: AbortSignal): CommandContext => ({
    root,
    json: false,
    terminal: false,
    progress: (line) => said.push(line),
    signal,
    force: new AbortController().signal,
    now: book.now,
  });
  return {
    book,
    root,
    said,
    run: (options = {}, signal = new AbortController().signal, verb = command) =>
      verb.run([], options, context(signal)),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

export interface Listed {
  readonly round: string;
  readonly questions: readonly { readonly alias: string; readonly judged: boolean }[];
}

export async function listed(desk: Desk, options: Record<string, OptionValue> = {}): Promise<Listed> {
  return (await desk.run({ list: true, ...options })).json as unknown as Listed;
}
