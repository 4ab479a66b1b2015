import type { Digest } from '../core/digest.js';
import type { Format } from '../report/render.js';
import type { ReportInput } from '../report/report-input.js';
import type { CommandDefinition, CommandResult, OptionValue } from './command.js';

export const command: CommandDefinition = {
  name: 'report',
  args: '[manifest]',
  summary:
    'print what the book supports: bounds, and estimates where everything is settled; before unblind, coverage',
  options: [
    { flags: '--format <format>', description: 'text (default), markdown or json' },
    { flags: '--out <file>', description: 'write the report to a new file instead of printing it' },
  ],
  examples: [
    'boundbook report',
    'boundbook report obme-final --format markdown --out report.md',
    'boundbook report obme-final --json',
  ],
  next: 'boundbook audit checks the ledger and recomputes every figure of a report.',
  run: async ([manifest], options, context): Promise<CommandResult> => {
    const { buildReport } = await import('../report/build.js');
    const { renderReport } = await import('../report/render.js');
    const { asJson } = await import('../core/canonical-json.js');
    const { textOption } = await import('./options.js');
    const out = textOption(options.out, '--out');
    const format = await formatOption(options.format, context.json);
    const report = await readInput(context.root, manifest, buildReport);
    const rendered = renderReport(report, format);
    if (out === undefined) return { text: rendered, json: asJson(report) };
    const digest = await write(context.root, out, format === 'json' ? rendered : `${rendered}\n`);
    return { text: `written    ${out}\ndigest     ${digest}`, json: asJson(report) };
  },
};

/** Makes something of a book while it is open; before the first run, of the plan alone. */
async function readInput<T>(
  root: string,
  manifest: string | undefined,
  make: (input: ReportInput) => T,
): Promise<T> {
  const { BoundbookError } = await import('../core/errors.js');
  const { openBook } = await import('../ledger/book.js');
  const { loadManifest } = await import('../manifest/select.js');
  const { requireSuperseded } = await import('../manifest/succession.js');
  const { readWorkspace } = await import('../manifest/workspace.js');
  const { bookInput } = await import('../report/input.js');
  const stored = await loadManifest(root, manifest);
  const superseded = requireSuperseded(stored.manifest, (await readWorkspace(root)).manifests);
  try {
    const book = await openBook(root, stored, 'read');
    try {
      return make(bookInput(book, superseded));
    } finally {
      book.close();
    }
  } catch (error) {
    const { plan } = stored.manifest;
    if (!(error instanceof BoundbookError) || error.code !== 'LEDGER_NOT_FOUND' || plan === null) throw error;
    const { beforeRunInput } = await import('../report/before-run.js');
    return make(await beforeRunInput(root, stored, plan, superseded));
  }
}

/** `--json` is the JSON form; asking for another one beside it is a contradiction. */
async function formatOption(value: OptionValue, json: boolean): Promise<Format> {
  const { BoundbookError } = await import('../core/errors.js');
  const { FORMATS } = await import('../report/render.js');
  const { textOption } = await import('./options.js');
  const text = textOption(value, '--format');
  const format = FORMATS.find((known) => known === text);
  if (text !== undefined && format === undefined) {
    throw new BoundbookError('USAGE', `--format takes text, markdown or json, not ${JSON.stringify(text)}`, {
      hint: 'A report has no other choices: seeds, queues and contrasts are those of the plan.',
    });
  }
  if (json && format !== undefined && format !== 'json') {
    throw new BoundbookError('USAGE', `--json and --format ${format} contradict each other`, {
      hint: 'Leave one of them out.',
    });
  }
  return json ? 'json' : (format ?? 'text');
}

/** The file is new and durable; JSON has no final line break, so that its digest is the report's. */
async function write(root: string, out: string, content: string): Promise<Digest> {
  const { resolve } = await import('node:path');
  const { digestOf } = await import('../core/digest.js');
  const { createFileDurable } = await import('../core/files.js');
  await createFileDurable(resolve(root, out), content);
  return digestOf(content);
}
