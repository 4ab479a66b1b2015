import { type Block, heading, list, paragraph, table } from './document.js';
import type { PlanChanges, PlanPart } from './plan-changes.js';
import type { Revision } from './revisions.js';
import type { Report } from './value.js';
import { plural } from './words.js';

/** P22: how the plan came to be what it is, and what was taken over from the one before. */
export function revisionBlocks({ revisions, carried }: Report): readonly Block[] {
  if (revisions.length === 0) return [];
  return [
    heading(2, 'Revisions'),
    ...table(
      [
        'revision',
        'supersedes',
        '>slots before',
        '>slots now',
        '>run by then',
        '>settled by then',
        'outcomes',
      ],
      revisions.map((one) => [
        String(one.revision),
        one.supersedes,
        countText(one.changes?.slots.before ?? null),
        countText(one.changes?.slots.after ?? null),
        String(one.exposure.slots_run),
        String(one.exposure.settled),
        one.exposure.unblinded ? 'open' : 'not open',
      ]),
    ),
    ...revisions.flatMap(changeBlocks),
    ...(carried === null
      ? []
      : [
          paragraph(
            `Carried from the ledger ${carried.ledger} of ${carried.manifest} (${carried.entries} entries, root ${carried.root}): ` +
              `${plural(carried.settled + carried.unresolved, 'slot')} with ${plural(carried.attempts, 'attempt')}. Their attempts, failures, ` +
              'truncation and costs are in the report of that ledger and not in this one.',
          ),
        ]),
  ];
}

function changeBlocks({ revision, reason, changes }: Revision): readonly Block[] {
  const lines =
    changes === null
      ? ['what it changed cannot be told: the superseded manifest is not at hand']
      : changeLines(changes);
  return [paragraph(`Revision ${revision}: ${reason}`), ...list(lines)];
}

function changeLines({ dropped, added, analysis, protocol, bindings }: PlanChanges): readonly string[] {
  const names = (title: string, all: readonly string[]) =>
    all.length === 0 ? [] : [`${title}: ${all.join(', ')}`];
  return [
    ...dropped.map((part) => `dropped: ${partText(part)}`),
    ...added.map((part) => `added: ${partText(part)}`),
    ...names('dropped from the analysis', analysis.dropped),
    ...names('added to the analysis', analysis.added),
    ...names('changed in the analysis', analysis.changed),
    ...names('members of the protocol that differ', protocol),
    ...names('bindings that differ', bindings),
  ];
}

const KINDS = {
  queue: 'the queue',
  arm: 'arm',
  training_seed: 'training seed',
  evaluation_seed: 'evaluation seed',
  reps: 'reps',
  tasks: 'tasks',
} as const;

function partText({ kind, queue, name, slots }: PlanPart): string {
  const what = kind === 'queue' ? `${KINDS.queue} ${queue}` : `${KINDS[kind]} ${name} in ${queue}`;
  return `${what} (${plural(slots, 'slot')})`;
}

function countText(count: number | null): string {
  return count === null ? 'unknown' : String(count);
}
