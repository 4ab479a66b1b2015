import { rational } from '../analysis/rational.js';
import { toPercent } from '../analysis/rounding.js';
import { selectorText } from '../slots/selector.js';
import { type Block, heading, list, paragraph, table } from './document.js';
import { costBlocks } from './layout-costs.js';
import { recheckBlocks } from './layout-rechecks.js';
import { regradingBlocks } from './layout-regradings.js';
import { queueBlocks } from './layout-results.js';
import { revisionBlocks } from './layout-revisions.js';
import { scaleOf } from './scale.js';
import type { Counts, Report } from './value.js';
import { plural } from './words.js';

/** Lays a report out. Every figure comes from the report value; nothing is computed here but rounding. */
export function layout(report: Report): readonly Block[] {
  const scale = scaleOf(report);
  return [
    heading(1, `${report.amendment === 'post hoc' ? 'Post hoc report' : 'Report'}: ${report.protocol.title}`),
    ...identity(report),
    ...list(report.notes),
    ...revisionBlocks(report),
    heading(2, 'Coverage'),
    ...coverage(report),
    ...(report.results ?? []).flatMap((result) => queueBlocks(result, scale)),
    ...section('How intervals are made, and what they are worth', report.interval_notes),
    ...(report.results === null ? [] : armBlocks(report)),
    ...failureBlocks(report),
    heading(2, 'Attempts and costs'),
    ...costBlocks(report),
    ...section(
      'Beside the plan',
      report.deviations.map(({ what, count }) => `${what}: ${count}`),
    ),
    ...regradingBlocks(report),
    ...recheckBlocks(report),
    ...section('Deviations noted in mid-run', report.noted.map(noteText)),
    ...section('Read with', report.caveats),
    ...section('Not checked here', report.not_checked),
  ];
}

function section(title: string, items: readonly string[]): readonly Block[] {
  return items.length === 0 ? [] : [heading(2, title), ...list(items)];
}

/** B9. */
function noteText({ entry, time, text, selector, slots, after_unblinding }: Report['noted'][number]): string {
  const when = after_unblinding ? 'after outcomes were unblinded' : 'before any unblinding';
  return `${text} (${plural(slots, 'slot')}: ${selectorText(selector)}; entry ${entry}, ${time}, ${when})`;
}

function identity(report: Report): readonly Block[] {
  const { protocol, manifest, plan, ledger } = report;
  return table(
    ['identity', 'value'],
    [
      ['protocol', `${protocol.name} revision ${protocol.revision}`],
      ...(protocol.due === null ? [] : [['due', protocol.due]]),
      ['manifest', manifest.digest],
      ['plan', plan.digest],
      ...(ledger.entries === 0
        ? [['ledger', 'none yet']]
        : [
            ['ledger', `${ledger.name} (${ledger.entries} entries)`],
            ['ledger leaf', ledger.leaf],
            ['ledger root', ledger.root],
          ]),
      ['blinding', report.blinding],
      ['outcomes', VISIBILITY[report.visibility]],
    ],
  );
}

const VISIBILITY = {
  blinded: 'blinded',
  unblinded: 'unblinded',
  unblinded_partially: 'unblinded before the plan was complete',
} as const;

function coverage({ coverage: { total, queues }, demoted }: Report): readonly Block[] {
  const counts = (c: Counts) => [
    String(c.planned),
    String(c.settled),
    String(c.unresolved),
    String(c.pending),
    share(c.settled, c.planned),
  ];
  return table(
    ['queue', 'role', '>tasks', '>reps', '>planned', '>settled', '>unresolved', '>pending', '>settled %'],
    [
      ...queues.map((q) => [
        q.queue,
        demoted.length > 0 && q.role === 'confirmatory' ? 'exploratory now' : q.role,
        String(q.tasks),
        q.evaluation_seeds.length > 1 ? `${q.evaluation_seeds.length} x ${q.reps}` : String(q.reps),
        ...counts(q),
      ]),
      ['all', '', '', '', ...counts(total)],
    ],
  );
}

function armBlocks(report: Report): readonly Block[] {
  return [
    heading(2, 'Arms'),
    ...table(
      ['arm', 'model', 'condition', 'training seeds', 'grader', '>reward'],
      report.arms.map((arm) => [
        arm.arm,
        arm.model,
        arm.condition,
        arm.training_seeds.map((seed) => seed ?? 'none').join(', '),
        arm.grader,
        `${arm.reward.min} to ${arm.reward.max}`,
      ]),
    ),
    ...truncationBlocks(report),
  ];
}

function truncationBlocks({ truncation }: Report): readonly Block[] {
  if (truncation === null || truncation.length === 0) return [];
  const stops = truncation.some(({ looped }) => looped !== undefined);
  return [
    paragraph(
      `Generations that ended at the token limit${stops ? ', or at which the declared stop rule fired because they looped' : ''}, among those with a known finish reason:`,
    ),
    ...table(
      ['arm', '>known', '>at limit', '>at limit %', ...(stops ? ['>looped', '>looped %'] : []), '>unknown'],
      truncation.map(({ arm, known, truncated, looped, unknown }) => [
        arm,
        String(known),
        String(truncated),
        share(truncated, known),
        ...(stops ? [String(looped ?? 'no rule'), looped === undefined ? '' : share(looped, known)] : []),
        String(unknown),
      ]),
    ),
  ];
}

function failureBlocks({ failures }: Report): readonly Block[] {
  if (failures === null) return [];
  return [
    heading(2, 'Failed attempts'),
    ...(failures.length === 0
      ? [paragraph('No attempt failed.')]
      : table(
          ['arm', 'stage', 'cause', 'attribution', '>attempts'],
          failures.map((row) => [row.arm, row.stage, row.cause, row.attribution, String(row.attempts)]),
        )),
  ];
}

/** A share in percent; nothing where the whole is nothing. */
function share(part: number, whole: number): string {
  return whole === 0 ? '' : toPercent(rational(part, whole), 2);
}
