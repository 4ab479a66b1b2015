import type { JsonObject, JsonValue } from '../core/json.js';
import { trimAscii } from '../core/trim.js';
import type { Condition } from './schema/conditions.js';
import type { Protocol } from './schema/protocol.js';
import type { TaskFaults } from './task-faults.js';
import type { Task } from './task-lines.js';
import { parseTemplate, placeholders } from './template.js';

/** Why a field's value will not do; null when it will. */
type Demand = (value: JsonValue) => string | null;

/** Checks that the fields which prompts and graders use exist, with usable values, in every task that runs them. */
export function checkTaskFields(
  protocol: Protocol,
  tasks: ReadonlyMap<string, ReadonlyMap<string, Task>>,
  faults: TaskFaults,
): void {
  for (const [set, conditions] of usedConditions(protocol)) {
    const demands = new Map([...conditions].flatMap((name) => [...demandsOf(name, protocol)]));
    for (const task of tasks.get(set)?.values() ?? []) {
      for (const [, { field, demand, use, hint }] of demands) {
        const value = own(task.fields, field);
        const problem = value === undefined ? 'is missing' : demand(value);
        if (problem === null) continue;
        faults.add(
          `task ${JSON.stringify(task.id)} of ${set}`,
          null,
          `the field ${JSON.stringify(field)} ${problem}; ${use} uses it`,
          hint ??
            'Correct the task file or what the condition names, in a new revision if the plan is frozen.',
        );
      }
    }
  }
}

/** The conditions under which each task set runs. */
function usedConditions(protocol: Protocol): ReadonlyMap<string, ReadonlySet<string>> {
  const used = new Map<string, Set<string>>();
  for (const queue of Object.values(protocol.queues)) {
    const conditions = used.get(queue.tasks) ?? new Set();
    for (const arm of queue.arms) {
      const condition = protocol.arms[arm]?.condition;
      if (condition !== undefined) conditions.add(condition);
    }
    used.set(queue.tasks, conditions);
  }
  return used;
}

interface FieldDemand {
  readonly field: string;
  readonly demand: Demand;
  readonly use: string;
  /** What to do about it, when that is more than to correct the file. */
  readonly hint?: string;
}

function demandsOf(name: string, protocol: Protocol): readonly (readonly [string, FieldDemand])[] {
  const condition = protocol.conditions[name];
  if (condition === undefined) return [];
  const prompt = promptFields(condition).map((field) => ({
    field,
    demand: notNull,
    use: `the prompt of ${JSON.stringify(name)}`,
  }));
  const grader = graderDemand(condition, `the grader of ${JSON.stringify(name)}`);
  const list = [...prompt, ...grader, ...runnerDemands(protocol)];
  return list.map((demand) => [JSON.stringify([demand.use, demand.field]), demand]);
}

function promptFields(condition: Condition): readonly string[] {
  return [condition.prompt.user, condition.prompt.system ?? ''].flatMap((text) => {
    const parsed = parseTemplate(text);
    return parsed.ok ? placeholders(parsed.template) : [];
  });
}

function graderDemand(condition: Condition, use: string): readonly FieldDemand[] {
  const { grader } = condition;
  switch (grader.kind) {
    case 'exact':
      return [{ field: grader.answer, demand: isReference, use }];
    case 'integer':
      return [{ field: grader.answer, demand: isInteger, use }];
    case 'boxed':
      return [{ field: grader.answer, demand: grader.compare === 'integer' ? isInteger : isReference, use }];
    case 'report':
      return grader.expected_tests === undefined
        ? []
        : [{ field: grader.expected_tests, demand: isTestList, use }];
    case 'reward':
      return [];
  }
}

/** What names the folder and the digest of a Harbor task. */
function runnerDemands({ runner }: Protocol): readonly FieldDemand[] {
  if (runner.adapter !== 'harbor') return [];
  return [
    { field: runner.tasks.folder, demand: isFolder, use: 'runner.tasks.folder' },
    {
      field: runner.tasks.digest,
      demand: isTaskDigest,
      use: 'runner.tasks.digest',
      hint: "It is Harbor's own: lock.json of any trial of the task says it under task.digest.",
    },
  ];
}

const notNull: Demand = (value) => (value === null ? 'is null' : null);

const isReference: Demand = (value) => {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return null;
  if (typeof value !== 'string') return 'is no text';
  return trimAscii(value) === '' ? 'is empty: an empty answer would pass' : null;
};

const isInteger: Demand = (value) => {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? null : 'is no integer';
  return typeof value === 'string' && /^[+-]?[0-9]+$/.test(trimAscii(value)) ? null : 'is no integer';
};

const isTestList: Demand = (value) => {
  if (!Array.isArray(value) || value.length === 0) return 'is no list of at least one test';
  const tests: readonly JsonValue[] = value;
  if (tests.some((test) => typeof test !== 'string' || test === '')) return 'lists a test without a name';
  return new Set(tests).size === tests.length ? null : 'lists a test twice';
};

const isFolder: Demand = (value) => {
  if (typeof value !== 'string') return 'names no folder';
  const isPlain = value.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  return isPlain && !/[\\\p{Cc}]/u.test(value) ? null : 'is no path inside the source';
};

const isTaskDigest: Demand = (value) =>
  typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value) ? null : 'is no digest (sha256:…)';

function own(fields: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}
