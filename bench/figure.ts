/** One measured figure with the bar it is held against. */
export interface Figure {
  readonly figure: string;
  readonly value: number;
  readonly bar: string;
  readonly met: boolean;
}

/** A figure that must reach at least `bar`. */
export function atLeast(figure: string, value: number, bar: number): Figure {
  return { figure, value: round(value), bar: `≥ ${bar}`, met: value >= bar };
}

/** A figure that must not exceed `bar`. */
export function atMost(figure: string, value: number, bar: number): Figure {
  return { figure, value: round(value), bar: `≤ ${bar}`, met: value <= bar };
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

/** The median of several timings, in milliseconds: one slow turn of a noisy machine does not decide. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
