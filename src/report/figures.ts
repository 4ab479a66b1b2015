import type { Bound } from '../analysis/bounds.js';
import { type Rational, toNumber, toText } from '../analysis/rational.js';
import type { Spread } from '../analysis/spread.js';
import type { BoundFigure, Figure, SpreadFigure } from './value.js';

export function figure(value: Rational): Figure {
  return { exact: toText(value), value: toNumber(value) };
}

export function boundFigure(bound: Bound): BoundFigure {
  return { lower: figure(bound.lower), upper: figure(bound.upper) };
}

export function spreadFigure(spread: Spread | null): SpreadFigure | null {
  if (spread === null) return null;
  return {
    count: spread.count,
    standard_deviation: spread.standardDeviation,
    min: figure(spread.min),
    max: figure(spread.max),
  };
}
