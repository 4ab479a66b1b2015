import { fromNumber, sum } from '../analysis/rational.js';
import { toFixedDecimal } from '../analysis/rounding.js';
import type { ShownEffort, ShownParts } from '../ledger/costs.js';
import { type Block, paragraph, table } from './document.js';
import type { CostOfArm, Costs, Report } from './value.js';
import { plural } from './words.js';

const PARTS = ['used', 'failed', 'unused', 'open'] as const;
const MASK = 'masked';

/** Attempts, and what they cost (P21). */
export function costBlocks({ attempts, costs }: Report): readonly Block[] {
  const { first, replacement, regrade, recovered, after_unblinding: late } = attempts;
  return [
    paragraph(
      `Attempts: ${first} first, ${plural(replacement, 'replacement')}, ${plural(regrade, 'regrade')}; ${recovered} recovered after a dead ` +
        `process${late === 0 ? '' : `; ${late} started after outcomes were open`}. Costs include failed attempts and candidates that no settlement rests on.`,
    ),
    ...effortTable(costs),
    paragraph(
      `Allocated: ${costs.gpu_hours} GPU hours${accounted(costs)}; services up ${costs.service_seconds} s; sessions at work ` +
        `${costs.session_seconds} s. Stage seconds overlap when attempts run side by side and are no device time.` +
        uncounted(costs),
    ),
    ...armBlocks(costs.arms),
  ];
}

function effortTable(costs: ShownParts): readonly Block[] {
  const row = (name: string, field: keyof ShownEffort, digits: number) => {
    const cells = PARTS.map((part) => shown(costs[part][field], digits));
    return [
      name,
      ...cells,
      total(
        PARTS.map((part) => costs[part][field]),
        digits,
      ),
    ];
  };
  return table(
    ['cost', '>used', '>failed', '>unused', '>not closed', '>all'],
    [
      row('stages', 'stages', 0),
      row('generated tokens', 'generated_tokens', 0),
      row('gradings', 'gradings', 0),
      row('stage seconds', 'seconds', 3),
      row('queue wait seconds', 'queue_seconds', 3),
    ],
  );
}

function armBlocks(arms: readonly CostOfArm[] | null): readonly Block[] {
  if (arms === null) return [];
  const all = (cost: CostOfArm, field: keyof ShownEffort, digits: number) =>
    total(
      PARTS.map((part) => cost[part][field]),
      digits,
    );
  const divided = arms.some((cost) => cost.divided);
  return [
    ...table(
      [
        'arm',
        '>GPU hours',
        '>services up s',
        '>queue wait s',
        '>tokens',
        '>of failed',
        '>of unused',
        '>gradings',
      ],
      arms.map((cost) => [
        cost.arm,
        `${cost.gpu_hours}${cost.divided ? ' *' : ''}`,
        `${cost.service_seconds}${cost.divided ? ' *' : ''}`,
        all(cost, 'queue_seconds', 3),
        all(cost, 'generated_tokens', 0),
        shown(cost.failed.generated_tokens, 0),
        shown(cost.unused.generated_tokens, 0),
        all(cost, 'gradings', 0),
      ]),
    ),
    ...(divided
      ? [paragraph('* held together with other arms, and divided among them by their stage seconds.')]
      : []),
  ];
}

function shown(value: number | null, digits: number): string {
  return value === null ? MASK : toFixedDecimal(fromNumber(value), digits);
}

function total(values: readonly (number | null)[], digits: number): string {
  const known = values.flatMap((value) => (value === null ? [] : [fromNumber(value)]));
  return known.length < values.length ? MASK : toFixedDecimal(sum(known), digits);
}

function accounted({ gpu_hours, accounted_gpu_hours: part }: Costs): string {
  if (part === 0) return ' as declared';
  return part === gpu_hours
    ? ' as the scheduler says'
    : `, ${part} of them as the scheduler says and the others as declared`;
}

function uncounted(costs: ShownParts): string {
  if (costs.used.gradings === null) {
    return ' Stages, generated tokens, gradings and everything by arm are masked until unblind: they tell outcomes.';
  }
  const missing = PARTS.reduce((sum, part) => sum + (costs[part].uncounted_generations ?? 0), 0);
  return missing === 0 ? '' : ` ${missing} generations reported no token count and are not in the tokens.`;
}
