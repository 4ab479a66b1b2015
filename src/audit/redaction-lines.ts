import type { ObjectRole } from '../ledger/mentions.js';
import type { LedgerAudit } from './ledger-audit.js';

const ROLES: Readonly<Record<ObjectRole, string>> = {
  manifest: 'manifests',
  task_file: 'task files',
  service: 'statements of services',
  request: 'requests',
  answer: 'answers, reports and outputs',
  timestamp: 'time-stamp tokens',
  account: 'accounts of a scheduler',
  grader: 'corrected graders',
};

/**
 * What redaction keeps from being seen, and from being checked, line by line (law 11).
 *
 * @param redacted number of redacted objects by what they are to the entries
 */
export function redactionLines(
  { fold, evidence, bareTaskSets }: LedgerAudit,
  redacted: ReadonlyMap<ObjectRole, number>,
): string[] {
  const visible = fold?.outcomesVisible ?? false;
  const lines = [...redacted].map(([role, count]) =>
    // Equal answers are one object, so that their number tells of answers (law 8).
    visible || role !== 'answer'
      ? `redacted: the contents of ${count} ${ROLES[role]}`
      : `redacted: the contents of ${ROLES[role]}`,
  );
  if (bareTaskSets.length > 0) {
    lines.push(
      `redacted: fields of the tasks in ${bareTaskSets.join(', ')}, and ids of tasks there that no queue uses`,
    );
  }
  return [...lines, ...(evidence?.unchecked.lines(visible) ?? [])];
}
