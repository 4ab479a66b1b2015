import { describe, expect, test } from 'vitest';
import { faults, positionOf, read, spoil, VALID } from './support.js';

type Case = readonly [string, readonly (readonly [string, string])[], string, RegExp];

const COMMAND_RUNNER: readonly [string, string] = [
  VALID.slice(VALID.indexOf('  adapter: openai'), VALID.indexOf('attempts:')),
  `  adapter: command
  generate: { argv: [gen, "{request}", "{output}"], wall_s: 60, output_bytes: 1000 }
  grade: { argv: [grade, "{candidate}", "{task}"], wall_s: 60, output_bytes: 1000 }
  grace_s: 5
  candidate: answer.txt
  gpus: 0
  sources: { tool: src/tool }
`,
];
const REPORT: readonly [string, string] = [
  'grader: { kind: exact, answer: answer }',
  'grader: { kind: report, reward: { min: 0, max: 1 } }',
];

/** name, edits, pointer of the fault, message */
const CASES: readonly Case[] = [
  [
    'an arm of an unknown model',
    [['O: { model: O,', 'O: { model: P,']],
    '/arms/O/model',
    /"P" is no declared model/,
  ],
  [
    'an arm of an unknown condition',
    [['model: O, condition: default', 'model: O, condition: defualt']],
    '/arms/O/condition',
    /no declared condition/,
  ],
  [
    'two arms of one model and condition',
    [['arms:\n', 'arms:\n  P: { model: O, condition: default }\n']],
    '/arms/O',
    /same model and condition/,
  ],
  [
    'two equal conditions (F-153)',
    [
      [
        'conditions:\n',
        `conditions:\n  other:\n${VALID.slice(VALID.indexOf('    prompt:'), VALID.indexOf('arms:'))}`,
      ],
    ],
    '/conditions/default',
    /equal in every setting/,
  ],
  ['a queue of unknown tasks', [['tasks: half', 'tasks: hlf']], '/queues/side/tasks', /no declared task set/],
  [
    'a queue with an unknown arm',
    [['arms: [O, base]', 'arms: [O, bse]']],
    '/queues/main/arms/1',
    /no declared arm/,
  ],
  ['a queue with an arm twice', [['arms: [O, base]', 'arms: [O, O]']], '/queues/main/arms/1', /listed twice/],
  [
    'an evaluation seed twice',
    [['reps: 4,', 'reps: 4, evaluation_seeds: [0, 0],']],
    '/queues/main/evaluation_seeds/1',
    /listed twice/,
  ],
  ['a training seed twice', [['[42, 7]', '[42, 42]']], '/models/O/training_seeds/1', /listed twice/],
  [
    'a subset of nothing declared',
    [['subset_of: all', 'subset_of: al']],
    '/task_sets/half/subset_of',
    /no declared task set/,
  ],
  [
    'a subset larger than its set',
    [['ids: tasks/half.txt, count: 2', 'ids: tasks/half.txt, count: 5']],
    '/task_sets/half/count',
    /a subset of 4 tasks cannot have 5/,
  ],
  ['a subset of itself', [['subset_of: all', 'subset_of: half']], '/task_sets/half', /made of itself/],
  [
    'a circle of sets',
    [
      ['subset_of: all', 'subset_of: two'],
      ['models:\n', '  two: { union_of: [all, half], count: 6 }\nmodels:\n'],
    ],
    '/task_sets/half',
    /made of itself/,
  ],
  [
    'a union with an unknown part',
    [['models:\n', '  two: { union_of: [all, hlf], count: 6 }\nmodels:\n']],
    '/task_sets/two/union_of/1',
    /no declared task set/,
  ],
  [
    'a union with a part twice',
    [['models:\n', '  two: { union_of: [half, half], count: 4 }\nmodels:\n']],
    '/task_sets/two/union_of/1',
    /listed twice/,
  ],
  [
    'a union of another count',
    [['models:\n', '  two: { union_of: [all, half], count: 5 }\nmodels:\n']],
    '/task_sets/two/count',
    /6 tasks together, not 5/,
  ],
  [
    'a score of an unknown queue',
    [['{ id: main, queue: main }', '{ id: main, queue: mian }']],
    '/analysis/scores/0/queue',
    /no declared queue/,
  ],
  [
    'a table of an unknown partition',
    [['partitions: [half]', 'partitions: [third]']],
    '/analysis/tables/0/partitions/0',
    /no declared task set/,
  ],
  [
    'a contrast of an unknown arm',
    [['minuend: O', 'minuend: Q']],
    '/analysis/contrasts/0/minuend',
    /no declared arm/,
  ],
  [
    'a contrast of one arm',
    [['subtrahend: base', 'subtrahend: O']],
    '/analysis/contrasts/0',
    /two different arms/,
  ],
  [
    'a contrast whose arm does not run in the queue',
    [['tasks: all, reps: 4, arms: [O, base]', 'tasks: all, reps: 4, arms: [O]']],
    '/analysis/contrasts/0/subtrahend',
    /does not run in the queue "main"/,
  ],
  [
    'a primary contrast on an exploratory queue',
    [['subtrahend: base, queue: main', 'subtrahend: base, queue: side']],
    '/analysis/contrasts/0/role',
    /needs a confirmatory queue/,
  ],
  [
    'a contrast in both directions (P9)',
    [
      [
        '  tables:\n',
        '    - { id: x, minuend: base, subtrahend: O, queue: main, role: secondary }\n  tables:\n',
      ],
    ],
    '/analysis/contrasts/1',
    /same two arms/,
  ],
  [
    'a contrast without a common training seed',
    [['base: { weights: models/base }', 'base: { training_seeds: [1], weights: "b-{seed}" }']],
    '/analysis/contrasts/0',
    /no training seed in common/,
  ],
  [
    'a decision on an unknown contrast',
    [['contrast: O-base', 'contrast: base-O']],
    '/analysis/decisions/0/contrast',
    /no declared contrast/,
  ],
  [
    'a decision with one outcome',
    [['otherwise: stay', 'otherwise: take O']],
    '/analysis/decisions/0/otherwise',
    /both outcomes/,
  ],
  [
    'precision of an unknown queue',
    [['queue: main, assumed', 'queue: man, assumed']],
    '/precision/0/queue',
    /no declared queue/,
  ],
  [
    'no queues',
    [[VALID.slice(VALID.indexOf('queues:\n'), VALID.indexOf('sampling:')), 'queues: {}\n']],
    '/queues',
    /nothing is planned/,
  ],
  [
    'the order by a field twice',
    [['[arm, training_seed]', '[arm, arm]']],
    '/order/group_by/1',
    /listed twice/,
  ],
  ['seeds without {seed}', [['"models/O-{seed}"', 'models/O']], '/models/O/weights', /do not name \{seed\}/],
  [
    '{seed} without seeds',
    [['weights: models/base', 'weights: "b-{seed}"']],
    '/models/base/weights',
    /has no training_seeds/,
  ],
  [
    '{seed} in a tokenizer without seeds',
    [['weights: models/base', 'weights: b, tokenizer: "t-{seed}"']],
    '/models/base/tokenizer',
    /has no training_seeds/,
  ],
  [
    'another placeholder in weights',
    [['"models/O-{seed}"', '"models/{arm}-{seed}"']],
    '/models/O/weights',
    /\{arm\} is not known/,
  ],
  [
    'an unknown placeholder of the service',
    [['"{port}"]', '"{port}", "{gpu}"]']],
    '/runner/service/argv/3',
    /\{gpu\} is not known/,
  ],
  ['a service without weights', [['"{weights}", ', '']], '/runner/service/argv', /\{weights\} is missing/],
  ['a service without port', [[', "{port}"]', ']']], '/runner/service/argv', /\{port\} is missing/],
  [
    'a service with a tokenizer that models lack',
    [['"{port}"]', '"{port}", "{tokenizer}"]']],
    '/models/O',
    /declares none/,
  ],
  [
    'an open brace in a prompt',
    [['"{question}"', '"{question"']],
    '/conditions/default/prompt/user',
    /without a closing/,
  ],
  [
    'a closing brace in a prompt',
    [['"{question}"', '"question}"']],
    '/conditions/default/prompt/user',
    /without an opening/,
  ],
  ['empty braces in a prompt', [['"{question}"', '"{}"']], '/conditions/default/prompt/user', /no name/],
  [
    'a report grader with openai',
    [REPORT],
    '/conditions/default/grader/kind',
    /does not go with the adapter "openai"/,
  ],
  [
    'an exact grader with command',
    [COMMAND_RUNNER],
    '/conditions/default/grader/kind',
    /does not go with the adapter "command"/,
  ],
  [
    '{candidate} while generating',
    [COMMAND_RUNNER, REPORT, ['"{output}"], wall', '"{candidate}"], wall']],
    '/runner/generate/argv/2',
    /\{candidate\} is not known/,
  ],
  [
    'a candidate outside its folder',
    [COMMAND_RUNNER, REPORT, ['answer.txt', '../answer.txt']],
    '/runner/candidate',
    /no path inside/,
  ],
  [
    'an absolute candidate',
    [COMMAND_RUNNER, REPORT, ['answer.txt', '/tmp/x']],
    '/runner/candidate',
    /no path inside/,
  ],
  [
    'an empty reward range',
    [COMMAND_RUNNER, REPORT, ['max: 1 }', 'max: 0 }']],
    '/conditions/default/grader/reward',
    /is empty/,
  ],
  [
    'a reward range without 0',
    [COMMAND_RUNNER, REPORT, ['min: 0, max: 1', 'min: 1, max: 2']],
    '/conditions/default/grader/reward',
    /does not hold 0/,
  ],
  [
    'a text that is no pattern',
    [['{ cause: connection_lost }', '{ cause: connection_lost, text: "(" }']],
    '/attempts/rules/0/when/text',
    /no regular expression/,
  ],
  [
    'a rule that suffices on text (law 7)',
    [['{ cause: connection_lost }', '{ text: reset }']],
    '/attempts/rules/0/sufficient',
    /law 7/,
  ],
  [
    'a rule that suffices on a name (law 7)',
    [['{ cause: connection_lost }', '{ exception: EnvironmentDead }']],
    '/attempts/rules/0/sufficient',
    /law 7/,
  ],
  [
    'a rule that suffices on a name and the stage (law 7)',
    [['{ cause: connection_lost }', '{ stage: grade, exception: VerifierTimeoutError }']],
    '/attempts/rules/0/sufficient',
    /law 7/,
  ],
  ...[
    '{ exit_status: 1, text: reset }',
    '{ phase: running, text: reset }',
    '{ phase: [spawn, running], cause: [exit_status], text: reset }',
    '{ signal: SIGKILL, exception: EnvironmentDead }',
    '{ stage: generate, cause: [killed_by_signal, connection_lost], text: reset }',
    '{ cause: time_limit, phase: collect, text: reset }',
    '{ oom_kill: false, text: CUDA }',
    '{ service_alive: true, first_token: false, text: reset }',
    '{ phase: agent_execution, cause: trial_exception, text: CUDA }',
    '{ phase: verifier, exception: VerifierTimeoutError }',
  ].map(
    (when): Case => [
      `a rule that suffices on text beside what a candidate can bring about (law 7): ${when}`,
      [['{ cause: connection_lost }', when]],
      '/attempts/rules/0/sufficient',
      /law 7/,
    ],
  ),
  [
    'a rule equal to an earlier one',
    [['{ http_status: [429, 5xx] }', '{ cause: [connection_lost] }']],
    '/attempts/rules/1/when',
    /"broken" before it/,
  ],
  [
    'a rule inside an earlier one',
    [['{ http_status: [429, 5xx] }', '{ cause: connection_lost, phase: body }']],
    '/attempts/rules/1/when',
    /never fire/,
  ],
  [
    'a status inside an earlier class',
    [
      ['{ cause: connection_lost }', '{ http_status: [5xx, 429] }'],
      ['{ http_status: [429, 5xx] }', '{ http_status: 503 }'],
    ],
    '/attempts/rules/1/when',
    /never fire/,
  ],
  [
    'a rule without conditions',
    [['{ cause: connection_lost }', '{}']],
    '/attempts/rules/0/when',
    /at least one condition/,
  ],
];

