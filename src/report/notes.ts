import type { LostEntries, ManifestInput, ReportInput } from './report-input.js';
import type { Counts, Visibility } from './value.js';
import { plural } from './words.js';

/** The sentences at the head of a report: what kind of report it is. */
export function notesOf(input: ReportInput, visibility: Visibility, total: Counts): readonly string[] {
  return [
    ...visibilityNotes(visibility),
    ...(input.protocol.blinding === 'none'
      ? ['The protocol declares no blinding: outcomes could be seen by arm while the plan was running.']
      : []),
    ...amendmentNotes(input.manifest),
    ...input.restorations.map(restorationNote),
    ...input.manifest.task_use
      .filter(({ plans }) => plans > 0)
      .map(({ binding, plans }) => `${binding}: ${plural(plans, 'earlier plan')} bound the same task list.`),
    ...(input.ledger.entries === 0 ? ['No ledger yet: nothing was run. boundbook run starts.'] : []),
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

/** P22: what was known when the plan was changed. */
function amendmentNotes({ amendment, supersedes }: ManifestInput): readonly string[] {
  if (amendment === null) return [];
  const { reason, slots_run, settled, unblinded, declared } = amendment;
  return [
    `This plan supersedes ${supersedes ?? 'an earlier one'}${reason === null ? '' : ` (${reason})`}. When it was amended, ` +
      `${plural(slots_run, 'slot')} had run, ${settled} were settled, and outcomes were ${unblinded ? '' : 'not '}unblinded.`,
    ...(declared === null ? [] : [`The author declares further exposure: ${declared}`]),
    ...(unblinded
      ? [
          'A plan that was changed after its outcomes were seen confirms nothing: everything here is exploratory.',
        ]
      : []),
  ];
}

/** Nobody can tell from here what the lost entries held, so that the sentence names the worst. */
function restorationNote({ incarnation, seq, known, lost, reason }: LostEntries): string {
  return (
    `An older copy of the ledger was put back (${reason}): of ${known} entries that were known, the last ${lost} are lost. ` +
    `Incarnation ${incarnation} begins with entry ${seq}. Slots that had been closed in what is lost were run again, and an unblinding among it is not seen here.`
  );
}

function coverageNote({ planned, settled, unresolved, pending }: Counts): string {
  const open = unresolved + pending;
  return open === 0
    ? `All ${plural(planned, 'planned slot')} are settled.`
    : `${settled} of ${plural(planned, 'planned slot')} are settled, ${unresolved} unresolved, ${pending} pending.`;
}
