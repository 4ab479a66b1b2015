import { canonicalBytes } from '../core/canonical-json.js';
import type { Findings } from './finding.js';
import type { ReportFile } from './report-audit.js';
import { auditCommitOrder, type CommitOrderVerdict } from './repository/commit-order.js';
import type { AuditSource } from './source.js';

/** A git repository that holds manifest and results. */
export interface GivenRepository {
  readonly folder: string;
  /** The commit of the results, where a person names it. */
  readonly results: string | null;
}

/** The git check, when a repository was given. Results are a report, else the newest checkpoint, else a head. */
export async function compareCommits(
  repository: GivenRepository | undefined,
  source: Pick<AuditSource, 'identified' | 'notes' | 'states'>,
  reports: readonly ReportFile[],
  findings: Findings,
): Promise<CommitOrderVerdict> {
  const { identified, notes } = source;
  if (repository === undefined || identified === null) return { order: [], notChecked: [] };
  const results = [
    ...reports.map(({ name, bytes }) => ({ label: `the report ${name}`, bytes })),
    ...notes.toReversed().map(({ name, bytes }) => ({ label: `the checkpoint ${name}`, bytes })),
    ...source.states.map(({ name, bytes }) => ({ label: name, bytes })),
  ];
  const manifest = canonicalBytes(identified.manifest);
  const { folder, results: commit } = repository;
  return auditCommitOrder({ folder, manifest, results, commit }, findings);
}
