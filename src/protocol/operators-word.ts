import type { Protocol } from './schema/protocol.js';
import { OPERATORS_WORD } from './schema/services.js';

/** What must be said wherever a plan with services of others is shown (P10); null for any other plan. */
export function operatorsWord({ runner }: Protocol): string | null {
  const external = runner.adapter === 'openai' ? 'external' in runner.service : runner.adapter === 'harbor';
  return external
    ? `T${OPERATORS_WORD.slice(1)}: the plan accepts services that the gate did not start.`
    : null;
}
