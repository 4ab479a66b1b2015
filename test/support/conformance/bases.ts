import { exportBundle } from '../../../src/audit/bundle/export.js';
import { digestOf, hexOf } from '../../../src/core/digest.js';
import { LooseBundle } from '../loose-bundle.js';
import { LIVES, type Life, makeSmallBook, type SmallBookOptions, streamOf, TASKS } from '../small-book.js';
import { harborProtocol, trialFields } from '../small-trials.js';
import { type AmendedName, isAmended, makeAmended } from './bases-amended.js';

const NAMED: Life = [
  {
    failure: { cause: 'http_status', phase: 'body', http_status: 400, exception: 'EnvironmentDead' },
    body: '{"error":{"type":"EnvironmentDead"}}',
  },
];

const KILLED = { cause: 'killed_by_signal', phase: 'running', signal: 'SIGKILL' } as const;

/** Right, half right, wrong, regraded, twice killed in grading, a fault of the model, undetermined, interrupted, crashed; two more. */
const COMMAND_LIVES: readonly Life[] = [
  [{ answer: 'adds carries' }],
  [{ answer: 'adds' }],
  [{ answer: 'neither' }],
  [{ ungraded: 'carries', failure: KILLED }, { answer: 'carries' }],
  [
    { ungraded: 'adds', failure: KILLED },
    { ungraded: 'adds', failure: KILLED },
  ],
  [{ failure: { cause: 'candidate_missing', phase: 'collect', exit_status: 0, service_alive: null } }],
  [{ failure: { cause: 'exit_status', phase: 'running', exit_status: 3, service_alive: null } }],
  [{ interrupted: 'adds carries' }],
  ['crash', { answer: 'carries adds' }],
  [{ answer: '' }],
  [{ answer: 'adds' }],
];

const COMMAND_TASKS = TASKS.map((task) => ({ ...task, tests: ['adds', 'carries'] }));

