import { resolve } from 'node:path';
import { assertOutsideRecord } from '../audit/bundle/place.js';
import { canonicalText } from '../core/canonical-json.js';
import { digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { createFileDurable, exists } from '../core/files.js';
import type { JsonValue } from '../core/json.js';
import { type Book, openBook } from '../ledger/book.js';
import { loadManifest } from '../manifest/select.js';
import { inForce, requireSuperseded, successorOf } from '../manifest/succession.js';
import { readWorkspace, type StoredManifest } from '../manifest/workspace.js';
import { beforeRunInput } from '../report/before-run.js';
import { buildReport } from '../report/build.js';
import { bookInput } from '../report/input.js';
import { formatClaim, hashClaim, type PrmlClaim } from '../report/prml/claim.js';
import { claimOf, observedOf, satisfies } from '../report/prml/decision.js';
import { type RunRecord, runRecord } from '../report/prml/run-record.js';
import { claimSource, reportedBound } from '../report/prml/source.js';
import type { ReportInput } from '../report/report-input.js';
import type { Report } from '../report/value.js';
import type { CommandResult } from './command.js';
import { labelled } from './manifest-output.js';

export interface ClaimExport {
  /** Id of a declared decision. */
  readonly decision: string;
  readonly producer: string;
  /** The new file of the claim. */
  readonly out: string;
  /** The new file of the linkage record, if one is wanted. */
  readonly linkage: string | null;
}

/**
 * Writes a declared decision as a PRML claim, and what was observed as a linkage record. The claim holds what the plan
 * fixed and nothing else, its amendment included, so that it is the same before and after the run; observed figures are shown and written only
 * after unblinding (law 8).
 *
 * @throws {BoundbookError} USAGE, CLAIM_UNSUPPORTED, FILE_EXISTS; as `loadManifest` and `openBook`
 */
export async function exportClaim(
  root: string,
  selector: string | undefined,
  request: ClaimExport,
): Promise<CommandResult> {
  for (const path of [request.out, request.linkage])
    if (path !== null) assertOutsideRecord(root, resolve(root, path));
  const stored = await loadManifest(root, selector);
  const { manifests } = await readWorkspace(root);
  const superseded = requireSuperseded(stored.manifest, manifests);
  const successor = successorOf(stored, manifests) === null ? null : inForce(stored, manifests);
  const book = await bookOf(root, stored);
  try {
    const input = book === null ? await inputBefore(root, stored, superseded) : bookInput(book, superseded);
    const report = buildReport(input);
    const source = claimSource(stored, input.taskIds, request.decision, request.producer);
    const claim = claimOf(source);
    const bound = reportedBound(report, source.metric);
    const observed = bound === null ? null : observedOf(claim.comparator, claim.threshold, bound);
    const record = request.linkage === null ? null : recordOf(claim, book, report, observed);
    await write(root, request, claim, record);
    const outcome =
      observed === null
        ? null
        : { observed, passes: satisfies(claim, observed), label: labelOf(report, request.decision) };
    return result(stored, request, { claim, record, outcome, amendment: report.amendment, successor });
  } finally {
    book?.close();
  }
}

async function bookOf(root: string, stored: StoredManifest): Promise<Book | null> {
  try {
    return await openBook(root, stored, 'read');
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'LEDGER_NOT_FOUND') return null;
    throw error;
  }
}

async function inputBefore(
  root: string,
  stored: StoredManifest,
  superseded: readonly StoredManifest[],
): Promise<ReportInput> {
  const { plan } = stored.manifest;
  if (plan !== null) return beforeRunInput(root, stored, plan, superseded);
  throw new BoundbookError(
    'CLAIM_UNSUPPORTED',
    'a task file is not bound yet, so that nothing can be claimed of it',
    {
      hint: 'Bind it first: boundbook bind.',
    },
  );
}

function recordOf(claim: PrmlClaim, book: Book | null, report: Report, observed: number | null): RunRecord {
  if (book === null) {
    throw new BoundbookError('CLAIM_UNSUPPORTED', 'there is no run yet that a record could be about', {
      hint: 'Write the claim alone now, and the record after `boundbook run`.',
    });
  }
  const found = observed === null ? null : { observed, report: digestOf(canonicalText(report)) };
  return runRecord(claim, book.fold, entriesOf(book), found);
}

function* entriesOf({ store }: Book) {
  for (const { entry } of store.entries()) yield entry;
}

/** law 9: what the decision is worth, as the report labels it. */
function labelOf(report: Report, decision: string): string {
  const found = report.results?.flatMap(({ decisions }) => decisions).find(({ id }) => id === decision);
  return found?.label ?? 'exploratory';
}

/** Neither is written when one of the names is taken. */
async function write(
  root: string,
  { out, linkage }: ClaimExport,
  claim: PrmlClaim,
  record: RunRecord | null,
): Promise<void> {
  for (const name of [out, linkage]) {
    if (name === null || !(await exists(resolve(root, name)))) continue;
    throw new BoundbookError('FILE_EXISTS', `${name} exists already`, { hint: 'Choose another name.' });
  }
  await createFileDurable(resolve(root, out), formatClaim(claim));
  if (linkage !== null && record !== null) await createFileDurable(resolve(root, linkage), record.bytes);
}

interface ExportedClaim {
  readonly claim: PrmlClaim;
  readonly record: RunRecord | null;
  readonly outcome: { readonly observed: number; readonly passes: boolean; readonly label: string } | null;
  readonly amendment: Report['amendment'];
  /** The plan that is in force instead (P22). */
  readonly successor: StoredManifest | null;
}

function result(
  stored: StoredManifest,
  { decision, out, linkage }: ClaimExport,
  { claim, record, outcome, amendment, successor }: ExportedClaim,
): CommandResult {
  const condition = `${claim.metric} ${claim.comparator} ${claim.threshold}`;
  const rows: [string, string][] = [
    ['claim', out],
    ['hash', hashClaim(claim)],
    ['decision', `${decision}: ${condition}`],
    ['observed', outcome === null ? 'not before unblinding' : `${outcome.observed}, ${outcome.label}`],
  ];
  if (outcome !== null) rows.push(['holds', outcome.passes ? 'yes' : 'no']);
  if (amendment === 'post hoc') {
    rows.push(['post hoc', 'the plan was changed after outcomes were open: this claim confirms nothing']);
  } else if (amendment !== null) rows.push(['amended', 'before unblinding']);
  if (successor !== null) {
    const { file, manifest } = successor;
    rows.push(['superseded', `by revision ${manifest.revision}, ${file}: no plan in force claims this`]);
  }
  if (linkage !== null && record !== null) rows.push(['record', `${linkage} (${record.kind})`]);
  const json: JsonValue = {
    schema: 'boundbook/claim-export/1',
    manifest: stored.digest,
    claim: { file: out, hash: hashClaim(claim), id: claim.claim_id },
    decision,
    condition,
    amendment,
    superseded_by: successor === null ? null : successor.digest,
    observed: outcome === null ? null : { ...outcome },
    record: linkage === null || record === null ? null : { file: linkage, kind: record.kind },
  };
  return { text: `${labelled(rows)}\nNext: boundbook audit --prml ${out}`, json };
}
