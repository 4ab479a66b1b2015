import { basename } from 'node:path';
import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { type Checkpoint, checkpointOf } from '../ledger/checkpoint.js';
import { type Manifest, parseManifest, readManifestFileName, saysManifest } from '../manifest/manifest.js';
import {
  type ManifestPredicate,
  manifestStatement,
  type ReportPredicate,
  reportStatement,
  type Statement,
} from '../signing/statement.js';
import { type ReportIdentity, readReport } from './read-report.js';

/** A file that can be signed or time-stamped, as its bytes say. Pure: bytes in, value out. */
export type Attestable = { readonly digest: Digest; readonly name: string } & (
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'report'; readonly report: ReportIdentity }
  | { readonly kind: 'checkpoint'; readonly checkpoint: Checkpoint }
);

/**
 * Reads a manifest, a JSON report or a checkpoint note. Signatures of a note are not looked at.
 *
 * @param name file name or path; a manifest's own name must belong to its bytes
 * @throws {BoundbookError} MANIFEST_ALTERED, REPORT_INVALID or NOTE_INVALID for what begins like one of the three and is
 * none; USAGE for anything else
 */
export function readAttestable(bytes: Uint8Array, name: string): Attestable {
  const common = { digest: digestOf(bytes), name: basename(name) };
  const start = Buffer.from(bytes.subarray(0, 100_000)).toString('latin1');
  if (start.startsWith('{')) {
    if (/"schema"\s*:\s*"boundbook\/report\//.test(Buffer.from(bytes).toString('latin1'))) {
      return { ...common, kind: 'report', report: readReport(bytes, name) };
    }
    if (readManifestFileName(common.name) !== null || saysManifest(bytes))
      return { ...common, kind: 'manifest', manifest: parseManifest(bytes, name).manifest };
  }
  if (start.includes('\n\n\u00e2\u0080\u0094 ')) {
    return { ...common, kind: 'checkpoint', checkpoint: checkpointOf(bytes) };
  }
  throw new BoundbookError('USAGE', `${name} is neither a manifest nor a JSON report nor a checkpoint note`, {
    hint: 'A report is written for this with `boundbook report --format json --out FILE`.',
  });
}

/**
 * What a signer says about a manifest or a report.
 *
 * @throws {BoundbookError} USAGE for a checkpoint, which is a signed note by itself.
 */
export function statementAbout(attestable: Attestable): Statement {
  switch (attestable.kind) {
    case 'manifest':
      return manifestStatement(attestable, manifestPredicate(attestable.manifest));
    case 'report':
      return reportStatement(attestable, reportPredicate(attestable.report));
    case 'checkpoint':
      throw new BoundbookError('USAGE', `${attestable.name} is a checkpoint, which is signed already`, {
        hint: '`boundbook checkpoint` adds signatures to it; `boundbook timestamp` stamps it.',
      });
    default:
      return attestable satisfies never;
  }
}

function manifestPredicate(manifest: Manifest): ManifestPredicate {
  const { name, revision, sequence, execution_ready, plan, parent, supersedes } = manifest;
  const slots = plan === null ? null : { count: plan.count, digest: plan.digest };
  return { name, revision, sequence, execution_ready, slots, parent, supersedes };
}

function reportPredicate({ manifest, ledger, slots, unblinded }: ReportIdentity): ReportPredicate {
  return { manifest, ledger, slots, unblinded };
}
