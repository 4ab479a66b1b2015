import { canonicalText } from '../core/canonical-json.js';
import { checkArgv, checkRelative } from './argument-checks.js';
import { CONDITION_NAMES, conditionValue, configPlaceholders } from './config-template.js';
import type { Path } from './json-pointer.js';
import type { FaultCollector } from './references.js';
import type { Condition } from './schema/conditions.js';
import type { HarborRunner, HarborTrial } from './schema/harbor-runner.js';
import type { Protocol } from './schema/protocol.js';

const ARGUMENTS = ['config', 'trial', 'trials', 'task', 'weights', 'tokenizer'];
const CONFIG_NAMES: readonly string[] = [...CONDITION_NAMES, 'model', 'sampling_seed', 'task_id'];

/** Members of a trial config that Boundbook writes itself, or that would make a trial something else. */
const RESERVED = ['trial_name', 'trials_dir', 'task', 'job_id', 'source_trial', 'retry'];

/** Arguments under which Harbor runs more than one attempt, or goes on from another one (P11). */
const REPEATING =
  /^(?:-r|--max-retries|--retry-include|--retry-exclude|--load-trajectory|--resume-trajectory)(?:=|$)/;

/** Checks what the form of a Harbor runner cannot hold. */
export function checkHarbor(protocol: Protocol, runner: HarborRunner, collector: FaultCollector): void {
  const path: Path = ['runner'];
  checkTrial(protocol, runner.trial, [...path, 'trial'], [], collector);
  if (runner.regrade !== undefined) {
    checkTrial(protocol, runner.regrade, [...path, 'regrade'], ['candidate'], collector);
  } else if (protocol.attempts.regrades > 0) {
    const message = 'a regrade is allowed, but the runner has no regrade trial';
    collector.add(['attempts', 'regrades'], message, 'Declare runner.regrade, or write regrades: 0.');
  }
  if (runner.stop !== undefined) {
    checkArgv([...path, 'stop', 'argv'], runner.stop.argv, ['trial'], collector);
  }
  if (runner.version !== undefined) {
    checkArgv([...path, 'version', 'argv'], runner.version.argv, [], collector);
  }
  collector.refer([...path, 'tasks', 'source'], 'source', runner.tasks.source, runner.sources);
  checkRelative([...path, 'candidate', 'file'], runner.candidate.file, collector);
  if (runner.candidate.file.startsWith('verifier/')) {
    const message = "the verifier's folder is no place for a candidate";
    collector.add([...path, 'candidate', 'file'], message, 'Collect the patch as an artifact of the agent.');
  }
  checkModelNamed(protocol, runner, collector);
  checkConditionsTold(protocol, runner, collector);
}

function checkTrial(
  protocol: Protocol,
  { argv, config, wall_s }: HarborTrial,
  path: Path,
  more: readonly string[],
  collector: FaultCollector,
): void {
  const found = checkArgv([...path, 'argv'], argv, [...ARGUMENTS, ...more], collector);
  if (!found.includes('config')) {
    const hint = 'Harbor reads the trial config that Boundbook writes: "-c", "{config}".';
    collector.add([...path, 'argv'], '{config} is missing from the arguments', hint);
  }
  argv.forEach((argument, i) => {
    if (!REPEATING.test(argument)) return;
    const hint = 'Retries are attempts of the ledger: one trial each, from the beginning.';
    collector.add([...path, 'argv', i], `${JSON.stringify(argument)} is not accepted`, hint);
  });
  for (const key of RESERVED.filter((name) => Object.hasOwn(config, name))) {
    collector.add([...path, 'config', key], 'Boundbook sets this itself', 'Leave it out.');
  }
  checkConfigNames(protocol, config, [...path, 'config'], more, collector);
  checkAgent(config, [...path, 'config'], collector);
  const limit = innerLimits(config);
  if (limit >= wall_s) {
    const message = `Harbor's own limits come to ${limit} s, the outer deadline is ${wall_s} s`;
    collector.add(
      [...path, 'wall_s'],
      message,
      'A trial must have the time to end by itself and write its result.',
    );
  }
  if (more.includes('candidate') && ![...found, ...namesIn(config)].includes('candidate')) {
    const hint = 'Its agent applies the file {candidate} and does nothing else.';
    collector.add(path, 'the regrade is not told its candidate', hint);
  }
}

