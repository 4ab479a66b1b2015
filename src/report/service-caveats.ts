import { operatorsWord } from '../protocol/operators-word.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { modelName } from '../slots/model-name.js';
import { trainingSeeds } from '../slots/plan.js';
import type { ReportInput } from './report-input.js';
import { plural } from './words.js';

/** Entries of one kind that a sentence names. */
const NAMED = 10;

/** What must be known of the services behind the figures (P10). */
export function serviceCaveats({
  protocol,
  services,
}: Pick<ReportInput, 'protocol' | 'services'>): readonly string[] {
  const models = [...new Set([...services.changes, ...services.doubts].map(({ model }) => model))].sort();
  const word = operatorsWord(protocol);
  return [
    ...(word === null ? [] : [word]),
    ...models.flatMap((model) => {
      const changes = services.changes.filter((each) => each.model === model);
      return changes.length === 0
        ? []
        : [
            `Services of ${model} (${armsOf(protocol, model)}) described themselves otherwise than before: ` +
              `${named(changes.map(({ seq, changed }) => `entry ${seq} (${changed.join(', ')})`))}.`,
          ];
    }),
    ...services.doubts.map(
      ({ model, seq, since, attempts }) =>
        `A service of ${model} (${armsOf(protocol, model)}) answered the canary otherwise than the reference (entry ${seq}): ` +
        `${plural(attempts, 'attempt')} started since entry ${since} may have met other weights or settings.`,
    ),
    ...services.swaps.map(
      ({ model, seq, since, attempts }) =>
        `A service of ${model} (${armsOf(protocol, model)}) was found to be another one while it was in use, which ended the session (entry ${seq}): ` +
        `${plural(attempts, 'attempt')} started since entry ${since}, its last good check, may have met another model.`,
    ),
  ];
}

/** The arms that a model's service answers for. */
function armsOf(protocol: Protocol, model: string): string {
  const arms = Object.keys(protocol.arms)
    .filter((arm) =>
      trainingSeeds(protocol, arm).some(
        (trainingSeed) => modelName(protocol, { arm, trainingSeed }) === model,
      ),
    )
    .sort();
  return `${arms.length === 1 ? 'arm' : 'arms'} ${arms.join(', ') || 'none'}`;
}

function named(items: readonly string[]): string {
  const more = items.length - NAMED;
  return items.slice(0, NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
