import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readProtocol } from '../../src/protocol/read.js';
import { protocolText } from '../runner/fixture.js';
import { harborPlan } from '../runner/harbor-plan.js';

const TEXT = protocolText('requests.log', harborPlan(['pass']));

/** The faults of a plan after a change, as pointers. */
function faults(edit: (text: string) => string): readonly string[] {
  const text = edit(TEXT);
  expect(text).not.toBe(TEXT);
  try {
    readProtocol(Buffer.from(text), 'plan.yaml');
    return [];
  } catch (error) {
    return (error as { faults: readonly { pointer?: string; message: string }[] }).faults.map(
      ({ message }) => message,
    );
  }
}

const put = (from: string | RegExp, to: string) => (text: string) => text.replace(from, to);

describe('a plan with a harbor runner', () => {
  test('is read', () => {
    const { protocol } = readProtocol(Buffer.from(TEXT), 'plan.yaml');
    expect(protocol.runner.adapter).toBe('harbor');
  });

  test('as the guide shows it is read', () => {
    const guide = readFileSync(new URL('../../docs/guide.md', import.meta.url), 'utf8');
    const block = /```yaml\n(runner:\n {2}adapter: harbor\n[\s\S]*?)```/.exec(guide)?.[1] ?? '';
    const text = TEXT.replace(/runner: \n[\s\S]*?(?=attempts:)/, block);
    const { runner } = readProtocol(Buffer.from(text), 'plan.yaml').protocol;
    expect(runner).toMatchObject({ adapter: 'harbor', trial: { wall_s: 10800 } });
  });

  test.each([
    [
      'another grader',
      put(/grader: .*/, 'grader: { kind: integer, answer: answer }'),
      /does not go with the adapter "harbor"/,
    ],
    ['no config in the arguments', put('-c, "{config}"', '-c'), /\{config\} is missing/],
    ['retries', put('trial, start,', 'trial, start, --max-retries=2,'), /"--max-retries=2" is not accepted/],
    ['a resumed trajectory', put('trial, start,', 'trial, start, --resume-trajectory,'), /is not accepted/],
    [
      'a trial name',
      put('environment: {', 'trial_name: mine\n      environment: {'),
      /Boundbook sets this itself/,
    ],
    ['an unknown placeholder', put('"{temperature}"', '"{warmth}"'), /\{warmth\} is not known here/],
    ['what a condition does not say', put('"{temperature}"', '"{presence_penalty}"'), /does not say it/],
    ['no agent', put('agent: { name: terminus-2,', 'agent: {'), /names no agent/],
    [
      'inner limits above the deadline',
      put('kwargs: { seed', 'override_timeout_sec: 60, kwargs: { seed'),
      /outer deadline is 30 s/,
    ],
    ['a regrade without its candidate', put('"{candidate}"', 'p'), /not told its candidate/],
    ['no regrade', put(/ {2}regrade:[\s\S]*?(?=\n {2}grace_s)/, ''), /the runner has no regrade trial/],
    ['another source', put('source: tasks,', 'source: taks,'), /"taks" is no declared source/],
    ['a candidate outside', put('file: artifacts/', 'file: ../'), /is no path inside/],
    ['a candidate of the verifier', put('file: artifacts/', 'file: verifier/'), /no place for a candidate/],
    ['other words', put(/model_service: .*/, 'model_service: external'), /./],
    [
      'a second seed that Harbor is not told',
      (text: string) =>
        text
          .replace('training_seeds: [42]', 'training_seeds: [42, 43]')
          .replace('openai/{model}', 'openai/m'),
      /does not say \{model\}/,
    ],
    [
      'a difference that Harbor is not told',
      (text: string) =>
        text
          .replace(/ {2}default:\n([\s\S]*?)arms:\n/, (whole) => {
            const second = whole
              .replace('default:', 'other:')
              .replace('top_p: 1', 'top_p: 0.5')
              .replace('arms:\n', '');
            return `${second}${whole}  N: { model: M, condition: other }\n`;
          })
          .replace('arms: [M]', 'arms: [M, N]'),
      /conditions differ in top_p/,
    ],
  ])('%s is refused', (_what, edit, message) => {
    expect(faults(edit).join('\n')).toMatch(message);
  });
});
