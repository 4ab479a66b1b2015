import type { Exported } from '../audit/bundle/export.js';
import type { CommandDefinition, OptionValue } from './command.js';
import type { ClaimExport } from './export-claim.js';

export const command: CommandDefinition = {
  name: 'export',
  args: '[manifest]',
  summary: 'write a bundle: everything that a stranger needs to audit a ledger, in one folder or tar',
  options: [
    {
      flags: '--out <path>',
      description: 'the new folder of the bundle, or with --prml the new file of the claim',
      required: true,
    },
    { flags: '--tar <file>', description: 'also a new tar of it; the same bundle gives the same bytes' },
    {
      flags: '--report <file>',
      description: 'a report to take along instead of the one that is built now; can be given several times',
      repeatable: true,
    },
    {
      flags: '--redact <what>',
      description: 'tasks, answers, sha256:… (with commas): replace these contents by salted commitments',
    },
    { flags: '--prml <decision>', description: 'write this declared decision as a PRML claim instead' },
    { flags: '--producer <id>', description: 'who makes the claim: a domain name, ORCID or account' },
    {
      flags: '--linkage <file>',
      description: 'with --prml: also the record of the run (after unblinding with the result)',
    },
    {
      flags: '--before-unblinding <reason>',
      description: 'export although outcomes are blinded: the ledger notes it as a deviation of all slots',
    },
  ],
  examples: [
    'boundbook export --out bundle',
    'boundbook export obme-final --out obme-bundle --tar obme-bundle.tar',
    'boundbook export --out public-bundle --redact tasks,answers',
    'boundbook export --prml adopt --producer example.org --out adopt.prml.yaml',
  ],
  next: 'boundbook audit FOLDER_OR_TAR, anywhere; publish the digest of the bundle.',
  run: async ([selector], options, { root, now }) => {
    const { exportBundle } = await import('../audit/bundle/export.js');
    const { parseRedaction } = await import('../audit/bundle/redaction.js');
    const { listOption, textOption } = await import('./options.js');
    const claim = await claimRequest(options);
    if (claim !== null) {
      const { exportClaim } = await import('./export-claim.js');
      return exportClaim(root, selector, claim);
    }
    const tar = textOption(options.tar, '--tar');
    const redact = textOption(options.redact, '--redact');
    const beforeUnblinding = textOption(options.beforeUnblinding, '--before-unblinding');
    const settings = {
      out: textOption(options.out, '--out') ?? '',
      reports: listOption(options.report, '--report'),
      ...(tar === undefined ? {} : { tar }),
      ...(redact === undefined ? {} : { redact: parseRedaction(redact) }),
      ...(beforeUnblinding === undefined ? {} : { beforeUnblinding }),
    };
    const exported = await exportBundle(root, selector, settings, now);
    return { text: await exportText(exported), json: exportJson(exported) };
  },
};

/** What to claim, when a claim is asked for. @throws {BoundbookError} USAGE for flags that do not go together */
async function claimRequest(options: Readonly<Record<string, OptionValue>>): Promise<ClaimExport | null> {
  const asked = ['prml', 'producer', 'linkage'].some((name) => options[name] !== undefined);
  if (!asked) return null;
  const { BoundbookError } = await import('../core/errors.js');
  const { textOption } = await import('./options.js');
  const decision = textOption(options.prml, '--prml');
  const producer = textOption(options.producer, '--producer');
  const surplus = ['tar', 'report', 'redact', 'beforeUnblinding'].filter(
    (name) => options[name] !== undefined,
  );
  if (decision === undefined || producer === undefined || surplus.length > 0) {
    const message =
      surplus.length > 0
        ? `--${flagOf(surplus[0] ?? '')} is about a bundle and does not go with --prml`
        : 'a claim needs both --prml DECISION and --producer ID';
    throw new BoundbookError('USAGE', message, {
      hint: 'For example: --prml adopt --producer example.org --out adopt.prml.yaml',
    });
  }
  const out = textOption(options.out, '--out') ?? '';
  return { decision, producer, out, linkage: textOption(options.linkage, '--linkage') ?? null };
}

/** A flag as it is written, from the name of its option. */
function flagOf(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function exportJson({ manifest, bundle, folder, tar, head, objects, redaction }: Exported) {
  return {
    schema: 'boundbook/export/1',
    bundle,
    folder,
    tar: tar === null ? null : { file: tar.file, size: tar.size, digest: tar.digest },
    manifest: manifest.digest,
    head: { ...head },
    objects,
    redaction: redaction === null ? null : { ...redaction },
  };
}

async function exportText({
  manifest,
  bundle,
  folder,
  tar,
  head,
  objects,
  redaction,
}: Exported): Promise<string> {
  const { labelled } = await import('./manifest-output.js');
  const { GUESSABLE_BYTES } = await import('../audit/bundle/redaction.js');
  const rows: [string, string][] = [
    ['bundle', folder],
    ['identity', bundle],
    ['manifest', manifest.digest],
    ['ledger', objects === null ? `${head.size} entries` : `${head.size} entries, ${objects} objects`],
    ['root', head.root],
  ];
  if (tar !== null) rows.push(['tar', tar.file], ['sha256sum', tar.digest.slice('sha256:'.length)]);
  if (redaction !== null) {
    rows.push(
      ['redacted', `${redaction.objects} objects`],
      ['salts', `${redaction.salts} (private: it opens the commitments; never part of the bundle)`],
    );
  }
  const lines = [labelled(rows)];
  if (redaction !== null && redaction.guessable > 0) {
    lines.push(
      `${redaction.guessable} redacted objects have fewer than ${GUESSABLE_BYTES} bytes: entries hold their unsalted digests, so that whoever guesses such a content can confirm the guess.`,
    );
  }
  lines.push(`Next: boundbook audit ${tar?.file ?? folder}`);
  return lines.join('\n');
}
