import { type Block, heading, list, paragraph, table } from './document.js';
import { plain, range, type Scale, signed, sumText } from './scale.js';
import type {
  ContrastResult,
  IntervalResult,
  QueueResult,
  ScoreRow,
  ScoreSection,
  TableResult,
} from './value.js';
import { plural } from './words.js';

/** The results of one queue. */
export function queueBlocks(result: QueueResult, scale: Scale): readonly Block[] {
  return [
    heading(2, `Queue ${result.queue} (${result.label})`),
    ...(result.scores === null
      ? [paragraph('No score is declared for this queue.')]
      : scoreBlocks(result.scores, scale)),
    ...result.contrasts.flatMap((contrast) => contrastBlocks(contrast, scale)),
    ...decisionBlocks(result),
    ...result.tables.flatMap((each) => tableBlocks(each, scale)),
  ];
}

function scoreBlocks(section: ScoreSection, scale: Scale): readonly Block[] {
  return [
    heading(3, `Scores ${section.id}`),
    paragraph(`Each row ${section.estimand}. Unit of replication: ${section.unit_of_replication}.`),
    paragraph(
      `N planned, K settled, S sum of the settled rewards; lower and upper bound, sampling standard error (SE) in ${scale.unit}. ` +
        'Equal bounds are the score.',
    ),
    ...rowTable(section, scale),
    ...section.rows.flatMap((row) => saturationBlock(row, scale)),
    ...evaluationBlocks(section, scale),
    paragraph('Means over training seeds, equal weight for each; SD is the sample form (n − 1) over seeds.'),
    ...armTable(section, scale),
  ];
}

function rowTable(section: ScoreSection, scale: Scale): readonly Block[] {
  return table(
    ['arm', '>seed', '>N', '>K', '>unresolved', '>pending', '>S', '>lower', '>upper', '>SE'],
    section.rows.map((row) => [
      row.arm,
      seedText(row.training_seed),
      String(row.planned),
      String(row.settled),
      String(row.unresolved),
      String(row.pending),
      sumText(row.sum),
      plain(scale, row.bound.lower),
      plain(scale, row.bound.upper),
      row.sampling_standard_error === null ? '' : plain(scale, row.sampling_standard_error),
    ]),
  );
}

function armTable(section: ScoreSection, scale: Scale): readonly Block[] {
  return table(
    ['arm', '>seeds', '>lower', '>upper', '>SD'],
    section.arms.map((arm) => [
      arm.arm,
      String(arm.seeds),
      plain(scale, arm.bound.lower),
      plain(scale, arm.bound.upper),
      arm.spread === null ? '' : plain(scale, arm.spread.standard_deviation),
    ]),
  );
}

function saturationBlock(row: ScoreRow, scale: Scale): readonly Block[] {
  if (row.saturation === null) return [];
  const { at, tasks, wilson } = row.saturation;
  return [
    paragraph(
      `${row.arm} ${seedText(row.training_seed)}: every rollout is at the ${at} end. Degenerate; the ${percent(wilson.level)} % ` +
        `Wilson interval with ${plural(tasks, 'task')} as units is [${plain(scale, wilson.low)}, ${plain(scale, wilson.high)}].`,
    ),
  ];
}

/** C8: every evaluation, and mean and SD over them; the SD is sampling noise (D-12). */
function evaluationBlocks(section: ScoreSection, scale: Scale): readonly Block[] {
  if (section.evaluations.length === 0) return [];
  return [
    paragraph('Each evaluation seed by itself:'),
    ...table(
      ['arm', '>seed', '>evaluation', '>N', '>K', '>lower', '>upper'],
      section.evaluations.map((row) => [
        row.arm,
        seedText(row.training_seed),
        String(row.evaluation_seed),
        String(row.planned),
        String(row.settled),
        plain(scale, row.bound.lower),
        plain(scale, row.bound.upper),
      ]),
    ),
    ...table(
      ['arm', '>seed', '>evaluations', '>mean', '>SD'],
      section.rows.flatMap((row) =>
        row.evaluation_spread === null
          ? []
          : [
              [
                row.arm,
                seedText(row.training_seed),
                String(row.evaluation_spread.count),
                plain(scale, row.bound.lower),
                plain(scale, row.evaluation_spread.standard_deviation),
              ],
            ],
      ),
    ),
  ];
}

