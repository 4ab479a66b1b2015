import { isUnfinished, UNFINISHED } from '../attempts/unfinished.js';
import type { AttributionRule } from '../protocol/schema/attempts.js';
import type { StageRecord } from './adapters/stage-record.js';

/**
 * A candidate whose process was cut is one by P14, unless the plan's rules call what cut it infrastructure: then it cannot
 * be told from a part of one, and there was no complete candidate (DESIGN §9). What lay there is kept as evidence.
 */
export function judged(record: StageRecord, rules: readonly AttributionRule[]): StageRecord {
  const { draft, objects, cut } = record;
  const { result } = draft;
  if (cut === undefined || result.kind !== 'candidate') return record;
  if (!isUnfinished(rules, cut)) return record;
  const kept = { ...draft.objects, [UNFINISHED]: result.candidate };
  return { draft: { ...draft, result: { kind: 'failure', signals: cut }, objects: kept }, objects };
}
