import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'audit',
  args: '[manifest]',
  summary: 'recompute everything that follows from a manifest and its ledger; list what does not',
  options: [
    { flags: '--report <file>', description: 'rebuild this report (JSON, text or Markdown) and compare it' },
    { flags: '--ledger <folder>', description: 'the ledger, when it does not lie in ledger/' },
    {
      flags: '--head <size:hash>',
      description: 'a head that was noted down earlier: shows whether entries are missing or were rewritten',
    },
  ],
  examples: [
    'boundbook audit',
    'boundbook audit demo --report report.json',
    'boundbook audit demo --head 28600:3f5a90c1… --json',
  ],
  next: 'Publish the head, so that others can hold you to it.',
  run: async ([selector], options, { root }) => {
    const { resolve } = await import('node:path');
    const { readFileBounded } = await import('../core/files.js');
    const { textOption } = await import('./options.js');
    const { audit } = await import('../audit/audit.js');
    const { parseHead } = await import('../audit/head.js');
    const { renderAudit } = await import('../audit/render.js');
    const { toJson } = await import('../audit/result.js');
    const ledger = textOption(options.ledger, '--ledger');
    const head = textOption(options.head, '--head');
    const report = textOption(options.report, '--report');
    const settings = {
      ...(ledger === undefined ? {} : { ledger }),
      ...(head === undefined ? {} : { head: parseHead(head) }),
      ...(report === undefined
        ? {}
        : {
            report: {
              name: report,
              bytes: await readFileBounded(resolve(root, report), { maxBytes: MAX_REPORT_BYTES }),
            },
          }),
    };
    const result = await audit(root, selector, settings).catch((error: unknown) => noRunYet(error, ledger));
    return {
      text: renderAudit(result),
      json: toJson(result),
      ...(result.verdict === 'clean' ? {} : { exitCode: 4 as const }),
    };
  },
};

/** Before the first run there is no ledger, which is no fault of a path. */
async function noRunYet(error: unknown, folder: string | undefined): Promise<never> {
  const { BoundbookError } = await import('../core/errors.js');
  if (folder !== undefined || !(error instanceof BoundbookError) || error.code !== 'LEDGER_NOT_FOUND') {
    throw error;
  }
  throw new BoundbookError('LEDGER_NOT_FOUND', `there is nothing to audit yet: no run (${error.message})`, {
    hint: 'Next: boundbook run. A ledger that lies elsewhere is named with --ledger FOLDER.',
    cause: error,
  });
}

const MAX_REPORT_BYTES = 256 * 1024 * 1024;
