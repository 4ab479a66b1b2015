import { rewardRange } from '../grading/reference.js';
import type { Decision } from '../protocol/schema/analysis.js';
import type { Protocol } from '../protocol/schema/protocol.js';

/** What a decision can come to, given the rewards that are possible. */
export interface DecisionReach {
  readonly decision: string;
  readonly contrast: string;
  readonly comparator: Decision['comparator'];
  readonly threshold: number;
  /** Lowest and highest value that the contrast can take. */
  readonly range: { readonly lowest: number; readonly highest: number };
  readonly canBeMet: boolean;
  readonly canFail: boolean;
}

/**
 * Whether both outcomes of every declared decision can happen. A decision is met where the unfavourable end of the
 * contrast's bound meets it; with everything resolved both ends are one value, anywhere between
 * [minuend.min − subtrahend.max, minuend.max − subtrahend.min], and with nothing resolved they are those two.
 */
export function decisionReach(protocol: Protocol): readonly DecisionReach[] {
  return (protocol.analysis.decisions ?? []).flatMap((decision) => {
    const contrast = protocol.analysis.contrasts.find((each) => each.id === decision.contrast);
    if (contrast === undefined) return [];
    const minuend = armRange(protocol, contrast.minuend);
    const subtrahend = armRange(protocol, contrast.subtrahend);
    const range = { lowest: minuend.min - subtrahend.max, highest: minuend.max - subtrahend.min };
    const { comparator, threshold } = decision;
    return [
      {
        decision: decision.id,
        contrast: decision.contrast,
        comparator,
        threshold,
        range,
        canBeMet: holds(range.lowest, comparator, threshold) || holds(range.highest, comparator, threshold),
        canFail: !holds(range.lowest, comparator, threshold) || !holds(range.highest, comparator, threshold),
      },
    ];
  });
}

function armRange(protocol: Protocol, arm: string): { readonly min: number; readonly max: number } {
  const condition = protocol.conditions[protocol.arms[arm]?.condition ?? ''];
  return condition === undefined ? { min: 0, max: 1 } : rewardRange(condition.grader);
}

function holds(value: number, comparator: Decision['comparator'], threshold: number): boolean {
  switch (comparator) {
    case '>':
      return value > threshold;
    case '>=':
      return value >= threshold;
    case '<':
      return value < threshold;
    case '<=':
      return value <= threshold;
  }
}
