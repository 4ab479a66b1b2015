import { canonicalText } from '../core/canonical-json.js';
import { checkArgument, checkArgv } from './argument-checks.js';
import { checkCommands, checkReward } from './command-checks.js';
import { checkHarbor } from './harbor-checks.js';
import type { Path } from './json-pointer.js';
import type { FaultCollector } from './references.js';
import type { Condition } from './schema/conditions.js';
import type { OpenaiRunner } from './schema/openai-runner.js';
import type { Protocol } from './schema/protocol.js';
import type { Runner } from './schema/runner.js';
import type { ExternalService, ManagedService } from './schema/services.js';
import { parseTemplate } from './template.js';

const SERVICE_NAMES = ['weights', 'tokenizer', 'host', 'port', 'model'];

/** Checks what the form cannot hold: ranges, placeholders, graders that fit their adapter. */
export function checkSettings(protocol: Protocol, collector: FaultCollector): void {
  for (const { path, file } of declaredPaths(protocol)) {
    if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(file)) {
      collector.add(path, 'the path holds a control character', 'Rename the file.');
    }
  }
  checkModels(protocol, collector);
  checkConditions(protocol, collector);
  const { runner } = protocol;
  if (runner.adapter === 'openai') {
    checkService(protocol, runner, collector);
  } else if (runner.adapter === 'harbor') {
    checkHarbor(protocol, runner, collector);
  } else {
    checkCommands(runner, collector);
  }
}

export interface DeclaredPath {
  readonly path: Path;
  readonly file: string;
}

/** Every file and folder that a protocol names. */
export function declaredPaths(protocol: Protocol): readonly DeclaredPath[] {
  const found: DeclaredPath[] = [];
  const note = (path: Path, file: string | undefined): void => {
    if (file !== undefined) found.push({ path, file });
  };
  for (const [name, set] of Object.entries(protocol.task_sets)) {
    if ('file' in set) note(['task_sets', name, 'file'], set.file);
    if ('subset_of' in set) note(['task_sets', name, 'ids'], set.ids);
  }
  for (const [name, model] of Object.entries(protocol.models)) {
    note(['models', name, 'weights'], model.weights);
    note(['models', name, 'tokenizer'], model.tokenizer);
  }
  for (const [name, { grader }] of Object.entries(protocol.conditions)) {
    if (grader.kind === 'report') note(['conditions', name, 'grader', 'report_schema'], grader.report_schema);
  }
  for (const [name, file] of Object.entries(protocol.runner.sources)) note(['runner', 'sources', name], file);
  return found;
}

function checkModels(protocol: Protocol, collector: FaultCollector): void {
  for (const [name, model] of Object.entries(protocol.models)) {
    const seeded = model.training_seeds !== undefined;
    const path: Path = ['models', name];
    const weights = checkArgument([...path, 'weights'], model.weights, ['seed'], collector);
    const tokenizer = checkArgument([...path, 'tokenizer'], model.tokenizer ?? '', ['seed'], collector);
    if (seeded && !weights.includes('seed')) {
      collector.add(
        [...path, 'weights'],
        'the model has training seeds, but its weights do not name {seed}',
        'Each training seed has its own weights: write for example "models/O-{seed}".',
      );
    }
    for (const [key, found] of Object.entries({ weights, tokenizer })) {
      if (!seeded && found.includes('seed')) {
        collector.add(
          [...path, key],
          '{seed} stands here, but the model has no training_seeds',
          'Remove one.',
        );
      }
    }
  }
}

function checkConditions(protocol: Protocol, collector: FaultCollector): void {
  const seen = new Map<string, string>();
  for (const [name, condition] of Object.entries(protocol.conditions)) {
    const path: Path = ['conditions', name];
    checkPrompt(condition, path, collector);
    checkGrader(condition, protocol.runner.adapter, [...path, 'grader'], collector);
    checkLoopStop(condition, protocol.runner, [...path, 'loop_stop'], collector);
    checkReasoning(condition, protocol.runner, path, collector);
    const text = canonicalText(condition);
    const twin = seen.get(text);
    if (twin !== undefined) {
      collector.add(
        path,
        `the conditions ${JSON.stringify(twin)} and ${JSON.stringify(name)} are equal in every setting`,
        'Keep one; two names for one condition suggest a difference that is not there.',
      );
    }
    seen.set(text, name);
  }
}

/** The graders that an adapter's outcomes can be read by. */
const GRADERS = { openai: ['exact', 'integer', 'boxed'], command: ['report'], harbor: ['reward'] } as const;

