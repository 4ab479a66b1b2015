import type { Digest } from '../core/digest.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import type { Book } from '../ledger/book.js';
import type { Found } from '../ledger/lookup.js';
import type { CommandDefinition } from './command.js';
import type { ShownCapture } from './show-captures.js';
import type { CarriedShown } from './show-carried.js';
import type { ExplainedFailure } from './show-failures.js';
import type { ShownObject } from './show-objects.js';
import type { PartialAnswer } from './show-partial.js';

const NOTE = 'Outcomes are masked until `boundbook unblind`.';
const MAX_TEXT = 100_000;

/** What can be asked for, and the flags that go with it. */
const MODES = {
  plain: ['manifest'],
  proof: ['manifest', 'out'],
  verify: ['key', 'policy', 'entry'],
} as const;

export const command: CommandDefinition = {
  name: 'show',
  args: '[what]',
  summary: 'show an entry, a slot or attempt with its history, or an object; prove what became of a slot',
  options: [
    { flags: '--manifest <manifest>', description: 'whose ledger, when the workspace has several plans' },
    {
      flags: '--proof',
      description: 'of a slot: the proof that a signed checkpoint covers the entry that closed it',
    },
    { flags: '--out <file>', description: 'with --proof: where it goes (default: printed)' },
    { flags: '--verify <proof>', description: 'verify such a proof, with no ledger at hand' },
    {
      flags: '--key <vkey>',
      description: 'with --verify: public key that is trusted; may be repeated',
      repeatable: true,
    },
    { flags: '--policy <file>', description: 'with --verify: whose cosignatures are required' },
    {
      flags: '--entry <file>',
      description: 'with --verify: the entry, when the proof was written while outcomes were blinded',
    },
  ],
  examples: [
    'boundbook show 0',
    'boundbook show f554e0b05e5e99bec897e2a7a47b8e85',
    'boundbook show sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --json',
    'boundbook show --proof f554e0b05e5e99bec897e2a7a47b8e85 --out slot.tlog-proof',
    'boundbook show --verify slot.tlog-proof --key example.org/eval+1c2d3e4f+AbC…',
  ],
  run: async ([what], options, context) => {
    const { modeOf, textOption, usageError } = await import('./options.js');
    const mode = modeOf(options, MODES);
    if ((what === undefined) !== (mode === 'verify')) {
      throw usageError(
        'show takes either one thing to show or --verify PROOF',
        'See `boundbook show --help`.',
      );
    }
    if (what === undefined) return (await import('./show-proof.js')).showVerified(options, context);
    if (mode === 'proof') return (await import('./show-proof.js')).showProof(what, options, context);
    const { openBook } = await import('../ledger/book.js');
    const { carriedFrom } = await import('../ledger/carried-slots.js');
    const book = await openBook(context.root, textOption(options.manifest, '--manifest'), 'read');
    try {
      const found = await find(context.root, book, what);
      const { carriedShown } = await import('./show-carried.js');
      const carried =
        found.kind === 'slot' ? carriedShown(await carriedFrom(context.root, book, found.slot), found) : [];
      const { explainFailures } = await import('./show-failures.js');
      const { rules } = book.context.protocol.attempts;
      const failures =
        found.kind === 'slot' ? explainFailures(rules, found.entries, book.fold.outcomesVisible) : [];
      const read = await objectReader(book);
      const { capturesOf } = await import('./show-captures.js');
      const captures = found.kind === 'slot' ? capturesOf(found.entries, read) : [];
      const { objectsOf } = await import('./show-objects.js');
      const objects = found.kind === 'slot' ? objectsOf(found.entries, read) : [];
      const { partialAnswers } = await import('./show-partial.js');
      const partial = found.kind === 'slot' ? partialAnswers(book, found.slot, found.entries) : [];
      const explained = { failures, captures, objects, partial };
      return {
        text: await foundText(found, carried, explained),
        json: await foundJson(found, carried, explained),
      };
    } finally {
      book.close();
    }
  },
};

/** What is said of the attempts of a slot beside its entries. */
interface Explained {
  readonly objects: readonly ShownObject[];
  readonly failures: readonly ExplainedFailure[];
  readonly captures: readonly ShownCapture[];
  readonly partial: readonly PartialAnswer[];
}

/** Reads objects; one that is not at hand, or altered, is null. */
async function objectReader({ store }: Book): Promise<(digest: Digest) => Buffer | null> {
  const { BoundbookError } = await import('../core/errors.js');
  return (digest) => {
    try {
      return store.getObject(digest);
    } catch (error) {
      if (error instanceof BoundbookError) return null;
      throw error;
    }
  };
}

/** An object that only an earlier ledger holds, from which this one carries, is named with that ledger. */
async function find(root: string, book: Book, what: string): Promise<Found> {
  const { BoundbookError } = await import('../core/errors.js');
  const { isDigest } = await import('../core/digest.js');
  const { carriedObject } = await import('../ledger/carried-slots.js');
  const { lookUp } = await import('../ledger/lookup.js');
  try {
    return lookUp(book, what);
  } catch (error) {
    const isMissing = error instanceof BoundbookError && error.code === 'OBJECT_MISSING' && isDigest(what);
    const source = isMissing ? await carriedObject(root, book, what) : null;
    if (source === null || !(error instanceof BoundbookError)) throw error;
    throw new BoundbookError(
      'OBJECT_MISSING',
      `the object ${what} lies in the ledger of ${source.file}, from which this one carries closed slots`,
      {
        hint: `boundbook show ${what} --manifest ${source.file}`,
        evidence: { digest: what, manifest: source.manifest, ledger: source.ledger },
        cause: error,
      },
    );
  }
}

