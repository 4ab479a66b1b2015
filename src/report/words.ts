import type { ContrastResult, IntervalResult, Pairing } from './value.js';

/** `1 task`, `2 tasks`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function scoreEstimand(tasks: number, reps: number, evaluations: number): string {
  const rollouts =
    evaluations < 2
      ? `the ${plural(reps, 'planned rollout')} of a task`
      : `the ${evaluations} × ${reps} planned rollouts of a task (${evaluations} evaluations)`;
  return (
    'estimates the mean reward of one rollout by these weights on these tasks: ' +
    `the mean over ${rollouts}, then equal weight over ${plural(tasks, 'task')} ` +
    `(avg@${reps * Math.max(1, evaluations)}; this is not pass@k)`
  );
}

export function scoreUnit(reps: number): string {
  return reps < 2 ? 'task' : `task; its ${reps} rollouts are one cluster, not ${reps} independent tasks`;
}

export function contrastEstimand(
  request: { readonly minuend: string; readonly subtrahend: string; readonly tasks: readonly string[] },
  pairing: Pairing,
  pairs: number,
): string {
  const over = {
    paired_seeds: `equal weight over ${pairs} paired training seeds`,
    one_side_fixed: `equal weight over ${pairs} training seeds of the one arm against the fixed weights of the other`,
    one_seed: 'for one training seed only',
    no_seed: 'for two fixed sets of weights',
    none: 'but no training seed is common to both arms',
  }[pairing];
  return (
    `estimates the mean difference in reward of one rollout, ${request.minuend} minus ${request.subtrahend}, ` +
    `${over}, equal weight over ${plural(request.tasks.length, 'task')}`
  );
}

export function contrastUnit(pairing: Pairing): string {
  return pairing === 'paired_seeds' || pairing === 'one_side_fixed' ? 'training seed and task' : 'task';
}

/** What a reader must know beside the figures of one contrast (P9, law 6, statistics D-07 to D-25). */
export function contrastStatements(contrast: Omit<ContrastResult, 'statements'>): readonly string[] {
  if (contrast.pairing === 'none') return ['The arms share no training seed: nothing can be compared.'];
  const interval = contrast.interval;
  return [
    ...(contrast.complete && interval !== null
      ? completeStatements(contrast, interval)
      : missingStatements(contrast)),
    ...seedStatements(contrast),
  ];
}

function missingStatements({ missing, sign }: Pick<ContrastResult, 'missing' | 'sign'>): readonly string[] {
  const { unresolved, pending } = missing;
  return [
    `${plural(unresolved, 'slot')} of this comparison ${unresolved === 1 ? 'is' : 'are'} unresolved and ${pending} pending: ` +
      'it has no point estimate, no interval and no test. The width of the bound is missing data, not uncertainty ' +
      'of the models; sampling noise comes on top of it.',
    sign === 'not_identified'
      ? 'The bound holds 0: what is missing could turn the sign.'
      : `Whatever the missing outcomes are, the observed difference stays ${sign}.`,
  ];
}

function completeStatements(
  contrast: Omit<ContrastResult, 'statements'>,
  interval: IntervalResult,
): readonly string[] {
  const { pairs } = contrast;
  const statements: string[] = [];
  if (pairs.length > 1) {
    const values = pairs.map((pair) => pair.bound.lower.value);
    const [up, down] = [values.filter((v) => v > 0).length, values.filter((v) => v < 0).length];
    statements.push(
      `Per-seed differences: ${up} positive, ${down} negative, ${pairs.length - up - down} zero.`,
    );
  }
  if (interval.degenerate === 'no_variation') {
    statements.push(
      'Degenerate: every resample is equal, so the interval has no width. That is not certainty; it is neither ' +
        'significant nor a proof of no difference.',
    );
  }
  if (interval.degenerate === 'one_task') {
    statements.push('Degenerate: there is one task, so resampling tasks shows nothing of other tasks.');
  }
  return statements;
}

function seedStatements({ pairing, pairs, minuend, subtrahend }: Omit<ContrastResult, 'statements'>) {
  if (pairing === 'one_seed') {
    const seed = pairs[0]?.minuend_seed ?? pairs[0]?.subtrahend_seed ?? null;
    return [
      `One training seed (${seed}) pairs: there is no seed error bar. Only tasks are resampled, and every statement ` +
        'is conditional on this training run.',
    ];
  }
  if (pairing === 'no_seed') {
    return [
      'Neither arm has a training seed: only tasks are resampled, conditional on these two sets of weights.',
    ];
  }
  if (pairing === 'one_side_fixed') {
    const fixed = pairs[0]?.minuend_seed === null ? minuend : subtrahend;
    return [`${fixed} has no training seed: its one set of weights is the same in every resample.`];
  }
  return [];
}