describe('references and settings', () => {
  test.each(CASES)('%s', (_name, edits, pointer, message) => {
    const text = spoil(...edits);
    const found = faults(text);
    const fault = found.find((each) => each.where === pointer && message.test(each.message));
    expect(fault, JSON.stringify(found, null, 1)).toBeDefined();
    expect(fault?.hint).not.toBe('');
    expect(fault?.line).toBeGreaterThan(1);
  });

  test.each([
    '{ phase: environment_setup, exception: EnvironmentStartTimeoutError }',
    '{ phase: spawn, text: ENOENT }',
    '{ http_status: 400, text: context }',
    '{ service_alive: false, text: reset }',
    '{ phase: verifier, cause: trial_exception, exception: AddTestsDirError }',
    '{ host_event: boot_changed, signal: SIGTERM, text: shutdown }',
  ])('a text may narrow a rule that suffices by what no candidate can bring about: %s', (when) => {
    expect(() => read(spoil(['{ cause: connection_lost }', when]))).not.toThrow();
  });

  test('a fault has the place of the value that is wrong', () => {
    const text = spoil(['tasks: half', 'tasks: hlf']);
    expect(faults(text)).toEqual([
      {
        where: '/queues/side/tasks',
        message: '"hlf" is no declared task set',
        hint: 'Did you mean "half"? Known here: all, half.',
        ...positionOf(text, 'hlf,'),
      },
    ]);
  });

  test('chains of sets end at 50, and large protocols are read in little time', () => {
    const chain = (length: number) =>
      Array.from(
        { length },
        (_, i) => `  s${i}: { subset_of: ${i === 0 ? 'all' : `s${i - 1}`}, ids: i.txt, count: 1 }\n`,
      ).join('');
    expect(read(spoil(['models:\n', `${chain(49)}models:\n`])).protocol.task_sets.s48).toBeDefined();
    const start = performance.now();
    const found = faults(spoil(['models:\n', `${chain(4000)}models:\n`]));
    expect(found[0]?.message).toMatch(/made of itself, or of sets that are/);
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  test('the command adapter with a report grader is accepted', () => {
    expect(read(spoil(COMMAND_RUNNER, REPORT)).protocol.runner.adapter).toBe('command');
  });

  test('braces that are no placeholders stand for themselves in arguments', () => {
    const text = spoil(['"{port}"]', '"{port}", "{\\"a\\": 1}"]']);
    expect(read(text).protocol.runner).toMatchObject({
      service: { argv: ['serve', '{weights}', '{port}', '{"a": 1}'] },
    });
  });

  test('a narrower rule may stand before a wider one', () => {
    const text = spoil(['{ cause: connection_lost }', '{ http_status: 503 }']);
    expect(read(text).protocol.attempts.rules).toHaveLength(2);
  });

  test('a text may narrow a typed signal', () => {
    const text = spoil(['{ cause: connection_lost }', '{ cause: connection_lost, text: reset }']);
    expect(read(text).protocol.attempts.rules[0]?.sufficient).toBe(true);
  });
});
