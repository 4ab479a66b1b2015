import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { AuditOptions, BundleAuditOptions } from '../audit/audit.js';
import { parseSalts, readDisclosed } from '../audit/bundle/disclosure.js';
import { INDEX_FILE } from '../audit/bundle/layout.js';
import type { ClaimFile } from '../audit/claim.js';
import type { GivenRepository } from '../audit/commits.js';
import { parseHead } from '../audit/head.js';
import type { Authority } from '../audit/stamps.js';
import { exists, readFileBounded } from '../core/files.js';
import { readClaim } from '../report/prml/claim.js';
import type { OptionValue } from './command.js';
import { readNote } from './note-file.js';
import { listOption, textOption, usageError } from './options.js';
import { keyList, policyOption } from './trust.js';

const MAX_SALTS_BYTES = 256 * 1024 * 1024;
const MAX_CLAIM_BYTES = 100_000;
const MAX_CERTIFICATE_BYTES = 4 * 1024 * 1024;
const MAX_REPORT_BYTES = 256 * 1024 * 1024;

type Options = Readonly<Record<string, OptionValue>>;

/**
 * What the flags of `audit` ask for, files read.
 *
 * @throws {BoundbookError} USAGE, KEY_INVALID, POLICY_INVALID, CLAIM_INVALID, FILE_NOT_FOUND and the like
 */
export async function auditOptions(root: string, options: Options): Promise<AuditOptions> {
  const ledger = textOption(options.ledger, '--ledger');
  const head = textOption(options.head, '--head');
  const report = textOption(options.report, '--report');
  const since = textOption(options.since, '--since');
  const policy = await policyOption(options.policy, root);
  const authority = await authorityOption(root, options.tsaCa, options.tsaChain);
  const claim = await claimOption(root, options.prml);
  const repository = repositoryOption(root, options.repository, options.results);
  return {
    keys: keyList(options.key, '--key'),
    ...(ledger === undefined ? {} : { ledger }),
    ...(head === undefined ? {} : { head: parseHead(head) }),
    ...(report === undefined ? {} : { report: { name: report, bytes: await readReport(root, report) } }),
    ...(since === undefined ? {} : { since: { name: since, note: await readNote(since, root) } }),
    ...(policy === null ? {} : { policy }),
    ...(authority === null ? {} : { authority }),
    ...(repository === null ? {} : { repository }),
    ...(claim === null ? {} : { claim }),
  };
}

/** Contents that were disclosed beside a redacted bundle. @throws {BoundbookError} USAGE, FILE_NOT_FOUND and the like */
export async function disclosedOption(
  root: string,
  options: Options,
): Promise<Pick<BundleAuditOptions, 'disclosed'>> {
  const paths = listOption(options.object, '--object').map((path) => resolve(root, path));
  const saltFile = textOption(options.salts, '--salts');
  if (paths.length === 0 && saltFile === undefined) return {};
  const bytes =
    saltFile === undefined
      ? Buffer.alloc(0)
      : await readFileBounded(resolve(root, saltFile), { maxBytes: MAX_SALTS_BYTES, allowEmpty: true });
  return { disclosed: { files: await readDisclosed(paths), salts: parseSalts(bytes, saltFile ?? '') } };
}

/** A workspace has all its objects: nothing is disclosed beside it. @throws {BoundbookError} USAGE */
export function assertNoDisclosure(options: Options): void {
  const flag = ['object', 'salts'].find((name) => options[name] !== undefined);
  if (flag === undefined) return;
  throw usageError(
    `--${flag} is only for a bundle, whose contents can be withheld`,
    'Name the folder or tar of a bundle (a folder as ./NAME), or leave the flag out.',
  );
}

/**
 * The path of a bundle, when that is what is meant: a folder that has an index or is written as a path, or a tar.
 *
 * @throws {BoundbookError} USAGE for a bundle together with a ledger elsewhere
 */
export async function bundleAt(
  root: string,
  subject: string | undefined,
  { ledger }: Pick<AuditOptions, 'ledger'>,
): Promise<string | null> {
  if (subject === undefined) return null;
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
  throw usageError('--ledger does not go with a bundle, which holds its ledger', 'Leave it out.');
}

function readReport(root: string, file: string): Promise<Buffer> {
  return readFileBounded(resolve(root, file), { maxBytes: MAX_REPORT_BYTES });
}

async function claimOption(root: string, value: OptionValue): Promise<ClaimFile | null> {
  const name = textOption(value, '--prml');
  if (name === undefined) return null;
  const bytes = await readFileBounded(resolve(root, name), { maxBytes: MAX_CLAIM_BYTES });
  // What is no claim is wrong input, not a finding.
  readClaim(bytes, name);
  return { name, bytes };
}

function repositoryOption(root: string, value: OptionValue, commit: OptionValue): GivenRepository | null {
  const folder = textOption(value, '--repository');
  const results = textOption(commit, '--results') ?? null;
  if (folder !== undefined) return { folder: resolve(root, folder), results };
  if (results === null) return null;
  throw usageError(
    '--results needs --repository: the commit has to be looked up somewhere',
    'Name the repository with --repository FOLDER.',
  );
}

async function authorityOption(root: string, ca: OptionValue, chain: OptionValue): Promise<Authority | null> {
  const [roots, between] = [textOption(ca, '--tsa-ca'), textOption(chain, '--tsa-chain')];
  if (roots !== undefined) {
    return {
      roots: await readCertificates(root, roots),
      chain: between === undefined ? null : await readCertificates(root, between),
    };
  }
  if (between === undefined) return null;
  throw usageError(
    '--tsa-chain needs --tsa-ca: certificates between prove nothing alone',
    'Give the root certificate that you trust with --tsa-ca.',
  );
}

async function readCertificates(root: string, file: string): Promise<Buffer> {
  const bytes = await readFileBounded(resolve(root, file), { maxBytes: MAX_CERTIFICATE_BYTES });
  if (bytes.includes('-----BEGIN CERTIFICATE-----')) return bytes;
  throw usageError(
    `${file} holds no certificate in PEM form`,
    'Convert it: openssl x509 -inform DER -in FILE -out FILE.pem',
  );
}
