// Stands for Harbor 0.22.0: `trial start -c CONFIG` makes one trial folder in the documented layout. What the trial comes
// to is the name of the task's folder; see MODES. After a `~` it says where the trial hangs; see linger.mjs. A trial whose agent is `patch:Apply` applies a patch and is verified.
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { Linger } from './linger.mjs';

const args = process.argv.slice(2);
const config = JSON.parse(readFileSync(args[args.indexOf('-c') + 1], 'utf8'));
const task = basename(config.task.path);
const [mode, where] = task.split('~');
const folder = join(config.trials_dir, config.trial_name);
const regrade = config.agent.import_path === 'patch:Apply';
const digest = (text) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
if (existsSync(folder)) throw new Error('the trial folder exists');
const log = join(config.task.path, '../../trials.log');
const before = existsSync(log)
  ? readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(`${task} `))
  : [];
const linger = new Linger(join(log, '..'), task, config.trial_name, where, { before, regrade });
appendFileSync(log, `${task} ${config.trial_name} ${regrade ? 'regrade' : 'trial'}${linger.haunted()}\n`);

const put = (name, content) => {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), content);
};
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const stamp = () => new Date().toISOString().replace('Z', '000+00:00');
const timing = () => ({ started_at: stamp(), finished_at: stamp() });

const whole = { job_id: null, timeout_multiplier: 1, source_trial: null, install_only: false, ...config };
const lock = {
  schema_version: 2,
  task: { name: mode, version: null, type: 'local', digest: digest('task'), path: config.task.path },
  timeout_multiplier: 1,
  agent: { override_timeout_sec: null, ...config.agent },
  environment: { delete: true, ...config.environment },
  verifier: { environment_mode: 'shared', ...config.verifier },
  source_trial: null,
};
const result = {
  id: '00000000-0000-4000-8000-000000000000',
  task_name: mode,
  trial_name: config.trial_name,
  trial_uri: `file://${folder}`,
  task_checksum: 'deprecated',
  config: whole,
  agent_info: { name: config.agent.name ?? 'patch', version: '1', model_info: null },
  agent_result: { n_input_tokens: 10, n_output_tokens: 5 },
  verifier_result: null,
  exception_info: null,
  started_at: stamp(),
  finished_at: null,
  environment_setup: null,
  agent_setup: null,
  agent_execution: null,
  verifier: null,
};
const raised = (name) => {
  const message = `${name}: as a trial reports it`;
  result.exception_info ??= {
    exception_type: name,
    exception_message: message,
    exception_traceback: '…',
    occurred_at: stamp(),
  };
  put('exception.txt', `Traceback\n${message}\n`);
};
const patch = () =>
  put(
    'artifacts/logs/artifacts/patch.diff',
    regrade ? readFileSync(config.agent.kwargs.patch) : `patch of ${mode}\n`,
  );
const end = (edit = () => undefined) => {
  result.finished_at = mode === 'no-end' ? null : stamp();
  edit();
  put('result.json', JSON.stringify(result, null, 2));
};

put('config.json', JSON.stringify(config));
put('lock.json', JSON.stringify(lock));
put('trial.log', 'a trial\n');
mkdirSync(join(folder, 'agent'), { recursive: true });
mkdirSync(join(folder, 'verifier'), { recursive: true });

const REWARDED = [
  'AgentTimeoutError',
  'NonZeroAgentExitCodeError',
  'ApiRateLimitError',
  'ContextWindowExceededError',
];
const VERIFYING = [
  'VerifierTimeoutError',
  'RewardFileNotFoundError',
  'RewardFileEmptyError',
  'VerifierOutputParseError',
  'AddTestsDirError',
  'DownloadVerifierDirError',
  'ValidationError',
  'EnvironmentDead.verifier',
];

/** Runs the phases, as far as they come. */
async function phases({
  until = 'verifier',
  exception = null,
  rewards = { reward: 1 },
  text = '1',
  json = null,
} = {}) {
  result.environment_setup = timing();
  if (until === 'environment_setup') return raised(exception);
  result.agent_setup = timing();
  if (until === 'agent_setup') return raised(exception);
  result.agent_execution = timing();
  put('agent/trajectory.json', '{}');
  patch();
  if (until === 'agent_execution') return raised(exception);
  result.verifier = timing();
  if (text !== null) put('verifier/reward.txt', text);
  if (json !== null) put('verifier/reward.json', json);
  put('verifier/test-stdout.txt', 'tests ran\n');
  result.verifier_result = rewards === null ? null : { rewards };
  result.verifier.finished_at = stamp();
}

