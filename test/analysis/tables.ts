import { readFileSync } from 'node:fs';

/** Figures computed elsewhere (Python fractions, scipy, R, statsmodels); `source` in the file names each origin. */
interface Tables {
  readonly twoWay: { readonly cases: readonly TwoWayCase[] };
  readonly twoWayLattice: { readonly cases: readonly LatticeCase[] };
  readonly oneWayLattice: { readonly cases: readonly OneWayCase[] };
  readonly bounds: BoundsTables;
  readonly quantiles: { readonly cases: readonly (readonly [readonly number[], number, number])[] };
  readonly wilson: { readonly cases: readonly (readonly [number, number, number, number, number])[] };
  readonly samplingSe: { readonly cases: readonly SamplingCase[] };
  readonly cluster: { readonly cases: readonly ClusterCase[] };
}

interface TwoWayCase {
  readonly name: string;
  readonly D: readonly (readonly string[])[];
  readonly mean: number;
  readonly variance: string;
  readonly varRow: string;
  readonly varCol: string;
  readonly varInteraction: string;
  readonly minProb: number;
  readonly maxProb: number;
  readonly distribution: readonly (readonly [string, string])[] | null;
}

type Band = readonly [number, number];

interface Bands {
  readonly q025_band10000: Band;
  readonly q975_band10000: Band;
  readonly q025_band20000: Band;
  readonly q975_band20000: Band;
}

interface LatticeCase extends Bands {
  readonly name: string;
  readonly reps: number;
  readonly M: readonly (readonly number[])[];
  readonly B: readonly (readonly number[])[];
  readonly mean: number;
  readonly varianceClosedForm: number;
  readonly seedPart: number;
  readonly taskPart: number;
  readonly interactionPart: number;
  readonly perSeed: readonly number[];
}

interface OneWayCase extends Bands {
  readonly name: string;
  readonly denominator: number;
  readonly counts: readonly (readonly [number, number])[];
  readonly mean: number;
  readonly sd: number;
}

/** Planned, successes, completed. */
export type Problem = readonly [number, number, number];

interface BoundsTables {
  readonly pooled: readonly {
    readonly N: number;
    readonly K: number;
    readonly S: number;
    readonly low: number;
    readonly high: number;
    readonly coverage: number;
  }[];
  readonly perProblem: readonly {
    readonly problems: readonly Problem[];
    readonly lowExact: string;
    readonly highExact: string;
  }[];
  readonly difference: readonly {
    readonly M: readonly Problem[];
    readonly B: readonly Problem[];
    readonly lowExact: string;
    readonly highExact: string;
    readonly pointIdentified: boolean;
    readonly signIdentified: boolean;
  }[];
  readonly differenceOverSeeds: readonly {
    readonly seeds: readonly { readonly M: readonly Problem[]; readonly B: readonly Problem[] }[];
    readonly perSeed: readonly (readonly [number, number])[];
    readonly low: number;
    readonly high: number;
  }[];
}

export interface SamplingCase {
  readonly input: {
    readonly suite?: string;
    readonly N?: number;
    readonly p: number | readonly number[];
    readonly k?: number;
  };
  readonly expected: Readonly<Record<string, number>>;
}

interface ClusterCase {
  readonly name: string;
  /** Attempts and successes of each problem. */
  readonly problems: readonly (readonly [number, number])[];
  readonly avgAtN: number;
  readonly pooled: number;
  readonly se: number | null;
}

export const tables = JSON.parse(readFileSync(new URL('./tables.json', import.meta.url), 'utf8')) as Tables;
