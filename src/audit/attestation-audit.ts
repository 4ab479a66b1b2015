import { canonicalText } from '../core/canonical-json.js';
import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { checkpointOf } from '../ledger/checkpoint.js';
import { ATTESTATION_FOLDER, type EnvelopeFile, type ResponseFile } from '../manifest/attestations.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import { readReport } from '../report/read-report.js';
import type { VerifierKey } from '../signing/keys.js';
import { readTimestamp, SHA256_OID } from '../signing/timestamp-token.js';
import type { CheckpointMark } from './checkpoint-trail.js';
import type { Findings } from './finding.js';
import type { LedgerAudit } from './ledger-audit.js';
import { type OrderFacts, type ProvedTimes, provedOrder } from './order.js';
import type { ReportFile } from './report-audit.js';
import { judgeSignatures, type SignedFile } from './signatures.js';
import type { AuditSource } from './source.js';
import { type Authority, judgePairs, type Stamp, type Token, tokenOf, verifyTokens } from './stamps.js';

/** Whom the reader trusts. Nothing of it comes from what is audited. */
export interface AttestationTrust {
  readonly keys: readonly VerifierKey[];
  readonly authority: Authority | null;
}

export interface AttestationSetting {
  readonly source: Pick<AuditSource, 'attestations' | 'identified' | 'lineage' | 'notes'>;
  readonly audit: Pick<LedgerAudit, 'checkpoints' | 'firstAttempt' | 'fold'>;
  /** The report whose time is asked for first. */
  readonly reports: readonly ReportFile[];
  /** A token that an entry names, from the objects; null when it is not at hand. */
  readonly readToken: (digest: Digest, seq: number) => Buffer | null;
  readonly findings: Findings;
}

export interface AttestationVerdict {
  readonly times: ProvedTimes;
  readonly checked: readonly string[];
  readonly order: readonly string[];
  readonly notChecked: readonly string[];
}

/**
 * Judges signatures and time stamps over manifest, report and checkpoints, and says what order in time follows.
 *
 * @throws {BoundbookError} OPENSSL_UNAVAILABLE when time stamps are to be verified
 */
export async function auditAttestations(
  setting: AttestationSetting,
  trust: AttestationTrust,
): Promise<AttestationVerdict> {
  const { source, findings } = setting;
  const { all, damaged } = source.attestations;
  for (const { file, error } of damaged) {
    const where = { file: `${ATTESTATION_FOLDER}/${file}` };
    findings.add({ code: 'ATTESTATION_INVALID', where, message: error.message });
  }
  judgePairs(all, findings);
  const envelopes = all.filter((one): one is EnvelopeFile => one.kind === 'envelope');
  const keys = trust.keys.filter(({ type }) => type === 'ed25519');
  const signatures = judgeSignatures(envelopes, signedFiles(setting), keys, findings);
  const notes = notesOf(setting);
  const named = namedTokens(setting);
  const stamped = stampedTokens(setting, notes);
  const verdict =
    trust.authority === null ? null : await verifyTokens([...stamped, ...named], trust.authority, findings);
  const facts = orderFacts(setting, notes, verdict?.stamps ?? null, {
    plan: stamped.some(({ subject }) => subject === source.identified?.digest),
    named: named.length > 0,
  });
  const order = provedOrder(facts);
  for (const note of order.notes) findings.add(note);
  const count = verdict?.stamps.size ?? 0;
  return {
    times: order.times,
    checked: [
      ...signatures.checked,
      ...(count === 0 ? [] : [`${count} time ${count === 1 ? 'stamp' : 'stamps'} by the given authority`]),
    ],
    order: order.lines,
    notChecked: [
      ...signatures.notChecked,
      ...(verdict?.notChecked ?? unverified(stamped.length + named.length)),
      ...order.notChecked,
    ],
  };
}

function unverified(count: number): string[] {
  return count === 0 ? [] : [`${count} time stamps: no authority was given (--tsa-ca PEM)`];
}

/** The files that a signature may be about. */
function signedFiles({ source, reports }: AttestationSetting): ReadonlyMap<Digest, SignedFile> {
  const files = new Map<Digest, SignedFile>();
  const add = ({ manifest, digest }: IdentifiedManifest, label: string): void => {
    files.set(digest, { label, attestable: { kind: 'manifest', digest, name: manifest.name, manifest } });
  };
  for (const one of source.lineage) add(one, `the earlier manifest ${one.digest}`);
  if (source.identified !== null) add(source.identified, 'the manifest');
  for (const report of reports) {
    const identity = reportIdentity(report);
    if (identity === null) continue;
    const { digest } = identity;
    files.set(digest, {
      label: `the report ${report.name}`,
      attestable: { kind: 'report', digest, name: report.name, report: identity },
    });
  }
  return files;
}

