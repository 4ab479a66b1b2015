import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { command as regrade } from '../../src/commands/regrade.js';
import { invoke } from '../amend/support.js';
import { COMMAND_PLAN } from '../runner/command-plan.js';
import { type PlanSetting, put, type Trial, trial } from '../runner/fixture.js';

export const CORRECTED = readFileSync(join(import.meta.dirname, 'corrected-grade.mjs'));
const REASON = 'a test read the clock';

export interface GraderText {
  readonly wall?: number;
  readonly more?: string;
  readonly argv?: string;
  readonly step?: string;
}

/** A grader file, whose command does what the third word of a prompt says and notes its calls in a log. */
export function graderText(log: string, { wall = 20, more = '', argv, step = '' }: GraderText = {}): string {
  const given = argv ?? `[node, fixed/corrected-grade.mjs, "{request}", "{candidate}", "{output}", "${log}"]`;
  return `kind: report
reward: { min: 0, max: 1 }
grade: { argv: ${given}, wall_s: ${wall}, output_bytes: 1000${step} }
grace_s: 0.2
sources: { fixed: fixed }
${more}`;
}

/** A plan that ran, whose commands do what the first two words of a prompt say, with a corrected grader beside it. */
export async function ran(prompts: readonly string[], more: Partial<PlanSetting> = {}): Promise<Trial> {
  const named = Object.fromEntries(prompts.map((prompt) => [prompt.replaceAll(' ', '_'), prompt]));
  const plan = await trial({ prompts: named, ...COMMAND_PLAN, ...more });
  await plan.run();
  put(plan.root, 'fixed/corrected-grade.mjs', CORRECTED);
  put(plan.root, 'fixed.yaml', graderText(logOf(plan)));
  return plan;
}

export const logOf = (plan: Trial): string => join(plan.root, 'regraded.log');

export interface Call {
  readonly request: Record<string, unknown>;
  readonly cwd: string;
  readonly files: readonly string[];
  readonly env: readonly string[];
  readonly pid: number;
}

/** What the corrected command noted of its calls. */
export function calls(plan: Trial): readonly Call[] {
  try {
    const lines = readFileSync(logOf(plan), 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line) as Call);
  } catch {
    return [];
  }
}

export function again(plan: Trial, options: Record<string, unknown> = {}) {
  return invoke(regrade, plan.root, [], { grader: 'fixed.yaml', reason: REASON, ...options });
}

/** The error of it, null for none. */
export const refused = (plan: Trial, options: Record<string, unknown> = {}): Promise<unknown> =>
  again(plan, options).then(
    () => null,
    (error: unknown) => error,
  );
