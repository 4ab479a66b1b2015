import {
  compare,
  divide,
  mean,
  multiply,
  type Rational,
  rational,
  subtract,
  sum,
  toNumber,
} from './rational.js';

/** How values lie around their mean. The standard deviation is the sample form (n − 1), everywhere (F-145). */
export interface Spread {
  readonly count: number;
  readonly min: Rational;
  readonly max: Rational;
  readonly standardDeviation: number;
}

/** null for fewer than two values: one value has no spread, neither 0 nor NaN (P3). */
export function spreadOf(values: readonly Rational[]): Spread | null {
  const [first, ...others] = values;
  if (first === undefined || others.length === 0) return null;
  return {
    count: values.length,
    min: others.reduce((a, b) => (compare(a, b) <= 0 ? a : b), first),
    max: others.reduce((a, b) => (compare(a, b) >= 0 ? a : b), first),
    standardDeviation: Math.sqrt(toNumber(sampleVariance(values))),
  };
}

/** Σ (x − x̄)² / (n − 1), exactly. */
export function sampleVariance(values: readonly Rational[]): Rational {
  return divide(sumOfSquaredDeviations(values), rational(values.length - 1));
}

/** Σ (x − x̄)² / n, exactly: the variance of one draw from these values. */
export function populationVariance(values: readonly Rational[]): Rational {
  return divide(sumOfSquaredDeviations(values), rational(values.length));
}

function sumOfSquaredDeviations(values: readonly Rational[]): Rational {
  const center = mean(values);
  return sum(
    values.map((value) => {
      const deviation = subtract(value, center);
      return multiply(deviation, deviation);
    }),
  );
}
