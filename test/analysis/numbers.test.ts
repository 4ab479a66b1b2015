import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normalQuantile } from '../../src/analysis/normal.js';
import { quantile } from '../../src/analysis/quantile.js';
import {
  add,
  compare,
  divide,
  fromNumber,
  fromText,
  mean,
  multiply,
  rational,
  subtract,
  sum,
  toNumber,
  toText,
} from '../../src/analysis/rational.js';
import { toFixedDecimal, toPercent } from '../../src/analysis/rounding.js';
import { spreadOf } from '../../src/analysis/spread.js';
import { wilsonInterval } from '../../src/analysis/wilson.js';
import { tables } from './tables.js';

const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
const fraction = fc
  .tuple(fc.bigInt(-(10n ** 30n), 10n ** 30n), fc.bigInt(1n, 10n ** 30n))
  .map(([n, d]) => rational(n, d));

describe('fractions', () => {
  it('reads a number as its decimal form and gives it back', () => {
    expect(toText(fromNumber(0.1))).toBe('1/10');
    expect(toText(fromNumber(2.135))).toBe('427/200');
    expect(toText(fromNumber(-1e21))).toBe('-1000000000000000000000');
    expect(toText(fromNumber(-0))).toBe('0');
    fc.assert(
      fc.property(finite, (x) => {
        expect(toNumber(fromNumber(x))).toBe(x === 0 ? 0 : x);
      }),
    );
    for (const x of [Number.MAX_VALUE, Number.MIN_VALUE, 2.2250738585072014e-308, 1e22, 1e23]) {
      expect(toNumber(fromNumber(x))).toBe(x);
    }
    expect(() => fromNumber(Number.NaN)).toThrow();
    expect(() => rational(1, 0)).toThrow();
  });

  it('keeps the laws of a field', () => {
    fc.assert(
      fc.property(fraction, fraction, fraction, (a, b, c) => {
        expect(subtract(add(a, b), b)).toEqual(a);
        expect(multiply(a, add(b, c))).toEqual(add(multiply(a, b), multiply(a, c)));
        if (b.n !== 0n) expect(multiply(divide(a, b), b)).toEqual(a);
        expect(Math.sign(compare(a, b))).toBe(-Math.sign(compare(b, a)) || 0);
      }),
    );
  });

  it('reads back what it wrote', () => {
    fc.assert(
      fc.property(fraction, (a) => {
        expect(fromText(toText(a))).toEqual(a);
      }),
    );
    for (const text of ['', '1/0', '1.5', '1/-2', ' 1', '1/2/3']) expect(() => fromText(text)).toThrow();
  });

  it('rounds to the nearest double', () => {
    // 2^53 + 1 lies half way; one part in 10^30 decides.
    expect(toNumber(rational(2n ** 53n + 1n))).toBe(2 ** 53);
    expect(toNumber(rational((2n ** 53n + 1n) * 10n ** 30n + 1n, 10n ** 30n))).toBe(2 ** 53 + 2);
    expect(toNumber(rational(10n ** 40n, 3n * 10n ** 40n))).toBe(1 / 3);
    expect(toNumber(rational(-2n, 3n * 10n ** 20n))).toBe(-2 / 3e20);
  });

  it('sums to the same value in any order (F-147)', () => {
    const values = fc.array(finite, { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(values, fc.infiniteStream(fc.nat()), (list, keys) => {
        const shuffled = list
          .map((value) => ({ value, key: keys.next().value ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map((item) => fromNumber(item.value));
        expect(sum(shuffled)).toEqual(sum(list.map(fromNumber)));
      }),
    );
    expect(toText(mean([0.1, 0.2, 0.3].map(fromNumber)))).toBe('1/5');
    expect(() => mean([])).toThrow();
  });
});

describe('rounding', () => {
  it.each([
    [fromNumber(2.135), 2, '2.14'],
    [fromNumber(-2.135), 2, '-2.14'],
    [fromNumber(0.5), 0, '1'],
    [fromNumber(1.5), 0, '2'],
    [fromNumber(-0.001), 2, '0.00'],
    [rational(1, 3), 4, '0.3333'],
    [rational(2, 3), 0, '1'],
    [rational(-999, 1000), 2, '-1.00'],
    [rational(12), 2, '12.00'],
    [rational(1, 1000), 3, '0.001'],
  ])('%o to %i digits is %s', (value, digits, text) => {
    expect(toFixedDecimal(value, digits)).toBe(text);
  });

  it('takes exactly 3.125 percent to 3.13', () => {
    expect(toPercent(rational(1, 32), 2)).toBe('3.13');
    expect(toPercent(rational(-1, 32), 2)).toBe('-3.13');
  });
});

describe('spread', () => {
  it('is the sample form (F-145)', () => {
    const spread = spreadOf([0.1, 0.12, 0.3].map(fromNumber));
    expect(spread?.standardDeviation).toBeCloseTo(0.1101514, 7);
    expect(spread).toMatchObject({ count: 3, min: fromNumber(0.1), max: fromNumber(0.3) });
    expect(spreadOf([fromNumber(0.1)])).toBeNull();
    expect(spreadOf([])).toBeNull();
    expect(spreadOf([0.1, 0.1, 0.1].map(fromNumber))?.standardDeviation).toBe(0);
  });
});

describe('quantile', () => {
  it.each(tables.quantiles.cases)('type 7 of %j at %d', (x, p, expected) => {
    expect(quantile(Float64Array.from(x).sort(), p)).toBeCloseTo(expected, 12);
  });

  it('refuses nothing and nonsense', () => {
    expect(() => quantile([], 0.5)).toThrow();
    expect(() => quantile([1], 1.1)).toThrow();
    expect(() => quantile([1], Number.NaN)).toThrow();
  });
});

describe('normal quantile', () => {
  // Python 3.11 statistics.NormalDist().inv_cdf
  it.each([
    [0.975, 1.9599639845400536],
    [0.95, 1.6448536269514715],
    [0.995, 2.5758293035489],
    [0.5, 0],
    [0.3, -0.5244005127080407],
    [0.1, -1.2815515655446008],
    [0.0749, -1.4402382675279632],
    [1e-3, -3.090232306167813],
    [1e-12, -7.034483825301132],
    [1e-20, -9.262340089798405],
    [1e-300, -37.0470962993612],
  ])('%d', (p, z) => {
    expect(normalQuantile(p)).toBeCloseTo(z, 12);
  });
});

describe('wilson', () => {
  it.each(tables.wilson.cases)('%d of %d at %d', (s, n, level, low, high) => {
    const interval = wilsonInterval(s, n, level);
    expect(interval.low).toBeCloseTo(low, 13);
    expect(interval.high).toBeCloseTo(high, 13);
  });

  it('never leaves [0, 1] and closes its ends (statsmodels #7386)', () => {
    for (let n = 1; n <= 400; n++) {
      expect(wilsonInterval(0, n, 0.95).low).toBe(0);
      expect(wilsonInterval(n, n, 0.95).high).toBe(1);
    }
    expect(() => wilsonInterval(0, 0, 0.95)).toThrow();
    expect(() => wilsonInterval(2, 1, 0.95)).toThrow();
  });
});
