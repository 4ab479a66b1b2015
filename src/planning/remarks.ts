import { operatorsWord } from '../protocol/operators-word.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { declaredPaths } from '../protocol/setting-checks.js';
import { uncontained } from '../protocol/uncontained.js';
import type { SeedCollisions } from './collisions.js';
import { queuesWithOtherRewards } from './precision.js';

/** Something that stands in no one's way and should be known before the plan is frozen. */
export interface Remark {
  /** A short name for programs. */
  readonly about: string;
  readonly message: string;
}

export function planRemarks(protocol: Protocol, collisions: SeedCollisions): readonly Remark[] {
  return [
    ...unread(protocol),
    ...unused(protocol),
    ...collisionRemark(protocol, collisions),
    ...restarts(protocol),
    ...foreignService(protocol),
    ...queuesWithOtherRewards(protocol).map((queue) => ({
      about: 'standard-error',
      message: `the rewards of ${quoted(queue)} are not 0 and 1 only: its standard errors are for two-valued rewards`,
    })),
    ...outside(protocol),
    ...habits(protocol),
  ];
}

/** Queues whose outcomes would be collected and not reported, or not compared. */
function unread(protocol: Protocol): readonly Remark[] {
  const { scores, contrasts, tables } = protocol.analysis;
  const scored = new Set([...scores, ...(tables ?? [])].map((each) => each.queue));
  const compared = new Set(contrasts.map((contrast) => contrast.queue));
  return Object.entries(protocol.queues).flatMap(([name, queue]) => {
    const remarks: Remark[] = [];
    if (!scored.has(name)) {
      remarks.push({ about: 'score', message: `no score or table reads the queue ${quoted(name)}` });
    }
    if (queue.role === 'confirmatory' && !compared.has(name)) {
      remarks.push({ about: 'contrast', message: `no contrast uses the confirmatory queue ${quoted(name)}` });
    }
    return remarks;
  });
}

function unused(protocol: Protocol): readonly Remark[] {
  const arms = Object.values(protocol.arms);
  const queues = Object.values(protocol.queues);
  const sets = new Set([
    ...queues.map((queue) => queue.tasks),
    ...(protocol.analysis.tables ?? []).flatMap((table) => table.partitions),
    ...Object.values(protocol.task_sets).flatMap((set) => {
      if ('subset_of' in set) return [set.subset_of];
      return 'union_of' in set ? set.union_of : [];
    }),
  ]);
  return [
    ...missing('arm', protocol.arms, new Set(queues.flatMap((queue) => queue.arms))),
    ...missing('model', protocol.models, new Set(arms.map((arm) => arm.model))),
    ...missing('condition', protocol.conditions, new Set(arms.map((arm) => arm.condition))),
    ...missing('task set', protocol.task_sets, sets),
  ];
}

function missing(kind: string, declared: object, used: ReadonlySet<string>): readonly Remark[] {
  return Object.keys(declared)
    .filter((name) => !used.has(name))
    .map((name) => ({ about: 'unused', message: `the ${kind} ${quoted(name)} is declared and not used` }));
}

function collisionRemark(protocol: Protocol, collisions: SeedCollisions): readonly Remark[] {
  const { cells, basis, repeated, repeatedInTask } = collisions;
  if (repeated < 0.5) return [];
  const count = basis === 'counted' ? String(repeated) : `about ${repeated.toFixed(0)}`;
  const inTask =
    repeatedInTask === null
      ? ''
      : repeatedInTask === 0
        ? ', none of them for the same task'
        : `, ${repeatedInTask} of them for the same task, where the model meets one prompt with one seed twice`;
  return [
    {
      about: 'sampling-seed',
      message:
        `${count} of ${cells} cells repeat the sampling seed of another cell${inTask} ` +
        `(${protocol.sampling.bits} bits; at most 53 are possible)`,
    },
  ];
}

/** Groups that do not hold one set of weights would start a service over and over. */
function restarts(protocol: Protocol): readonly Remark[] {
  const { group_by } = protocol.order;
  if (protocol.runner.adapter !== 'openai') return [];
  if (group_by.includes('arm') && group_by.includes('training_seed')) return [];
  return [
    {
      about: 'order',
      message:
        'order.group_by names not both arm and training_seed: the service restarts whenever the weights change',
    },
  ];
}

/** P10. */
function foreignService(protocol: Protocol): readonly Remark[] {
  const word = operatorsWord(protocol);
  return word === null ? [] : [{ about: 'external-service', message: word }];
}

/** Where things lie on one host is not part of a plan; such paths are right on one machine only. */
function outside(protocol: Protocol): readonly Remark[] {
  return declaredPaths(protocol)
    .filter(({ file }) => file.startsWith('/') || file.split('/').includes('..'))
    .map(({ file }) => ({
      about: 'path',
      message: `the path ${quoted(file)} leads out of the workspace; boundbook.host.yaml is the place for it`,
    }));
}

function habits(protocol: Protocol): readonly Remark[] {
  const remarks: Remark[] = [];
  if (protocol.blinding === 'none') {
    remarks.push({ about: 'blinding', message: 'nothing is blinded; the report will say so' });
  }
  if (Object.keys(protocol.runner.sources).length === 0) {
    remarks.push({ about: 'sources', message: 'no source of the runner is bound (runner.sources is empty)' });
  }
  const gap = uncontained(protocol);
  if (gap !== null) remarks.push({ about: 'processes', message: gap });
  if (protocol.attempts.rules.length === 0) {
    remarks.push({
      about: 'rules',
      message: 'there are no attribution rules: every failure stays unresolved',
    });
  }
  if (!protocol.analysis.contrasts.some((contrast) => contrast.role === 'primary')) {
    remarks.push({
      about: 'primary',
      message: 'no contrast is primary: nothing in this plan is confirmatory',
    });
  }
  return remarks;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
