import type { CarriedSlots } from '../ledger/carried-slots.js';
import type { LostEntries, ReportInput } from './report-input.js';
import { type AmendmentKind, isNarrower, type Revision } from './revisions.js';
import type { Counts, Visibility } from './value.js';
import { plural } from './words.js';

/** The sentences at the head of a report: what kind of report it is. */
export function notesOf(
  input: ReportInput,
  visibility: Visibility,
  amendment: AmendmentKind | null,
  total: Counts,
): readonly string[] {
  return [
    ...amendmentNotes(input, amendment),
    ...successorNote(input),
    ...visibilityNotes(visibility),
    ...lateNote(input),
    ...(input.protocol.blinding === 'none'
      ? ['The protocol declares no blinding: outcomes could be seen by arm while the plan was running.']
      : []),
    ...input.restorations.map(restorationNote),
    ...input.manifest.task_use
      .filter(({ plans }) => plans > 0)
      .map(({ binding, plans }) => taskUseNote(binding, plans, input.revisions.length)),
    ...(input.ledger.entries === 0 ? ['No ledger yet: nothing was run. boundbook run starts.'] : []),
    coverageNote(total),
  ];
}

/** A superseded revision is a plan of its own: it has bound the list before. */
function taskUseNote(binding: string, plans: number, revisions: number): string {
  const own = revisions === 0 ? '' : ', superseded revisions of this one among them,';
  return `${binding}: ${plural(plans, 'earlier plan')}${own} bound the same task list.`;
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

/** P22: what kind of plan this is, when it was amended. */
function amendmentNotes(
  { revisions, carried }: ReportInput,
  amendment: AmendmentKind | null,
): readonly string[] {
  if (amendment === null) return [];
  return [
    amendment === 'post hoc'
      ? 'Post hoc: this plan was changed after outcomes were open. It confirms nothing: everything here is exploratory.'
      : `This plan was amended before unblinding${isNarrower(revisions) ? ': its claim is narrower than the one that was frozen first' : ''}.`,
    ...revisions.map(exposureNote),
    ...(carried === null ? [] : [carriedNote(carried)]),
  ];
}

function exposureNote({ revision, supersedes, reason, exposure }: Revision): string {
  const { slots_run, settled, unblinded, declared } = exposure;
  return (
    `Revision ${revision} supersedes ${supersedes} (${reason}). When it was amended, ${plural(slots_run, 'slot')} had run, ` +
    `${settled} were settled, and outcomes were ${unblinded ? '' : 'not '}open.` +
    (declared === null ? '' : ` The author declares further exposure: ${declared}`)
  );
}

function carriedNote({ manifest, settled, unresolved, again, dropped }: CarriedSlots): string {
  return (
    `${plural(settled + unresolved, 'slot')} (${settled} settled, ${unresolved} unresolved) were closed under the superseded plan ` +
    `${manifest} and are carried, not run again.` +
    (again === 0 ? '' : ` ${again} that were closed there are executed again under changed conditions.`) +
    (dropped === 0 ? '' : ` ${dropped} that were closed there are not part of this plan.`)
  );
}

function successorNote({ successor }: ReportInput): readonly string[] {
  if (successor === null) return [];
  const { manifest, revision, reason, entry } = successor;
  return [
    `This plan was superseded: revision ${revision} (${manifest}) took its place with entry ${entry} (${reason}). What is shown here is exploratory.`,
  ];
}

function lateNote({ attempts }: ReportInput): readonly string[] {
  const { after_unblinding: late } = attempts;
  return late === 0
    ? []
    : [
        `${plural(late, 'attempt')} were started when outcomes could be read already: what rests on them is exploratory.`,
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
