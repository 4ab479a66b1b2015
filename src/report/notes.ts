import type { ReportInput } from './report-input.js';
import type { Counts, Visibility } from './value.js';
import { plural } from './words.js';

/** The sentences at the head of a report: what kind of report it is. */
export function notesOf(input: ReportInput, visibility: Visibility, total: Counts): readonly string[] {
  return [
    ...visibilityNotes(visibility),
    ...(input.protocol.blinding === 'none'
      ? ['The protocol declares no blinding: outcomes could be seen by arm while the plan was running.']
      : []),
    ...(input.ledger.violations > 0
      ? [
          `The ledger breaks its own rules in ${plural(input.ledger.violations, 'place')}; nothing in this report confirms ` +
            'anything. Run boundbook audit.',
        ]
      : []),
    ...(input.manifest.pending.length > 0
      ? [`The manifest has pending items: ${input.manifest.pending.join(', ')}.`]
      : []),
    coverageNote(total),
  ];
}

function visibilityNotes(visibility: Visibility): readonly string[] {
  switch (visibility) {
    case 'blinded':
      return [
        'Outcomes are blinded: this report shows coverage and costs only, and nothing by arm. boundbook unblind opens them.',
      ];
    case 'unblinded_partially':
      return [
        'Outcomes were unblinded before the plan was complete: everything in this report is exploratory, and stays so.',
      ];
    case 'unblinded':
      return [];
    default:
      return visibility satisfies never;
  }
}

function coverageNote({ planned, settled, unresolved, pending }: Counts): string {
  const open = unresolved + pending;
  return open === 0
    ? `All ${plural(planned, 'planned slot')} are settled.`
    : `${settled} of ${plural(planned, 'planned slot')} are settled, ${unresolved} unresolved, ${pending} pending.`;
}