/** null for a report in another form, which nothing can be signed about. */
function reportIdentity({ bytes, name }: ReportFile) {
  try {
    return readReport(bytes, name);
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}

/** Sizes of checkpoints by the digest of their notes, entries and files alike, where the ledger bears them out. */
function notesOf({ source, audit }: AttestationSetting): ReadonlyMap<Digest, number> {
  const marks = new Map(audit.checkpoints.map((mark) => [mark.size, mark]));
  const kept = audit.checkpoints.flatMap(({ note }) => (note === null ? [] : [Buffer.from(note, 'utf8')]));
  const notes = new Map<Digest, number>();
  for (const bytes of [...kept, ...source.notes.map((one) => one.bytes)]) {
    const mark = markOf(bytes, marks);
    if (mark !== null) notes.set(digestOf(bytes), mark.size);
  }
  return notes;
}

/** What a note says about this very ledger; its signatures do not matter for what existed when it was stamped. */
function markOf(note: Buffer, marks: ReadonlyMap<number, CheckpointMark>): CheckpointMark | null {
  try {
    const { size, root } = checkpointOf(note);
    const mark = marks.get(Number(size));
    return mark !== undefined && mark.root === root.toString('hex') ? mark : null;
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}

/** The tokens over manifest, report, earlier manifests and checkpoints. */
function stampedTokens(
  { source, reports }: AttestationSetting,
  notes: ReadonlyMap<Digest, number>,
): readonly Token[] {
  const subjects = [
    source.identified?.digest,
    ...reports.map(({ bytes }) => digestOf(bytes)),
    ...source.lineage.map(({ digest }) => digest),
    ...notes.keys(),
  ];
  const responses = source.attestations.all.filter((one): one is ResponseFile => one.kind === 'response');
  return subjects.flatMap((subject) =>
    responses.filter((response) => response.subject === subject).map((response) => tokenOf(response)),
  );
}

/** The tokens that entries before the first attempt name. Tokens named later bound no attempt. */
function namedTokens({ audit, readToken, findings }: AttestationSetting): readonly Token[] {
  const { firstAttempt, checkpoints } = audit;
  if (firstAttempt === null) return [];
  return checkpoints
    .filter(({ size }) => size < firstAttempt.seq)
    .flatMap(({ size, timestamps }) =>
      timestamps.flatMap((digest, i) => {
        const bytes = readToken(digest, size);
        if (bytes === null) return [];
        const where = { seq: size, pointer: `/timestamps/${i}`, object: digest };
        try {
          const { info } = readTimestamp(bytes);
          // Whatever was stamped: it is the token that could not be foretold.
          if (info.hash !== SHA256_OID || info.digest.length !== 32) return [];
          const subject: Digest = `sha256:${info.digest.toString('hex')}`;
          return [{ bytes, subject, where, label: digest }];
        } catch (error) {
          if (!(error instanceof BoundbookError)) throw error;
          findings.add({ code: 'ATTESTATION_INVALID', where, message: error.message });
          return [];
        }
      }),
    );
}

function orderFacts(
  { source, audit, reports }: AttestationSetting,
  notes: ReadonlyMap<Digest, number>,
  stamps: ReadonlyMap<Digest, Stamp> | null,
  present: OrderFacts['present'],
): OrderFacts {
  const { identified } = source;
  const protocol = identified === null ? null : canonicalText(identified.manifest.protocol);
  return {
    manifest:
      identified === null ? null : { digest: identified.digest, created: identified.manifest.created },
    lineage: source.lineage.map(({ manifest, digest }) => ({
      digest,
      name: manifest.name,
      revision: manifest.revision,
      samePlan: canonicalText(manifest.protocol) === protocol,
    })),
    report: reports[0] === undefined ? null : digestOf(reports[0].bytes),
    firstAttempt: audit.firstAttempt,
    carries: audit.fold?.opened?.carries != null,
    marks: audit.checkpoints,
    notes,
    stamps,
    present,
  };
}