function commandProtocol(text: string): string {
  const step = 'wall_s: 10, output_bytes: 100000';
  const runner = `runner:
  adapter: command
  generate: { argv: [node, runner/server.js, "{request}"], ${step} }
  grade: { argv: [node, runner/server.js, "{candidate}"], ${step} }
  grace_s: 1
  candidate: answer.txt
  gpus: 0
  sources: { server: runner }
`;
  const grader = 'grader: { kind: report, expected_tests: tests, reward: { min: 0, max: 1 } }';
  return text
    .replace(/runner:\n(.*\n)*?attempts:/, `${runner}attempts:`)
    .replace('grader: { kind: integer, answer: answer }', grader)
    .replace(/- \{ id: lost.*\n.*\n.*\n/, () => COMMAND_RULES);
}

const COMMAND_RULES = `- { id: killed, when: { signal: SIGKILL }, attribute: infrastructure, sufficient: true }
    - { id: nothing, when: { cause: candidate_missing }, attribute: model, sufficient: true }
`;

/**
 * Rewards 1, 0 and null; 1 beside an exception; a verifier out of time, an environment that died, no reward file; a regrade
 * of the same patch, one that a dead run left, a replacement; a whole result that a dead run left.
 */
const TRIAL_LIVES: readonly Life[] = [
  [{ trial: {} }],
  [{ trial: { rewards: { reward: 0 } } }],
  [{ trial: { rewards: { reward: null } } }],
  [{ trial: { exception: 'AgentTimeoutError' } }],
  [{ trial: { rewards: null, exception: 'VerifierTimeoutError' } }],
  [{ trial: { until: 'agent_execution', exception: 'EnvironmentDead' } }],
  [{ trial: { rewards: null, exception: 'RewardFileNotFoundError' } }],
  [{ trial: { rewards: null, exception: 'AddTestsDirError' } }, { trial: {} }],
  [{ trial: { rewards: null, exception: 'AddTestsDirError' } }, { lost: { rewards: { reward: 0 } } }],
  [
    { trial: { until: 'agent_setup', exception: 'AgentSetupTimeoutError' } },
    { trial: { rewards: { reward: 0.25, style: 1 }, text: null, json: '{"reward":0.25,"style":1}' } },
  ],
  [{ adopted: { rewards: { reward: 0.5 } } }],
];

/** A stream that was cut after its second character. */
export function cutStream(model: string): string {
  return streamOf(model, '123', 'cut').split('\n\n').slice(0, 3).join('\n\n');
}

/** As {@link LIVES}; the first stops in a loop, the third and fourth were cut after a token, the fifth ended without saying why. */
function streamedLives(): readonly Life[] {
  const lost = { cause: 'connection_lost', phase: 'body', http_status: 200, first_token: true } as const;
  const [, second = [], , , , sixth = [], ...rest] = LIVES;
  return [
    [{ looped: ['so it is, ', 'so it is, ', 'so it', ' is, '] }],
    second,
    [{ failure: lost, body: cutStream('M@42') }, { answer: '7' }],
    [{ failure: lost, body: cutStream('M@42') }, { failure: { ...lost, first_token: false } }],
    [
      {
        failure: { cause: 'stream_cut', phase: 'body', http_status: 200, first_token: true },
        body: `${cutStream('base')}\n\n`,
      },
    ],
    sixth,
    ...rest,
  ];
}

/** What the stop rule of {@link streamedProtocol} ends. */
export const LOOPED = ['so it is, ', 'so it is, ', 'so it', ' is, '];

function loopedLives(): readonly Life[] {
  const loops: Life = [{ looped: LOOPED }];
  return streamedLives().map((life, i) => ([0, 1, 8, 10].includes(i) ? loops : life));
}

function streamedProtocol(text: string): string {
  return text
    .replace('endpoint: chat', 'endpoint: chat\n  stream: true')
    .replace(
      'answer: answer }',
      'answer: answer }\n    loop_stop: { unit: words, length: 3, repeats: 3, window: 12 }',
    );
}

const CANARY = `    canary: { prompts: ["1+1=", "Count to ten."], max_tokens: 2, logprobs: 0, logprob_tolerance: 0.01 }
`;

const EXTERNAL = `  service:
    external:
      origin: { M@42: "http://10.0.0.1:8000", base: "https://models.example:8443" }
      accepted: "the identity of the weights rests on the operator's word"
      api_key_env: MODELS_KEY
    ready: { path: /health, timeout_s: 10 }
    gpus: 1
${CANARY}`;

const WATCHED_RULES = `- { id: memory, when: { oom_kill: true }, attribute: model, sufficient: true }
    - { id: shut-down, when: { cause: killed_by_signal, host_event: boot_changed }, attribute: undetermined, sufficient: false }
`;

/** Sound books from which cases are made. */
const BOOKS = {
  /** Eleven slots, every kind of life, unblinded, with its report. */
  full: {},
  /** Six slots lived, five pending; outcomes are blinded. */
  blinded: { lives: LIVES.slice(0, 6), unblind: false },
  /** The same, unblinded in part. */
  partial: { lives: LIVES.slice(0, 6) },
  /** All outcomes shown from the start. */
  open: { protocol: (text) => text.replace('blinding: masked', 'blinding: none'), unblind: false },
  /** A rule that rests on the name of an exception. */
  named: {
    lives: [...LIVES.slice(0, 4), NAMED, ...LIVES.slice(5)],
    protocol: (text) =>
      text.replace(
        '    - { id: malformed',
        '    - { id: dead, when: { exception: EnvironmentDead }, attribute: infrastructure, sufficient: false }\n    - { id: malformed',
      ),
  },
  /** Two commands for each attempt, and reports of tests with rewards between 0 and 1. */
  command: { lives: COMMAND_LIVES, tasks: COMMAND_TASKS, protocol: commandProtocol },
  /** The same, and in its first slot a command that was killed while it made a candidate. */
  cut: {
    lives: [[{ failure: { ...KILLED, service_alive: null } }, { answer: 'adds' }], ...COMMAND_LIVES.slice(1)],
    tasks: COMMAND_TASKS,
    protocol: commandProtocol,
  },
  /** The same with little room for output, an artifact, a stop command, and rules on memory and on the host. */
  watched: {
    lives: COMMAND_LIVES,
    tasks: COMMAND_TASKS,
    protocol: (text) =>
      commandProtocol(text)
        .replace(
          '"{request}"], wall_s: 10, output_bytes: 100000',
          '"{request}"], wall_s: 10, idle_s: 5, output_bytes: 4, stop: [node, runner/server.js, "{container}"]',
        )
        .replace('  gpus: 0\n', '  artifacts: [{ name: log, file: log.txt, max_bytes: 10 }]\n  gpus: 0\n')
        .replace('    - { id: killed', () => `    ${WATCHED_RULES}    - { id: killed`),
  },
  /** The same with a declared schema of reports, which comes first in the pack. */
  schema: {
    lives: COMMAND_LIVES,
    tasks: COMMAND_TASKS,
    protocol: (text) =>
      commandProtocol(text).replace('tests: tests,', 'tests: tests, report_schema: schemas/report.json,'),
  },
  /** Trials of Harbor, with every kind of end. */
  trials: {
    lives: TRIAL_LIVES,
    tasks: TASKS.map((task) => ({ ...task, ...trialFields(task.id) })),
    protocol: harborProtocol,
  },
  /** Streamed answers, and a stop rule for those that repeat themselves. */
  streamed: { lives: streamedLives(), protocol: streamedProtocol },
  /** The same, with four of eleven stopped in a loop. */
  looped: { lives: loopedLives(), protocol: streamedProtocol },
  /** Undetermined slots need a verdict before outcomes are shown; none was given, so it is unblinded in part. */
  judged: {
    unblind: false,
    protocol: (text) => text.replace('  breaker: 10', '  breaker: 10\n  adjudication: required'),
  },
  /** Services that describe themselves and answer a canary at every start and end; the program is newer the second time. */
  served: { protocol: (text) => text.replace('    gpus: 1\n', `    gpus: 1\n${CANARY}`) },
  /** Services that the gate did not start. */
  external: { protocol: (text) => text.replace(/ {2}service:\n( {4}.*\n)*/, EXTERNAL) },
} as const satisfies Record<string, SmallBookOptions>;

export type BaseName = keyof typeof BOOKS | 'no_tasks' | 'no_answers' | AmendedName;

/** @param root an empty folder */
export async function makeBase(name: BaseName, root: string): Promise<LooseBundle> {
  if (isAmended(name)) return makeAmended(name, root);
  const redacted = name === 'no_tasks' || name === 'no_answers';
  await makeSmallBook(root, name === 'no_tasks' || name === 'no_answers' ? BOOKS.full : BOOKS[name]);
  const redact = { tasks: name === 'no_tasks', answers: name === 'no_answers', digests: [] };
  const { folder } = await exportBundle(root, undefined, {
    out: 'bundle',
    beforeUnblinding: true,
    ...(redacted ? { redact } : {}),
  });
  const bundle = LooseBundle.read(folder);
  if (redacted) fixCommitments(bundle);
  return bundle;
}

/** Salts are drawn at random; a case is the same bytes each time. */
function fixCommitments({ ledger: { objects } }: LooseBundle): void {
  for (const [hex, content] of objects) {
    if (typeof content !== 'string') continue;
    objects.set(hex, content.replace(/[0-9a-f]{64}$/, hexOf(digestOf(Buffer.from(`salted ${hex}`)))));
  }
}
