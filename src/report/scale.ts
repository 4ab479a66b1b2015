import { compare, fromNumber, fromText, type Rational, ZERO } from '../analysis/rational.js';
import { toFixedDecimal, toPercent } from '../analysis/rounding.js';
import type { BoundFigure, Figure, Report } from './value.js';

/** How figures are printed: percent with two digits where every reward lies in [0, 1], plain with four elsewhere. */
export interface Scale {
  readonly unit: string;
  readonly differenceUnit: string;
  readonly text: (value: Rational) => string;
}

const PERCENT: Scale = {
  unit: 'percent',
  differenceUnit: 'percentage points',
  text: (value) => toPercent(value, 2),
};
const REWARD: Scale = {
  unit: 'reward',
  differenceUnit: 'reward',
  text: (value) => toFixedDecimal(value, 4),
};

export function scaleOf(report: Pick<Report, 'arms'>): Scale {
  return report.arms.every(({ reward }) => reward.min === 0 && reward.max === 1) ? PERCENT : REWARD;
}

export function plain(scale: Scale, value: Figure | number): string {
  return scale.text(toRational(value));
}

/** With a sign, for differences. */
export function signed(scale: Scale, value: Figure | number): string {
  const exact = toRational(value);
  const text = scale.text(exact);
  return compare(exact, ZERO) > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

export function range(
  scale: Scale,
  bound: BoundFigure | { readonly lower: number; readonly upper: number },
): string {
  return `[${signed(scale, bound.lower)}, ${signed(scale, bound.upper)}]`;
}

/** A sum of rewards: whole as it is, else with four digits. */
export function sumText(value: Figure): string {
  const exact = fromText(value.exact);
  return exact.d === 1n ? String(exact.n) : toFixedDecimal(exact, 4);
}

function toRational(value: Figure | number): Rational {
  return typeof value === 'number' ? fromNumber(value) : fromText(value.exact);
}
