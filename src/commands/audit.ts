import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'audit',
  args: '[subject]',
  summary:
    'recompute everything that follows from a manifest and its ledger, or from a bundle (folder or tar); list what does not',
  options: [
    { flags: '--report <file>', description: 'rebuild this report (JSON, text or Markdown) and compare it' },
    { flags: '--ledger <folder>', description: 'the ledger, when it does not lie in ledger/' },
    {
      flags: '--head <size:hash>',
      description: 'a head that was noted down earlier: shows whether entries are missing or were rewritten',
    },
    {
      flags: '--key <vkey>',
      description: 'public key of somebody whose signatures count; may be given several times',
      repeatable: true,
    },
    {
      flags: '--policy <file>',
      description: 'whose cosignatures a checkpoint must have (c2sp.org/tlog-policy)',
    },
    {
      flags: '--since <note>',
      description: 'a checkpoint from earlier: proves that the ledger continues it, or shows both notes',
    },
    {
      flags: '--object <path>',
      description:
        'disclosed content of a redacted object of a bundle, a file or a folder of files; repeatable',
      repeatable: true,
    },
    { flags: '--salts <file>', description: 'salts that open the commitments of disclosed contents' },
    { flags: '--tsa-ca <pem>', description: 'root certificates of time-stamping authorities that count' },
    {
      flags: '--tsa-chain <pem>',
      description: 'certificates between a root and a token, where tokens lack them',
    },
    {
      flags: '--prml <file>',
      description: 'hold this PRML claim against the plan, and against its own rules',
    },
    {
      flags: '--repository <folder>',
      description: 'a git repository: was the manifest committed before the results?',
    },
    {
      flags: '--results <commit>',
      description: 'the commit of the results, when none holds the report, a checkpoint or the head',
    },
  ],
  examples: [
    'boundbook audit',
    'boundbook audit demo --report report.json',
    'boundbook audit demo --head 28600:3f5a90c1… --json',
    'boundbook audit bundle.tar --head 28600:3f5a90c1…',
    'boundbook audit demo --since june.note --key example.org/eval+1c2d3e4f+AbC… --policy witnesses.txt',
    'boundbook audit demo --report report.json --repository .',
    'boundbook audit demo --prml adopt.prml.yaml',
    'boundbook audit demo --report report.json --key planner+1f2e3d4c+AfX… --tsa-ca tsa-root.pem',
  ],
  next: 'Publish the head, so that others can hold you to it.',
  run: async ([selector], options, { root }) => {
    const { audit, auditBundle } = await import('../audit/audit.js');
    const { renderAudit } = await import('../audit/render.js');
    const { toJson } = await import('../audit/result.js');
    const { assertNoDisclosure, auditOptions, bundleAt, disclosedOption } = await import(
      './audit-options.js'
    );
    const asked = await auditOptions(root, options);
    const { claim, ledger } = asked;
    const bundle = await bundleAt(root, selector, asked);
    if (bundle === null) assertNoDisclosure(options);
    if (claim !== undefined && bundle === null && ledger === undefined) {
      const { claimWithoutLedger } = await import('./claim-check.js');
      const alone = await claimWithoutLedger(root, selector, claim);
      if (alone !== null) return alone;
    }
    const result =
      bundle === null
        ? await audit(root, selector, asked).catch((error: unknown) => noRunYet(error, ledger))
        : await auditBundle(bundle, { ...asked, ...(await disclosedOption(root, options)) });
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
