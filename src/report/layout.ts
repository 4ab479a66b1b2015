import { fromNumber, rational, sum } from '../analysis/rational.js';
import { toFixedDecimal, toPercent } from '../analysis/rounding.js';
import { selectorText } from '../slots/selector.js';
import { type Block, heading, list, paragraph, table } from './document.js';
import { queueBlocks } from './layout-results.js';
import { revisionBlocks } from './layout-revisions.js';
import { scaleOf } from './scale.js';
import type { Costs, Counts, Report } from './value.js';
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
  return [
    paragraph('Generations that ended at the token limit, among those with a known finish reason:'),
    ...table(
      ['arm', '>known', '>at limit', '>at limit %', '>unknown'],
      truncation.map((row) => [
        row.arm,
        String(row.known),
        String(row.truncated),
        share(row.truncated, row.known),
        String(row.unknown),
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

function costBlocks({ attempts, costs }: Report): readonly Block[] {
  const { first, replacement, regrade, recovered, after_unblinding: late } = attempts;
  return [
    paragraph(
      `Attempts: ${first} first, ${plural(replacement, 'replacement')}, ${plural(regrade, 'regrade')}; ${recovered} recovered after a dead ` +
        `process${late === 0 ? '' : `; ${late} started after outcomes were open`}. Costs include failed attempts and what no settlement rests on.`,
    ),
    ...effortTable(costs),
    paragraph(
      `Allocated: ${costs.gpu_hours} GPU hours; services up ${costs.service_seconds} s; sessions at work ` +
        `${costs.session_seconds} s. Stage seconds overlap when attempts run side by side.` +
        uncounted(costs),
    ),
  ];
}

function effortTable(costs: Costs): readonly Block[] {
  const parts = [costs.used, costs.unused, costs.open];
  const row = (name: string, field: keyof Costs['used'], digits: number) => {
    const values = parts.flatMap((part) => (part[field] === null ? [] : [fromNumber(part[field])]));
    if (values.length < parts.length) return [name, ...parts.map(() => MASK), MASK];
    return [name, ...[...values, sum(values)].map((value) => toFixedDecimal(value, digits))];
  };
  return table(
    ['cost', '>used', '>unused', '>not closed', '>all'],
    [
      row('stages', 'stages', 0),
      row('generated tokens', 'generated_tokens', 0),
      row('gradings', 'gradings', 0),
      row('stage seconds', 'seconds', 3),
      row('queue wait seconds', 'queue_seconds', 3),
    ],
  );
}

const MASK = 'masked';

function uncounted(costs: Costs): string {
  if (costs.used.gradings === null) {
    return ' Stages, generated tokens and gradings are masked until unblind: they tell outcomes.';
  }
  const total = [costs.used, costs.unused, costs.open].reduce(
    (sum, part) => sum + (part.uncounted_generations ?? 0),
    0,
  );
  return total === 0 ? '' : ` ${total} generations reported no token count and are not in the tokens.`;
}

/** A share in percent; nothing where the whole is nothing. */
function share(part: number, whole: number): string {
  return whole === 0 ? '' : toPercent(rational(part, whole), 2);
}
