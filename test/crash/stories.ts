import seedrandom from 'seedrandom';
import { FAULTY, STEPS, type Step } from './strace.js';
import type { Blow } from './strike.js';
import type { Workspace } from './workspace.js';

/** A workspace, and the blows that fall on its runs one after the other until it is left to finish. */
export interface Story {
  readonly template: Workspace;
  readonly workers: number;
  readonly blows: readonly Blow[];
}

/** A frozen plan, and how often each step occurs in one thread of its undisturbed run, at most. */
export interface Template {
  readonly workspace: Workspace;
  readonly counts: Readonly<Record<Step, number>>;
}

/** How many runs of a workspace are struck before it may finish. */
const BLOWS = 5;

/** Endless stories whose blows are chosen at random, from a seed. */
function* stories(
  templates: readonly Template[],
  seed: string,
  choose: (template: Template, random: () => number) => Blow,
): Generator<Story> {
  const random = seedrandom(seed);
  for (let i = 0; ; i++) {
    const template = templates[i % templates.length];
    if (template === undefined) return;
    yield {
      template: template.workspace,
      workers: 2 + Math.floor(random() * 3),
      blows: Array.from({ length: BLOWS }, () => choose(template, random)),
    };
  }
}

/** Kills at any time within about the length of a run. */
export function killsInTime(
  templates: readonly Template[],
  seed: string,
  lengthMs: number,
): Generator<Story> {
  return stories(templates, seed, (_, random) => ({
    what: 'kill',
    afterMs: Math.round(random() * lengthMs),
  }));
}

/** Kills at system calls. */
export function killsAtSteps(templates: readonly Template[], seed: string): Generator<Story> {
  return stories(templates, seed, (template, random) => ({
    ...anyStep(STEPS, template, random),
    what: 'kill',
  }));
}

/** Failing calls: once, or from then on. */
export function faults(templates: readonly Template[], seed: string): Generator<Story> {
  return stories(templates, seed, (template, random) => ({
    ...anyStep(FAULTY, template, random),
    what: random() < 0.5 ? 'EIO' : 'ENOSPC',
    stays: random() < 0.5,
  }));
}

/** Every step of a first run, one kill each. */
export function* killsAtEveryStep(templates: readonly Template[]): Generator<Story> {
  for (const { workspace: template, counts } of templates) {
    for (const step of STEPS) {
      if (step === 'write') continue;
      for (let nth = 1; nth <= counts[step]; nth++) {
        yield { template, workers: 2, blows: [{ step, nth, what: 'kill' }] };
      }
    }
  }
}

/** Earlier steps more often: a run that goes on after another has fewer of them. */
function anyStep(
  steps: readonly Step[],
  { counts }: Template,
  random: () => number,
): { readonly step: Step; readonly nth: number } {
  const possible = steps.filter((step) => counts[step] > 0);
  const step = possible[Math.floor(random() * possible.length)];
  if (step === undefined) throw new Error('no step was counted');
  return { step, nth: 1 + Math.floor(random() ** 2 * counts[step]) };
}
