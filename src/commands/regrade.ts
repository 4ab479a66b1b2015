import type { CommandDefinition } from './command.js';

const MAX_CONCURRENCY = 1000;
const DEFAULT_CONCURRENCY = 4;

export const command: CommandDefinition = {
  name: 'regrade',
  args: '[manifest]',
  summary: 'grade all outputs again with a corrected grader, beside what they settled on',
  options: [
    {
      flags: '--grader <file>',
      description:
        "the corrected grader, in YAML or JSON: the value of a condition's grader; a command (kind: report) with grade, grace_s and sources beside it",
      required: true,
    },
    { flags: '--reason <text>', description: 'what was wrong with the first one', required: true },
    {
      flags: '--condition <name...>',
      description: 'conditions whose outputs are graded again; without it all whose grader is of this sort',
    },
    {
      flags: '--concurrency <n>',
      description: `grade commands at the same time (default ${DEFAULT_CONCURRENCY})`,
    },
  ],
  examples: [
    'boundbook regrade --grader boxed.yaml --reason "the first grader did not read boxed answers"',
    'boundbook regrade obme-final --grader fixed.json --condition default --reason "5.0 was not taken for 5"',
    'boundbook regrade --grader fixed-tests.yaml --reason "test 7 read the clock" --concurrency 16',
  ],
  interruptible: true,
  next: 'boundbook report lists every grade that changed, and every output too truncated to grade or without a valid report, when outcomes are unblinded. No slot changes.',
  run: async ([manifest], options, context) => {
    const { resolve } = await import('node:path');
    const { readFileBounded } = await import('../core/files.js');
    const { openBook } = await import('../ledger/book.js');
    const { assertInForce } = await import('../manifest/succession.js');
    const { readWorkspace } = await import('../manifest/workspace.js');
    const { MAX_GRADER_BYTES, readGraderFile } = await import('../regrading/grader-file.js');
    const { regrade } = await import('../regrading/regrade.js');
    const { labelled } = await import('./manifest-output.js');
    const { integerOption, listOption, textOption, usageError } = await import('./options.js');
    const { openGradeBench } = await import('../runner/grade-bench.js');
    const path = textOption(options.grader, '--grader') ?? '';
    const reason = await reasonOption(textOption(options.reason, '--reason') ?? '');
    const bytes = await readFileBounded(resolve(context.root, path), { maxBytes: MAX_GRADER_BYTES });
    const grader = readGraderFile(bytes, path);
    const most = { min: 1, max: MAX_CONCURRENCY };
    const concurrency = integerOption(options.concurrency, '--concurrency', most);
    if (concurrency !== undefined && grader.kind !== 'report') {
      throw usageError(
        `--concurrency does not go with a grader of the kind ${grader.kind}`,
        'It is for grade commands; a grader that reads answers starts nothing.',
      );
    }
    const conditions = options.condition === undefined ? null : listOption(options.condition, '--condition');
    const book = await openBook(context.root, manifest, 'write', context.now);
    try {
      assertInForce(book.stored, (await readWorkspace(context.root)).manifests);
      const { root, signal, force, progress: say } = context;
      const closed = await regrade(
        book,
        { grader, conditions, reason },
        {
          root,
          concurrency: concurrency ?? DEFAULT_CONCURRENCY,
          signal,
          force,
          say,
          openBench: openGradeBench,
        },
      );
      const { changed, same, truncated, failed } = closed;
      const visible = book.fold.outcomesVisible;
      const head = book.head();
      const outputs = changed + same + truncated + (failed ?? 0);
      const rows: readonly (readonly [string, string])[] = [
        ['regraded', `${visible ? `${outputs} outputs` : 'all outputs'}, as entry ${closed.seq} says`],
        ['changed', visible ? String(changed) : 'masked until unblind'],
        ['truncated', visible ? String(truncated) : 'masked until unblind'],
        ...(failed === undefined
          ? []
          : [['failed', visible ? `${failed} without a valid report` : 'masked until unblind'] as const]),
        ['leaf', head.leaf ?? ''],
        ['root', head.root],
      ];
      const json = {
        regrading: closed.regrading,
        entry: closed.seq,
        outputs: visible ? outputs : null,
        changed: visible ? changed : null,
        truncated: visible ? truncated : null,
        ...(failed === undefined ? {} : { failed: visible ? failed : null }),
        manifest: book.manifestDigest,
        head: { ...head },
      };
      return { text: labelled(rows), json };
    } finally {
      book.close();
    }
  },
};

async function reasonOption(text: string): Promise<string> {
  const reason = text.trim().toWellFormed();
  if (reason !== '' && reason.length <= 4000) return reason;
  const { BoundbookError } = await import('../core/errors.js');
  throw new BoundbookError('USAGE', 'a reason has 1 to 4000 characters', {
    hint: 'Say what was wrong with the first grader.',
  });
}
