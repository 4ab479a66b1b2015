import type { AuditOptions, BundleAuditOptions } from '../audit/audit.js';
import type { ClaimFile } from '../audit/claim.js';
import type { Authority } from '../audit/stamps.js';
import type { CommandDefinition, OptionValue } from './command.js';

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
    const { resolve } = await import('node:path');
    const { readFileBounded } = await import('../core/files.js');
    const { audit, auditBundle } = await import('../audit/audit.js');
    const { textOption } = await import('./options.js');
    const { keyList, policyOption } = await import('./trust.js');
    const { readNote } = await import('./note-file.js');
    const { parseHead } = await import('../audit/head.js');
    const { renderAudit } = await import('../audit/render.js');
    const { toJson } = await import('../audit/result.js');
    const ledger = textOption(options.ledger, '--ledger');
    const head = textOption(options.head, '--head');
    const report = textOption(options.report, '--report');
    const since = textOption(options.since, '--since');
    const policy = await policyOption(options.policy, root);
    const authority = await authorityOption(root, options.tsaCa, options.tsaChain);
    const claim = await claimOption(root, options.prml);
    const settings = {
      ...(claim === null ? {} : { claim }),
      keys: keyList(options.key, '--key'),
      ...(policy === null ? {} : { policy }),
      ...(since === undefined ? {} : { since: { name: since, note: await readNote(since, root) } }),
      ...(authority === null ? {} : { authority }),
      ...(await repositoryOption(root, options.repository, options.results)),
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
    const bundle = await bundleAt(root, selector, ledger);
    if (claim !== null && bundle === null && ledger === undefined) {
      const { claimWithoutLedger } = await import('./claim-check.js');
      const alone = await claimWithoutLedger(root, selector, claim);
      if (alone !== null) return alone;
    }
    const result =
      bundle === null
        ? await audit(root, selector, settings).catch((error: unknown) => noRunYet(error, ledger))
        : await auditBundle(bundle, {
            ...settings,
            ...(await disclosedOption(root, options.object, options.salts)),
          });
    return {
      text: renderAudit(result),
      json: toJson(result),
      ...(result.verdict === 'clean' ? {} : { exitCode: 4 as const }),
    };
  },
};

async function disclosedOption(
  root: string,
  objects: OptionValue,
  salts: OptionValue,
): Promise<Pick<BundleAuditOptions, 'disclosed'>> {
  const { resolve } = await import('node:path');
  const { readFileBounded } = await import('../core/files.js');
  const { listOption, textOption } = await import('./options.js');
  const { parseSalts, readDisclosed } = await import('../audit/bundle/disclosure.js');
  const paths = listOption(objects, '--object').map((path) => resolve(root, path));
  const saltFile = textOption(salts, '--salts');
  if (paths.length === 0 && saltFile === undefined) return {};
  const bytes =
    saltFile === undefined
      ? Buffer.alloc(0)
      : await readFileBounded(resolve(root, saltFile), { maxBytes: MAX_SALTS_BYTES, allowEmpty: true });
  return { disclosed: { files: await readDisclosed(paths), salts: parseSalts(bytes, saltFile ?? '') } };
}

/**
 * The path of a bundle, when that is what is meant: a folder that has an index or is written as a path, or a tar.
 *
 * @throws {BoundbookError} USAGE for a bundle together with a ledger elsewhere
 */
async function bundleAt(
  root: string,
  subject: string | undefined,
  ledger: string | undefined,
): Promise<string | null> {
  if (subject === undefined) return null;
  const { stat } = await import('node:fs/promises');
  const { join, resolve } = await import('node:path');
  const { exists } = await import('../core/files.js');
  const { INDEX_FILE } = await import('../audit/bundle/layout.js');
  const path = resolve(root, subject);
  const isFolder = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  const isBundle = isFolder
    ? subject.includes('/') || (await exists(join(path, INDEX_FILE)))
    : /\.tar(\.[a-z0-9]+)?$/i.test(subject);
  if (!isBundle) return null;
  if (ledger === undefined) return path;
  const { BoundbookError } = await import('../core/errors.js');
  throw new BoundbookError('USAGE', '--ledger does not go with a bundle, which holds its ledger', {
    hint: 'Leave it out.',
  });
}

async function claimOption(root: string, value: OptionValue): Promise<ClaimFile | null> {
  const { resolve } = await import('node:path');
  const { readFileBounded } = await import('../core/files.js');
  const { textOption } = await import('./options.js');
  const { readClaim } = await import('../report/prml/claim.js');
  const name = textOption(value, '--prml');
  if (name === undefined) return null;
  const bytes = await readFileBounded(resolve(root, name), { maxBytes: MAX_CLAIM_BYTES });
  readClaim(bytes, name);
  return { name, bytes };
}

async function repositoryOption(
  root: string,
  repository: OptionValue,
  commit: OptionValue,
): Promise<Pick<AuditOptions, 'repository'>> {
  const { resolve } = await import('node:path');
  const { BoundbookError } = await import('../core/errors.js');
  const { textOption } = await import('./options.js');
  const folder = textOption(repository, '--repository');
  const results = textOption(commit, '--results') ?? null;
  if (folder !== undefined) return { repository: { folder: resolve(root, folder), results } };
  if (results === null) return {};
  throw new BoundbookError(
    'USAGE',
    '--results needs --repository: the commit has to be looked up somewhere',
    {
      hint: 'Name the repository with --repository FOLDER.',
    },
  );
}

/** @throws {BoundbookError} USAGE for a chain without roots and for files that hold no certificate */
async function authorityOption(root: string, ca: OptionValue, chain: OptionValue): Promise<Authority | null> {
  const { BoundbookError } = await import('../core/errors.js');
  const { textOption } = await import('./options.js');
  const [roots, between] = [textOption(ca, '--tsa-ca'), textOption(chain, '--tsa-chain')];
  if (roots !== undefined) {
    return {
      roots: await readCertificates(root, roots),
      chain: between === undefined ? null : await readCertificates(root, between),
    };
  }
  if (between === undefined) return null;
  throw new BoundbookError('USAGE', '--tsa-chain needs --tsa-ca: certificates between prove nothing alone', {
    hint: 'Give the root certificate that you trust with --tsa-ca.',
  });
}

async function readCertificates(root: string, file: string): Promise<Buffer> {
  const { resolve } = await import('node:path');
  const { BoundbookError } = await import('../core/errors.js');
  const { readFileBounded } = await import('../core/files.js');
  const bytes = await readFileBounded(resolve(root, file), { maxBytes: MAX_CERTIFICATE_BYTES });
  if (bytes.includes('-----BEGIN CERTIFICATE-----')) return bytes;
  throw new BoundbookError('USAGE', `${file} holds no certificate in PEM form`, {
    hint: 'Convert it: openssl x509 -inform DER -in FILE -out FILE.pem',
  });
}

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

const MAX_SALTS_BYTES = 256 * 1024 * 1024;
const MAX_CLAIM_BYTES = 100_000;
const MAX_CERTIFICATE_BYTES = 4 * 1024 * 1024;
const MAX_REPORT_BYTES = 256 * 1024 * 1024;
