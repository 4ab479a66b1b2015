/**
 * The public library: what an independent tool needs to read a plan, recompute its slots, judge attempts and recompute
 * figures, and to check what others say of a ledger: bundles, proofs, notes, signatures and time stamps. The program's
 * verbs are not part of it. Errors are {@link BoundbookError} with a code of {@link ERROR_CODES}; each docstring names its own.
 *
 * Whole audits: {@link audit}, {@link auditBundle}; a bundle is made by {@link exportBundle}. Files of strangers:
 * {@link verifyProof} for one slot's proof, {@link verifyCheckpoint} and {@link verifyTrusted} for a note,
 * {@link verifyEnvelope} and {@link verifyStatement} for a signature, {@link verifyTimestamp} for a time stamp. Hashes are 32 bytes, sizes
 * and positions of trees are bigint in proofs, numbers of entries are number.
 */

export { twoWayBootstrap } from './analysis/bootstrap.js';
export { differenceBound, meanBound, scoreBound, signOf } from './analysis/bounds.js';
export { quantile } from './analysis/quantile.js';
export { averageAtK, tally } from './analysis/score.js';
export { type StepResult, step } from './attempts/machine.js';
export { type Action, nextAction } from './attempts/next-action.js';
export { type Attribution, type Classification, classify } from './attempts/rules.js';
export { type FailureSignals, failureSignals } from './attempts/signals.js';
export type { SlotEvent } from './attempts/slot-event.js';
export { attemptId, PLANNED, type SlotRules, type SlotState } from './attempts/slot-state.js';
export type { Violation } from './attempts/violation.js';
export { type AuditOptions, audit, auditBundle, type BundleAuditOptions } from './audit/audit.js';
export { type Exported, type ExportOptions, exportBundle } from './audit/bundle/export.js';
export { FINDINGS, type Finding, type FindingCode } from './audit/finding.js';
export { renderAudit } from './audit/render.js';
export { type AuditResult, toJson as auditJson } from './audit/result.js';
export { canonicalBytes, canonicalText } from './core/canonical-json.js';
export { type Digest, digestOf, isDigest } from './core/digest.js';
export { ERROR_CODES, type ErrorCode, type ExitCode } from './core/error-codes.js';
export { BoundbookError, type Fault } from './core/errors.js';
export type { JsonObject, JsonValue } from './core/json.js';
export { VERSION } from './core/version.js';
export {
  type Checkpoint,
  type CheckpointTrust,
  formatCheckpoint,
  parseCheckpoint,
  type SignedCheckpoint,
  verifyCheckpoint,
} from './ledger/checkpoint.js';
export { type Decoded, decodeEntry } from './ledger/codec.js';
export type { Entry } from './ledger/entries/entry.js';
export { toSlotEvent } from './ledger/entries/slot-event.js';
export { CompactRange, leafHash, nodeHash } from './ledger/merkle.js';
export {
  type ConsistencyClaim,
  consistencyProof,
  type InclusionClaim,
  inclusionProof,
  type SubtreeSource,
  verifyConsistency,
  verifyInclusion,
} from './ledger/proofs.js';
export { type ProvedEntry, verifyProof } from './ledger/slot-proof.js';
export { parseTlogProof, type TlogProof, verifyTlogProof } from './ledger/tlog-proof.js';
export { type Trust, verifyTrusted } from './ledger/trust.js';
export { parsePolicy, type WitnessPolicy } from './ledger/witness-policy.js';
export {
  type Attestation,
  type Attestations,
  loadAttestations,
  readAttestation,
} from './manifest/attestations.js';
export { type Manifest, parseManifest } from './manifest/manifest.js';
export { protocolJsonSchema } from './protocol/json-schema.js';
export { type ProtocolDocument, readProtocol } from './protocol/read.js';
export type { Protocol } from './protocol/schema/protocol.js';
export { resolveTaskSets, type TaskIds, type TaskSets, taskFiles } from './protocol/tasks.js';
export {
  type Envelope,
  type EnvelopeTrust,
  parseEnvelope,
  preAuthEncoding,
  type VerifiedEnvelope,
  verifyEnvelope,
} from './signing/dsse.js';
export { formatVerifierKey, parseVerifierKey, type VerifierKey } from './signing/keys.js';
export { type Note, type NoteSignature, parseNote, type VerifiedNote, verifyNote } from './signing/note.js';
export { parseStatement, type Statement, verifyStatement } from './signing/statement.js';
export {
  type TimestampEvidence,
  timestampQuery,
  type VerifiedTimestamp,
  verifyTimestamp,
} from './signing/timestamp.js';
export { expandSlots, orderedSlots, type PlanDigest, planDigest } from './slots/plan.js';
export { orderKey, type Slot, type SlotKey, samplingSeed, shardOf, slotId } from './slots/slot.js';