const MODES = {
  pass: () => phases(),
  fail: () => phases({ rewards: { reward: 0 }, text: '0\n' }),
  json: () => phases({ rewards: { reward: 0.5, other: 1 }, text: null, json: '{"reward":0.5,"other":1}' }),
  'json-coerced': () => phases({ text: null, json: '{"reward":true}' }),
  'both-agree': () => phases({ json: '{"reward":1.0}' }),
  'stop-failed': async () => {
    await phases();
    raised('RuntimeError');
  },
  hidden: async () => {
    await phases({ rewards: null, text: null });
    raised('AgentTimeoutError');
  },
  'null-reward': () => phases({ rewards: { reward: null }, text: 'nan' }),
  'null-rewards': () => phases({ rewards: null, text: null }),
  'no-key': () => phases({ rewards: { score: 1 }, text: null, json: '{"score":1}' }),
  'too-high': () => phases({ rewards: { reward: 2 }, text: '2' }),
  'as-text': () => phases({ rewards: { reward: '1' } }),
  'not-whole': () => phases({ text: '1.0abc' }),
  'no-file': () => phases({ text: null }),
  disagree: () => phases({ rewards: { reward: 1 }, text: '0', json: '{"reward":1}' }),
  'json-twice': () => phases({ text: null, json: '{"reward":0,"reward":1}' }),
  planted: async () => {
    put('verifier/reward.json', '{"reward":1}');
    await pause(60);
    await phases({ text: null });
  },
  'planted-for-later': async () => {
    put('verifier/reward.json', '{"reward":1}');
    utimesSync(
      join(folder, 'verifier/reward.json'),
      new Date(Date.now() + 60_000),
      new Date(Date.now() + 60_000),
    );
    await pause(60);
    await phases({ text: null });
  },
  stale: async () => {
    put('verifier/reward.txt', '1');
    utimesSync(join(folder, 'verifier/reward.txt'), new Date(0), new Date(0));
    await phases({ text: null });
  },
  'planted-elsewhere': async () => {
    put('artifacts/logs/artifacts/reward.json', '{"reward":1}');
    put('agent/reward.txt', '1');
    await phases({ rewards: { reward: 0 }, text: '0' });
  },
  naive: async () => {
    await phases();
    result.verifier.started_at = result.verifier.started_at.slice(0, 19);
  },
  steps: async () => {
    await phases();
    result.step_results = [
      { step_name: 'one', verifier_result: null, exception_info: { exception_type: 'X' } },
    ];
  },
  'no-patch': async () => {
    await phases();
    renameSync(join(folder, 'artifacts/logs/artifacts/patch.diff'), join(folder, 'gone'));
  },
  'link-patch': async () => {
    await phases();
    renameSync(join(folder, 'artifacts/logs/artifacts/patch.diff'), join(folder, 'gone'));
    symlinkSync('/etc/hostname', join(folder, 'artifacts/logs/artifacts/patch.diff'));
  },
  'link-reward': async () => {
    await phases();
    renameSync(join(folder, 'verifier/reward.txt'), join(folder, 'reward'));
    symlinkSync('../reward', join(folder, 'verifier/reward.txt'));
  },
  'long-log': async () => {
    await phases();
    truncateSync(join(folder, 'trial.log'), 100 * 2 ** 20);
    appendFileSync(join(folder, 'trial.log'), 'the end\n');
  },
  'linked-verifier': async () => {
    await phases();
    renameSync(join(folder, 'verifier'), join(folder, 'elsewhere'));
    symlinkSync('elsewhere', join(folder, 'verifier'));
  },
  'no-end': () => phases(),
  'no-end-of-verifier': async () => {
    await phases();
    result.verifier.finished_at = null;
  },
  'no-times-of-agent': async () => {
    await phases();
    result.agent_execution = null;
    delete result.agent_setup;
  },
  'verifier-before-agent': async () => {
    await phases();
    result.verifier.started_at = new Date(Date.parse(result.agent_execution.started_at) - 5).toISOString();
  },
  'exception-as-text': async () => {
    await phases({ rewards: null, text: null });
    result.exception_info = 'VerifierTimeoutError';
  },
  'exception-without-type': () => {
    result.environment_setup = timing();
    result.exception_info = { exception_message: 'no type' };
  },
  'rewarded-with-exception-as-text': async () => {
    await phases();
    result.exception_info = ['AgentTimeoutError'];
  },
  'idle-nothing': () => undefined,
  'agent-crash': () => phases({ until: 'agent_execution', exception: 'RuntimeError' }),
  'agent-cancelled': () => phases({ until: 'agent_execution', exception: 'CancelledError' }),
  'EnvironmentDead.agent': () => phases({ until: 'agent_execution', exception: 'EnvironmentDead' }),
  'regrade-passes': async () => {
    if (regrade) return phases();
    await phases({ rewards: null, text: null });
    raised('AddTestsDirError');
  },
  'regrade-fails': async () => {
    await phases({ rewards: null, text: null });
    raised('AddTestsDirError');
  },
  'regrade-of-another': async () => {
    await phases(regrade ? {} : { rewards: null, text: null });
    if (regrade) put('artifacts/logs/artifacts/patch.diff', 'another patch\n');
    else raised('AddTestsDirError');
  },
  'regrade-without-environment': async () => {
    if (regrade) return phases({ until: 'environment_setup', exception: 'EnvironmentStartTimeoutError' });
    await phases({ rewards: null, text: null });
    raised('AddTestsDirError');
  },
  'exit-3-rewarded': async () => {
    await phases();
    process.exitCode = 3;
  },
};
for (const name of REWARDED) {
  MODES[name] = async () => {
    await phases();
    raised(name);
  };
}
for (const name of VERIFYING) {
  MODES[name] = async () => {
    await phases({ rewards: null, text: null });
    raised(name.split('.')[0]);
  };
}
for (const [name, until] of [
  ['EnvironmentStartTimeoutError', 'environment_setup'],
  ['HealthcheckError', 'environment_setup'],
  ['AgentSetupTimeoutError', 'agent_setup'],
]) {
  // The second trial of the task comes through.
  MODES[name] = () => (before.length > 0 ? phases() : phases({ until, exception: name }));
  MODES[`${name}.always`] = () => phases({ until, exception: name });
}