function checkGrader(
  condition: Condition,
  adapter: Runner['adapter'],
  path: Path,
  collector: FaultCollector,
): void {
  const { grader } = condition;
  if (!GRADERS[adapter].some((kind) => kind === grader.kind)) {
    collector.add(
      [...path, 'kind'],
      `the grader ${JSON.stringify(grader.kind)} does not go with the adapter ${JSON.stringify(adapter)}`,
      'The command adapter takes the grader "report", harbor "reward", openai "exact", "integer" or "boxed".',
    );
  }
  if ('reward' in grader) checkReward(grader.reward, [...path, 'reward'], collector);
}

function checkLoopStop(
  { loop_stop: rule }: Condition,
  runner: Protocol['runner'],
  path: Path,
  collector: FaultCollector,
): void {
  if (rule === undefined) return;
  if (runner.adapter !== 'openai' || runner.stream !== true) {
    const hint = 'A generation can only be stopped while it comes: use the openai runner with stream: true.';
    collector.add(path, 'a stop rule is declared for answers that are not streamed', hint);
  }
  const least = rule.length + rule.repeats - 1;
  if (rule.window < least) {
    collector.add(
      [...path, 'window'],
      `a window of ${rule.window} units never holds ${rule.repeats} sequences of ${rule.length}`,
      `It takes at least ${least} units.`,
    );
  }
}

/** B2: every request of a chat says whether the model may reason; the default of a server's template is nobody's plan. */
function checkReasoning(
  { reasoning }: Condition,
  runner: Runner,
  path: Path,
  collector: FaultCollector,
): void {
  if (reasoning !== undefined || runner.adapter !== 'openai' || runner.endpoint !== 'chat') return;
  collector.add(
    path,
    'nothing says whether the model may reason: the default of its template would decide',
    'Write reasoning: on or off. A template without such a flag ignores it.',
  );
}

/** Checks the templates of a condition's prompt. */
export function checkPrompt({ prompt }: Condition, path: Path, collector: FaultCollector): void {
  for (const part of ['user', 'system'] as const) {
    const parsed = parseTemplate(prompt[part] ?? '');
    if (parsed.ok) continue;
    const hint = 'Write {field} for a field of the task, {{ and }} for braces.';
    collector.add([...path, 'prompt', part], `the prompt has ${parsed.problem}`, hint);
  }
}

function checkService(protocol: Protocol, { service }: OpenaiRunner, collector: FaultCollector): void {
  if ('external' in service) checkOrigins(protocol, service, collector);
  else checkStart(protocol, service, collector);
}

/** Each model that runs needs an address. */
function checkOrigins(protocol: Protocol, { external }: ExternalService, collector: FaultCollector): void {
  const { origin } = external;
  if (typeof origin === 'string') return;
  const path: Path = ['runner', 'service', 'external', 'origin'];
  const names = servedModels(protocol);
  for (const name of names.filter((each) => !Object.hasOwn(origin, each))) {
    collector.add(path, `no address for the model ${JSON.stringify(name)}`, 'Add one, or give one for all.');
  }
  for (const name of Object.keys(origin).filter((each) => !names.includes(each))) {
    collector.add([...path, name], `no arm runs the model ${JSON.stringify(name)}`, 'Remove it.');
  }
}

/** The names under which services are asked for the models of the arms, in order. */
export function servedModels(protocol: Protocol): readonly string[] {
  const names = Object.values(protocol.arms).flatMap(({ model }) => {
    const seeds = protocol.models[model]?.training_seeds;
    return seeds === undefined ? [model] : seeds.map((seed) => `${model}@${seed}`);
  });
  return [...new Set(names)].sort();
}

function checkStart(protocol: Protocol, service: ManagedService, collector: FaultCollector): void {
  const path: Path = ['runner', 'service', 'argv'];
  const found = checkArgv(path, service.argv, SERVICE_NAMES, collector);
  for (const required of ['weights', 'port']) {
    if (!found.includes(required)) {
      collector.add(
        path,
        `{${required}} is missing from the service's arguments`,
        'The gate hands the service the weights that it has verified and the port that it will ask.',
      );
    }
  }
  if (!found.includes('tokenizer')) return;
  for (const [name, model] of Object.entries(protocol.models)) {
    if (model.tokenizer === undefined) {
      collector.add(
        ['models', name],
        'the service is given {tokenizer}, but this model declares none',
        'Declare its tokenizer file, or take {tokenizer} out of the arguments.',
      );
    }
  }
}
