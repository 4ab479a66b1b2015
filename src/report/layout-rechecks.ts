import { fromNumber } from '../analysis/rational.js';
import { toPercent } from '../analysis/rounding.js';
import { type Block, heading, paragraph } from './document.js';
import type { RecheckReport } from './rechecks.js';
import type { Report } from './value.js';
import { plural } from './words.js';

/** Stopped outputs that were generated again without the stop rule (B10). */
export function recheckBlocks({ rechecks = [] }: Report): readonly Block[] {
  if (rechecks.length === 0) return [];
  return [heading(2, 'Stopped outputs generated again (exploratory)'), ...rechecks.flatMap(blocksOf)];
}

function blocksOf({
  entry,
  time,
  fraction,
  closed,
  after_unblinding: late,
  outcome,
}: RecheckReport): readonly Block[] {
  const about = paragraph(
    `Entry ${entry}, ${time}${late ? ', post hoc: declared after outcomes were open' : ''}: ${fraction} of the outputs that the stop rule ` +
      `ended, without it${closed ? '' : ' (not finished)'}. No slot, score or decision of the plan rests on it.`,
  );
  if (outcome === null) return [about, paragraph('What came of it is masked until unblind.')];
  const { stopped, sample, recovered, not_recovered, failed, generated_tokens, interval } = outcome;
  const graded = recovered + not_recovered;
  const rate =
    interval === null
      ? ''
      : ` (${Number((interval.level * 100).toFixed(6))} % Wilson interval of the recovery rate [${percent(interval.low)}, ${percent(interval.high)}] percent)`;
  return [
    about,
    paragraph(
      `${plural(sample, 'output')} of ${stopped} that were stopped: ${recovered} of ${graded} graded ones recovered${rate}; ` +
        `${plural(failed, 'failure')} beside them. ${plural(generated_tokens, 'token')} were generated, which no other figure counts.`,
    ),
  ];
}

function percent(rate: number): string {
  return toPercent(fromNumber(rate), 1);
}
