import type { PlanSetting } from './fixture.js';

export const COMMAND_RUNNER = `
  adapter: command
  generate:
    argv: [node, runner/command-generate.mjs, "{request}", "{output}"]
    wall_s: 5
    output_bytes: 100000
    env: [BOUNDBOOK_TEST_VARIABLE]
  grade:
    argv: [node, runner/command-grade.mjs, "{request}", "{candidate}", "{output}"]
    wall_s: 5
    output_bytes: 1000
  grace_s: 0.3
  candidate: answer.txt
  gpus: 0
  sources: { runner: runner }`;

/** A plan whose two commands do what the two words of each prompt say. */
export const COMMAND_PLAN = {
  runner: COMMAND_RUNNER,
  grader: '{ kind: report, reward: { min: 0, max: 1 } }',
  attempts: `{ replacements: 1, regrades: 1, breaker: 50, rules: [
    { id: grader-silent, when: { stage: grade, cause: report_missing, exit_status: 0 }, attribute: infrastructure, sufficient: true } ] }`,
} satisfies Partial<PlanSetting>;
