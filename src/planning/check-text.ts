import type { Protocol } from '../protocol/schema/protocol.js';
import { type ArmTemplate, WORDS } from './arm-templates.js';
import type { PlanCheck } from './check.js';
import { queuesTable } from './queues-table.js';
import { display, renderTable } from './table.js';

/** What `check` prints when a plan holds. */
export function checkText(
  protocol: Protocol,
  path: string,
  check: PlanCheck,
  templates: readonly ArmTemplate[],
): string {
  const parts = [`${path}: ${protocol.name} revision ${protocol.revision} holds.`, queuesTable(check.counts)];
  if (check.precision.length > 0) parts.push(precisionText(check));
  if (check.decisions.length > 0) {
    parts.push(
      check.decisions
        .map(
          (reach) =>
            `decision ${reach.decision}: ${reach.contrast} ${reach.comparator} ${reach.threshold} can be met and can fail ` +
            `(${reach.contrast} lies between ${reach.range.lowest} and ${reach.range.highest})`,
        )
        .join('\n'),
    );
  }
  if (templates.length > 0) parts.push(templatesText(templates));
  if (protocol.pending.length > 0) {
    parts.push(`pending, so that a manifest is not ready to run: ${protocol.pending.join(', ')}`);
  }
  if (check.remarks.length > 0)
    parts.push(check.remarks.map((remark) => `remark: ${remark.message}`).join('\n'));
  parts.push(`Next: boundbook plan ${path}, then boundbook freeze ${path}`);
  return parts.join('\n\n');
}

function precisionText(check: PlanCheck): string {
  return renderTable(
    ['queue', 'tasks x reps', 'assumed accuracy', 'standard error', 'allowed', 'least reps'],
    check.precision.map((row) => [
      row.queue,
      `${display(row.tasks)} x ${display(row.reps)}`,
      String(row.assumedAccuracy),
      row.standardError.toFixed(5),
      String(row.maxStandardError),
      row.leastReps ?? '',
    ]),
  );
}

/** One row an arm: seeds whose prompts are alike share it. */
function templatesText(templates: readonly ArmTemplate[]): string {
  const rows = new Map<string, (string | number)[]>();
  for (const { arm, flag, slot, audit } of templates) {
    const row = [arm, flag, WORDS[slot], audit.template.slice(7, 19)];
    rows.set(row.join('\n'), row);
  }
  return renderTable(['arm', 'enable_thinking', 'reasoning is', 'chat template'], [...rows.values()]);
}