/** Edits of a sound trial's papers. */
const EDITS = {
  'of-another-trial': () => {
    result.trial_name = 'bb-000000000000-00000000000000000000000000000000';
  },
  'another-agent': () => {
    result.agent_info.name = 'another';
  },
  'another-model': () => {
    result.config.agent = { ...result.config.agent, model_name: 'openai/other' };
  },
  'another-lock': () =>
    put('lock.json', JSON.stringify({ ...lock, agent: { ...lock.agent, model_name: 'openai/other' } })),
  'another-task': () =>
    put('lock.json', JSON.stringify({ ...lock, task: { ...lock.task, digest: digest('other') } })),
  'another-seed': () =>
    put('config.json', JSON.stringify({ ...config, agent: { ...config.agent, kwargs: { seed: 1 } } })),
  'another-multiplier': () => {
    result.config.timeout_multiplier = 2;
  },
  derived: () => put('lock.json', JSON.stringify({ ...lock, source_trial: { action: 'regrade' } })),
  'no-lock': () => renameSync(join(folder, 'lock.json'), join(folder, 'lock.old')),
};

/** What stands in place of a sound result. */
const RESULTS = {
  'nan-result': (text) => text.replace('"reward": 1', '"reward": NaN'),
  'torn-result': (text) => text.slice(0, 700),
  'twice-result': (text) => text.replace('"verifier_result"', '"verifier_result": null, "verifier_result"'),
  'bytes-result': (text) =>
    Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.from([0xff, 0xfe]), Buffer.from('}')]),
  'array-result': () => '[]',
  'half-a-character': (text) => text.replace('"trial_uri": "file', '"trial_uri": "\\ud800file'),
};

if (mode === 'no-folder' || mode === 'no-home') {
  // A home holds one attempt: the trials folder, and the trial below it.
  rmSync(mode === 'no-home' ? join(folder, '../..') : folder, { recursive: true });
  process.exit(0);
}

await linger.at('start', () =>
  phases({ until: 'agent_execution', exception: 'CancelledError' }).then(() => end()),
);
if (mode === 'no-result') process.exit(0);
if (mode === 'exit-3') process.exit(3);
if (mode === 'hang') {
  process.on('SIGTERM', () => undefined);
  setInterval(() => undefined, 1000);
} else if (mode === 'killed') process.kill(process.pid, 'SIGKILL');
else if (mode === 'link-result') {
  await phases();
  end();
  renameSync(join(folder, 'result.json'), join(folder, 'elsewhere.json'));
  symlinkSync('elsewhere.json', join(folder, 'result.json'));
} else if (mode === 'linked-folder') {
  await phases();
  end();
  renameSync(folder, `${folder}-elsewhere`);
  symlinkSync(`${basename(folder)}-elsewhere`, folder);
} else if (mode === 'huge-result') {
  await phases();
  end();
  truncateSync(join(folder, 'result.json'), 65 * 2 ** 20);
} else if (mode in EDITS) {
  await phases();
  end(EDITS[mode]);
} else if (mode in RESULTS) {
  await phases();
  end();
  writeFileSync(
    join(folder, 'result.json'),
    RESULTS[mode](readFileSync(join(folder, 'result.json'), 'utf8')),
  );
} else {
  await MODES[mode]();
  end();
  if (linger.isDue('torn')) truncateSync(join(folder, 'result.json'), 700);
  await linger.at('end');
}
