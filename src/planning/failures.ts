import { DEFAULT_RULES } from '../attempts/default-rules.js';
import { decide, type FailureDecision } from '../attempts/failure-decision.js';
import { KNOWN_FAILURES } from '../attempts/known-failures/all.js';
import type { JsonValue } from '../core/json.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { renderTable } from './table.js';

/** What a plan's rules, and the shipped ones, make of the failures that its adapter can meet. */
function explained(protocol: Protocol) {
  const shipped = { ...protocol.attempts, rules: [...DEFAULT_RULES] };
  return KNOWN_FAILURES.filter(({ adapters }) => adapters.includes(protocol.runner.adapter)).map(
    (failure) => ({
      failure,
      plan: decide(failure, protocol.attempts),
      shipped: decide(failure, shipped),
    }),
  );
}

export function failuresText(protocol: Protocol): string {
  const rows = explained(protocol).map(({ failure, plan, shipped }) => [
    failure.what,
    plan.rule ?? (failure.isRecovered ? 'by the book' : 'none'),
    word(plan),
    plan.next === shipped.next && plan.attribution === shipped.attribution ? 'same' : word(shipped),
  ]);
  return [
    'What follows from a first failure. Undetermined: the slot stays unresolved, which widens the bounds.',
    renderTable(['failure', 'rule', 'this plan', 'shipped rules'], rows),
  ].join('\n');
}

export function failuresJson(protocol: Protocol): JsonValue {
  return explained(protocol).map(({ failure, plan, shipped }) => ({
    failure: failure.id,
    what: failure.what,
    stage: failure.signals.stage,
    plan: decisionJson(plan),
    shipped: decisionJson(shipped),
  }));
}

const SHORT = { infrastructure: 'infra', model: 'model' } as const;

function word({ attribution, next }: FailureDecision): string {
  return attribution === 'undetermined' ? 'undetermined' : `${SHORT[attribution]}: ${next}`;
}

function decisionJson({ attribution, rule, next }: FailureDecision): JsonValue {
  return { attribution, rule, next };
}
