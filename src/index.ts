/**
 * The public library: what an independent tool needs to read a plan, recompute its slots, judge attempts and
 * recompute figures. Everything here takes values and returns values; the program's verbs are not part of it.
 */

export { twoWayBootstrap } from './analysis/bootstrap.js';
export { differenceBound, meanBound, scoreBound, signOf } from './analysis/bounds.js';
export { quantile } from './analysis/quantile.js';
export { averageAtK, tally } from './analysis/score.js';
export {
  type Action,
  attemptId,
  nextAction,
  PLANNED,
  type SlotEvent,
  type SlotRules,
  type SlotState,
  type StepResult,
  step,
  type Violation,
} from './attempts/machine.js';
export { type Attribution, type Classification, classify } from './attempts/rules.js';
export { type FailureSignals, failureSignals } from './attempts/signals.js';
export { canonicalBytes, canonicalText } from './core/canonical-json.js';
export { type Digest, digestOf, isDigest } from './core/digest.js';
export { ERROR_CODES, type ErrorCode, type ExitCode } from './core/error-codes.js';
export { BoundbookError, type Fault } from './core/errors.js';
export type { JsonObject, JsonValue } from './core/json.js';
export { VERSION } from './core/version.js';
export { type Entry, toSlotEvent } from './ledger/entries.js';
export { CompactRange, leafHash, nodeHash } from './ledger/merkle.js';
export { type Manifest, parseManifest } from './manifest/manifest.js';
export { protocolJsonSchema } from './protocol/json-schema.js';
export { type ProtocolDocument, readProtocol } from './protocol/read.js';
export type { Protocol } from './protocol/schema.js';
export { resolveTaskSets, type TaskIds, type TaskSets, taskFiles } from './protocol/tasks.js';
export { expandSlots, orderedSlots, type PlanDigest, planDigest } from './slots/plan.js';
export { orderKey, type Slot, type SlotKey, samplingSeed, shardOf, slotId } from './slots/slot.js';
