import { checkReward } from './command-checks.js';
import type { ProtocolFault } from './fault-list.js';
import { FaultCollector } from './references.js';
import { checkPattern } from './rule-checks.js';
import type { Protocol } from './schema/protocol.js';
import { checkPrompt } from './setting-checks.js';

/**
 * What outcomes are computed with, and what would leave them without meaning: patterns of rules, templates of prompts,
 * ranges of rewards. A protocol that was read from its file has passed this; one inside a manifest from outside has not.
 */
export function computationFaults(protocol: Protocol): readonly ProtocolFault[] {
  const collector = new FaultCollector();
  protocol.attempts.rules.forEach(({ when }, i) => {
    checkPattern(when.text, ['attempts', 'rules', i, 'when', 'text'], collector);
  });
  for (const [name, condition] of Object.entries(protocol.conditions)) {
    checkPrompt(condition, ['conditions', name], collector);
    if ('reward' in condition.grader) {
      checkReward(condition.grader.reward, ['conditions', name, 'grader', 'reward'], collector);
    }
  }
  return collector.faults;
}
