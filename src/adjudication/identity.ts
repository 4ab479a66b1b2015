import { hostname, userInfo } from 'node:os';
import { posix } from 'node:path';
import { canonicalText } from '../core/canonical-json.js';
import type { Protocol } from '../protocol/schema/protocol.js';

/** What would tell whose attempt a piece of evidence is (P14). */
export interface Identity {
  /** Names of arms, models and conditions, and what runs, servers and folders make of them. */
  readonly names: readonly string[];
  /** Training, sampling and evaluation seeds, as text. */
  readonly seeds: readonly string[];
  /** Names under which this host knows itself, and those that the ledger names. */
  readonly hosts: readonly string[];
  /** The account of who judges, which may be that of who ran the plan. */
  readonly accounts: readonly string[];
  /** Members of requests whose values differ between conditions of the plan. */
  readonly settings: readonly string[];
  /** Whether conditions differ in their prompts. */
  readonly promptsDiffer: boolean;
}

/** How the settings of a condition are called in requests, command lines and logs. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  max_tokens: ['max_completion_tokens', 'max_new_tokens', 'n_predict'],
  reasoning: ['enable_thinking', 'thinking', 'chat_template_kwargs', 'reasoning_effort', 'reasoning'],
};

/**
 * @param samplingSeeds of the attempts under judgement
 * @param hosts that the ledger names
 */
export function identityOf(
  protocol: Protocol,
  samplingSeeds: Iterable<number>,
  hosts: readonly string[] = [],
): Identity {
  const seeds = new Set<string>();
  const names = new Set<string>([...Object.keys(protocol.arms), ...Object.keys(protocol.conditions)]);
  for (const [name, model] of Object.entries(protocol.models)) {
    names.add(name);
    const trained = 'training_seeds' in model ? (model.training_seeds ?? []) : [];
    for (const seed of trained) {
      seeds.add(String(seed));
      for (const joint of ['', '_', '-', '=', ' ']) names.add(`seed${joint}${seed}`);
      for (const joint of ['@', '-', '_', '/', '.', ':']) names.add(`${name}${joint}${seed}`);
    }
    for (const path of [model.weights, model.tokenizer]) {
      if (path === undefined) continue;
      for (const seed of trained.length === 0 ? [''] : trained) addPath(names, path, String(seed));
    }
  }
  for (const seed of samplingSeeds) seeds.add(String(seed));
  for (const queue of Object.values(protocol.queues)) {
    for (const seed of queue.evaluation_seeds ?? []) seeds.add(String(seed));
  }
  const own = hostname();
  return {
    names: [...names],
    seeds: [...seeds],
    hosts: [...new Set([own, own.split('.')[0] ?? own, ...hosts])].filter((name) => name.length > 1),
    accounts: ownAccount(),
    ...differences(protocol),
  };
}

function ownAccount(): readonly string[] {
  try {
    return [userInfo().username];
  } catch {
    // An account without a name.
    return [];
  }
}

/** Folders that say nothing of a model. */
const COMMON = new Set(['models', 'model', 'weights', 'tokenizer', 'checkpoints', 'data', '.', '']);

function addPath(names: Set<string>, template: string, seed: string): void {
  const path = template.replaceAll('{seed}', seed);
  names.add(path);
  for (const part of path.split('/')) {
    if (COMMON.has(part)) continue;
    const bare = posix.basename(part, posix.extname(part));
    if (!COMMON.has(bare) && part !== 'tokenizer.json') names.add(part);
  }
}

function differences({ conditions, arms }: Protocol): Pick<Identity, 'settings' | 'promptsDiffer'> {
  const used = new Set(Object.values(arms).map(({ condition }) => condition));
  const compared = Object.entries(conditions)
    .filter(([name]) => used.has(name))
    .map(([, condition]) => condition);
  const differs = (of: (condition: (typeof compared)[number]) => unknown) =>
    new Set(compared.map((condition) => canonicalText(of(condition) ?? null))).size > 1;
  const settings = new Set<string>();
  const add = (name: string) => {
    for (const one of [name, ...(ALIASES[name] ?? [])]) settings.add(one);
  };
  for (const name of new Set(compared.flatMap(({ decoding }) => Object.keys(decoding ?? {})))) {
    if (differs(({ decoding }) => (decoding as Readonly<Record<string, unknown>> | undefined)?.[name]))
      add(name);
  }
  if (differs(({ reasoning }) => reasoning)) add('reasoning');
  if (differs(({ execution }) => execution)) add('execution');
  if (differs(({ grader }) => grader)) add('grader');
  return { settings: [...settings], promptsDiffer: differs(({ prompt }) => prompt) };
}