function checkConfigNames(
  protocol: Protocol,
  config: HarborTrial['config'],
  path: Path,
  more: readonly string[],
  collector: FaultCollector,
): void {
  const known = [...CONFIG_NAMES, ...more];
  for (const { name, path: place } of configPlaceholders(config)) {
    const at = [...path, ...place];
    if (!known.includes(name)) {
      const list = known.map((item) => `{${item}}`).join(' ');
      collector.add(at, `{${name}} is not known here`, `Known here: ${list}.`);
      continue;
    }
    const told = CONDITION_NAMES.find((item) => item === name);
    if (told === undefined) continue;
    const silent = usedConditions(protocol).find(
      ([, condition]) => conditionValue(condition, told) === undefined,
    );
    if (silent === undefined) continue;
    const message = `{${name}} stands here, and the condition ${JSON.stringify(silent[0])} does not say it`;
    collector.add(at, message, 'Say it in every condition, or leave it out here.');
  }
}

/** Harbor's records name the agent; without it there is nothing to compare. */
function checkAgent(config: HarborTrial['config'], path: Path, collector: FaultCollector): void {
  const { agent } = config;
  const named = (key: string) => typeof (agent as Record<string, unknown>)[key] === 'string';
  if (typeof agent === 'object' && agent !== null && (named('name') || named('import_path'))) return;
  collector.add(
    [...path, 'agent'],
    'the config names no agent',
    'Write agent: { name: … } or { import_path: … }.',
  );
}

function checkModelNamed(protocol: Protocol, { trial }: HarborRunner, collector: FaultCollector): void {
  const models = new Set(Object.values(protocol.arms).map(({ model }) => model));
  const seeds = [...models].flatMap((name) => protocol.models[name]?.training_seeds ?? [null]);
  if (seeds.length < 2 || namesIn(trial.config).includes('model')) return;
  const hint = 'Write for example model_name: "openai/{model}".';
  collector.add(
    ['runner', 'trial', 'config'],
    'several models run, and the config does not say {model}',
    hint,
  );
}

/** A setting in which two arms differ and that never reaches the agent is no difference at all (F-57). */
function checkConditionsTold(protocol: Protocol, { trial }: HarborRunner, collector: FaultCollector): void {
  const told = new Set(namesIn(trial.config));
  for (const name of CONDITION_NAMES.filter((item) => !told.has(item))) {
    const values = usedConditions(protocol).map(([, condition]) =>
      canonicalText(conditionValue(condition, name) ?? null),
    );
    if (new Set(values).size < 2) continue;
    const message = `conditions differ in ${name}, and the trial config does not name {${name}}`;
    collector.add(
      ['runner', 'trial', 'config'],
      message,
      'Hand it to the agent, or write the conditions alike.',
    );
  }
}

function usedConditions({ arms, conditions }: Protocol): readonly (readonly [string, Condition])[] {
  const used = new Set(Object.values(arms).map(({ condition }) => condition));
  return Object.entries(conditions).filter(([name]) => used.has(name));
}

function namesIn(config: HarborTrial['config']): readonly string[] {
  return configPlaceholders(config).map(({ name }) => name);
}

/** Seconds that the limits which the config itself sets allow the phases of a trial. */
function innerLimits(config: HarborTrial['config']): number {
  const limits = [
    ['agent', 'override_timeout_sec'],
    ['agent', 'override_setup_timeout_sec'],
    ['verifier', 'override_timeout_sec'],
  ].map(([part = '', key = '']) => {
    const section = config[part] as Record<string, unknown> | null | undefined;
    return typeof section === 'object' && section !== null ? section[key] : undefined;
  });
  return limits.reduce<number>((sum, limit) => sum + (typeof limit === 'number' ? limit : 0), 0);
}