function contrastBlocks(contrast: ContrastResult, scale: Scale): readonly Block[] {
  const { id, minuend, subtrahend, label, bound } = contrast;
  return [
    heading(3, `Contrast ${id}: ${minuend} minus ${subtrahend} (${label})`),
    paragraph(
      `It ${contrast.estimand}. Unit of replication: ${contrast.unit_of_replication}. In ${scale.differenceUnit}.`,
    ),
    ...table(
      ['figure', 'value'],
      [
        ['bound', bound === null ? 'none' : range(scale, bound)],
        // Of an estimate a sign would read as a verdict; of a bound it says what is missing.
        ...(contrast.complete ? [] : [['sign', contrast.sign.replace('_', ' ')]]),
        ...estimateRows(contrast, scale),
      ],
    ),
    ...(contrast.interval === null ? [] : [paragraph(checkText(contrast.interval, scale))]),
    ...table(
      ['>seed', '>lower', '>upper'],
      contrast.pairs.map((pair) => [
        pairText(pair.minuend_seed, pair.subtrahend_seed),
        signed(scale, pair.bound.lower),
        signed(scale, pair.bound.upper),
      ]),
    ),
    ...list(contrast.statements),
  ];
}

function estimateRows(contrast: ContrastResult, scale: Scale): readonly (readonly string[])[] {
  const { estimate, interval, spread } = contrast;
  if (estimate === null) return [['estimate', 'none while slots are unresolved or pending']];
  return [
    ['estimate', signed(scale, estimate)],
    ...(interval === null ? [] : [[`${percent(interval.level)} % interval`, intervalText(interval, scale)]]),
    ...(spread === null
      ? []
      : [
          [
            'over pairs',
            `lowest ${signed(scale, spread.min)}, highest ${signed(scale, spread.max)}, SD ${plain(scale, spread.standard_deviation)}`,
          ],
        ]),
  ];
}

/** The interval's self-check: two ways to one standard error (statistics A11.2). */
function checkText({ variance }: IntervalResult, scale: Scale): string {
  const error = (value: number) => plain(scale, Math.sqrt(value));
  return (
    `Standard error ${error(variance.resampled)} by resampling, ${error(variance.exact.value)} by the exact formula (seeds ` +
    `${error(variance.seeds.value)}, tasks ${error(variance.tasks.value)}, interaction ${error(variance.interaction.value)}).`
  );
}

/** An interval that can't vary never stands there unmarked (F-143). */
function intervalText(interval: IntervalResult, scale: Scale): string {
  const text = range(scale, interval);
  if (interval.degenerate === null) return text;
  return interval.degenerate === 'one_task' ? `${text} (one task)` : `${text} (degenerate)`;
}

function decisionBlocks({ decisions }: QueueResult): readonly Block[] {
  if (decisions.length === 0) return [];
  return [
    heading(3, 'Decisions'),
    paragraph(
      'Taken on the bound at its unfavourable end: met only if every value of the bound meets the condition, not met ' +
        'only if none does; undecided is not met.',
    ),
    ...table(
      ['decision', 'contrast', 'condition', 'status', 'conclusion', 'label'],
      decisions.map((each) => [
        each.id,
        each.contrast,
        each.condition,
        each.status === 'not_met' ? 'not met' : each.status,
        each.conclusion,
        each.label,
      ]),
    ),
  ];
}

function tableBlocks(result: TableResult, scale: Scale): readonly Block[] {
  return [
    heading(3, `Partitions ${result.id} (${result.label})`),
    paragraph(
      'The same computation on each partition of the queue; partitions may overlap, and none is a main result.',
    ),
    ...result.partitions.flatMap((each) =>
      each.scores === null
        ? [heading(4, each.partition), paragraph('None of its tasks is in this queue.')]
        : [
            heading(4, `${each.partition} (tasks: ${each.tasks})`),
            ...rowTable(each.scores, scale),
            ...each.scores.rows.flatMap((row) => saturationBlock(row, scale)),
            ...armTable(each.scores, scale),
            ...partitionContrasts(each.contrasts, scale),
          ],
    ),
  ];
}

function partitionContrasts(contrasts: readonly ContrastResult[], scale: Scale): readonly Block[] {
  return table(
    ['contrast', 'seed', '>lower', '>upper', '>estimate', 'interval', 'label'],
    contrasts.flatMap((contrast) => [
      [
        contrast.id,
        `mean of ${contrast.pairs.length}`,
        contrast.bound === null ? '' : signed(scale, contrast.bound.lower),
        contrast.bound === null ? '' : signed(scale, contrast.bound.upper),
        contrast.estimate === null ? '' : signed(scale, contrast.estimate),
        contrast.interval === null ? '' : intervalText(contrast.interval, scale),
        contrast.label,
      ],
      ...contrast.pairs.map((pair) => [
        contrast.id,
        pairText(pair.minuend_seed, pair.subtrahend_seed),
        signed(scale, pair.bound.lower),
        signed(scale, pair.bound.upper),
        '',
        '',
        contrast.label,
      ]),
    ]),
  );
}

function seedText(seed: number | null): string {
  return seed === null ? 'none' : String(seed);
}

function pairText(minuend: number | null, subtrahend: number | null): string {
  return minuend === subtrahend ? seedText(minuend) : `${seedText(minuend)} - ${seedText(subtrahend)}`;
}

function percent(level: number): string {
  return String(Math.round(level * 1e6) / 1e4);
}
