import { canonicalText } from '../core/canonical-json.js';
import type { Digest } from '../core/digest.js';
import { parseOrigin } from '../ledger/origin.js';
import { ATTESTATION_FOLDER, type EnvelopeFile } from '../manifest/attestations.js';
import { type Attestable, statementAbout } from '../report/attestable.js';
import { judgeEnvelope, keyHint } from '../signing/dsse.js';
import type { VerifierKey } from '../signing/keys.js';
import type { Findings } from './finding.js';

/** How many envelopes are judged; a hostile bundle can hold as many as it likes. */
const MAX_ENVELOPES = 200;

/** A file that signatures may be about, and what it is called in sentences. */
export interface SignedFile {
  readonly label: string;
  readonly attestable: Attestable;
}

export interface SignatureVerdict {
  readonly checked: readonly string[];
  readonly notChecked: readonly string[];
}

/**
 * Judges the signatures over some files by keys that the reader gave. A signature by a key that is not known is worth
 * nothing and is named; one that a known key did not make, and a statement that the signed file contradicts, are
 * findings.
 */
export function judgeSignatures(
  envelopes: readonly EnvelopeFile[],
  files: ReadonlyMap<Digest, SignedFile>,
  keys: readonly VerifierKey[],
  findings: Findings,
): SignatureVerdict {
  const checked: string[] = [];
  const notChecked: string[] = [];
  // A key under the origin of one ledger signs checkpoints.
  const silent = new Set(keys.filter(({ name }) => parseOrigin(name) === null));
  const about = envelopes.flatMap((envelope) => {
    const file = files.get(envelope.subject);
    return file === undefined ? [] : [{ envelope, file }];
  });
  for (const { envelope, file } of about.slice(0, MAX_ENVELOPES)) {
    const { verified, failed, unknown } = judgeEnvelope(envelope.envelope, keys);
    const path = `${ATTESTATION_FOLDER}/${envelope.file}`;
    for (const key of failed) {
      findings.add({
        code: 'SIGNATURE_FALSE',
        where: { file: path },
        message: `the signature over ${file.label} names the key ${keyHint(key)}, which did not make it`,
        evidence: { key: keyHint(key), subject: envelope.subject },
      });
    }
    if (verified.length > 0) compareStatement(envelope, file, path, findings);
    for (const key of verified) {
      silent.delete(key);
      checked.push(`the signature of ${keyHint(key)} over ${file.label} (${path})`);
    }
    if (unknown.length > 0) {
      const names = [...new Set(unknown)].slice(0, 5).map((hint) => JSON.stringify(hint.slice(0, 100)));
      notChecked.push(
        `whether ${file.label} was signed by ${names.join(', ')}: no such key was given (--key VKEY; ${path})`,
      );
    }
  }
  if (about.length > MAX_ENVELOPES) {
    notChecked.push(`${about.length - MAX_ENVELOPES} more signatures: ${MAX_ENVELOPES} were looked at`);
  }
  for (const key of silent) {
    notChecked.push(`whether ${keyHint(key)} stands behind manifest or report: it signed neither here`);
  }
  return { checked, notChecked };
}

/** What was signed must be what the file says of itself; the subject's name is a label. */
function compareStatement(
  { statement }: EnvelopeFile,
  { label, attestable }: SignedFile,
  path: string,
  findings: Findings,
): void {
  const due = statementAbout(attestable);
  const { predicateType, predicate } = statement;
  if (predicateType === due.predicateType && canonicalText(predicate) === canonicalText(due.predicate))
    return;
  findings.add({
    code: 'STATEMENT_DIFFERS',
    where: { file: path },
    message: `the signed statement says something else than ${label}`,
    evidence: {
      expected: { type: due.predicateType, predicate: due.predicate },
      actual: { type: predicateType, predicate },
    },
  });
}