async function foundJson(
  found: Found,
  carried: readonly CarriedShown[],
  { failures, captures, objects, partial }: Explained,
): Promise<JsonValue> {
  if (found.kind === 'slot') {
    const { failuresJson } = await import('./show-failures.js');
    const { capturesJson } = await import('./show-captures.js');
    return {
      ...found,
      carried: carried.map((one) => ({ ...one })),
      failures: failuresJson(failures),
      captures: capturesJson(captures),
      objects: objects.map((one) => ({ ...one })),
      partial_answers: partial.map((one) => ({ ...one })),
    };
  }
  if (found.kind !== 'object') return { ...found };
  const { kind, digest, bytes, named_by } = found;
  const text = await textOf(bytes);
  const content = text === null ? { base64: bytes.toString('base64') } : { text };
  return { kind, digest, size: bytes.length, ...content, named_by: named_by.map((each) => ({ ...each })) };
}

async function foundText(
  found: Found,
  carried: readonly CarriedShown[],
  explained: Explained,
): Promise<string> {
  switch (found.kind) {
    case 'entry':
      return [`leaf        ${found.leaf}`, await pretty(found.entry), ...(found.masked ? [NOTE] : [])].join(
        '\n',
      );
    case 'slot':
      return slotText(found, carried, explained);
    case 'object':
      return objectText(found);
  }
}

async function slotText(
  found: Extract<Found, { kind: 'slot' }>,
  carried: readonly CarriedShown[],
  { failures, captures, objects, partial }: Explained,
): Promise<string> {
  const { capturesText } = await import('./show-captures.js');
  const { carriedRows } = await import('./show-carried.js');
  const { failuresText } = await import('./show-failures.js');
  const { objectsText } = await import('./show-objects.js');
  const { printable } = await import('./render-error.js');
  const { labelled } = await import('./manifest-output.js');
  const { renderTable } = await import('../planning/table.js');
  const [queue, arm, trainingSeed, evaluationSeed, task, rep] = found.key.map(String);
  const { phase, attempts: _, ...rest } = found.state;
  const head = labelled([
    ['slot', found.slot],
    ['queue', `${queue}, evaluation seed ${evaluationSeed}`],
    ['arm', trainingSeed === 'null' ? String(arm) : `${arm}@${trainingSeed}`],
    ['task', `${task}, rep ${rep}`],
    ['state', String(phase)],
    ...carriedRows(found.slot, carried),
    ...Object.entries(rest).map(([name, value]): [string, string] => ['', `${name}: ${scalar(value)}`]),
  ]);
  const rows = found.entries.map((entry) => [
    typeof entry.seq === 'number' ? entry.seq : '',
    scalar(entry.time ?? ''),
    String(entry.type),
    summary(entry),
  ]);
  const history =
    rows.length === 0 ? 'No attempt was started yet.' : renderTable(['entry', 'time', 'type', 'what'], rows);
  const { partialText } = await import('./show-partial.js');
  const told = [
    ...failuresText(failures),
    ...capturesText(captures),
    ...partialText(partial),
    ...objectsText(objects),
  ].map(printable);
  return [head, history, ...told, ...(found.masked ? [NOTE] : [])].join('\n\n');
}

async function objectText({ digest, bytes, named_by }: Extract<Found, { kind: 'object' }>): Promise<string> {
  const { labelled } = await import('./manifest-output.js');
  const { printable } = await import('./render-error.js');
  const head = labelled([
    ['object', digest],
    ['size', `${bytes.length} bytes`],
    [
      'named by',
      named_by
        .slice(0, 10)
        .map(({ seq, as }) => `${seq === null ? 'a masked entry' : `entry ${seq}`} as ${as}`)
        .join(', ') || 'no entry',
    ],
  ]);
  const text = await textOf(bytes);
  if (text === null) return `${head}\n\nNot text; --json prints it in base64.`;
  const cut =
    text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n(cut here; --json prints all of it)` : text;
  return `${head}\n\n${printable(cut)}`;
}

/** What tells one entry of a history from the next. */
function summary(entry: JsonObject): string {
  const { kind, stage, result, attribution, outcome, reason, value, found } = entry;
  const parts = [stage, kind, attribution, outcome, reason, found, value]
    .filter((part) => part != null)
    .map(scalar);
  if (typeof result === 'object' && result !== null && 'kind' in result) parts.push(...resultParts(result));
  return parts.join(', ');
}

function resultParts(result: JsonObject): string[] {
  const { kind, value, signals } = result;
  const cause =
    typeof signals === 'object' && signals !== null && 'cause' in signals ? signals.cause : undefined;
  return [kind, cause, value].filter((part) => part != null).map(scalar);
}

function scalar(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

async function pretty(entry: JsonObject): Promise<string> {
  const { printable } = await import('./render-error.js');
  return printable(JSON.stringify(entry, null, 2));
}

async function textOf(bytes: Buffer): Promise<string | null> {
  const { isUtf8 } = await import('node:buffer');
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString('utf8') : null;
}
