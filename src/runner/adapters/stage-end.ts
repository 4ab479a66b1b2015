import { type FailureSignals, failureSignals } from '../../attempts/signals.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import type { Artifact } from '../../protocol/schema/command-runner.js';
import type { Stage } from '../../protocol/schema/signals.js';
import { type GenerateEnd, type GradeEnd, NOTHING_MORE } from './adapter.js';
import { type CollectedArtifacts, refusedArtifacts } from './artifacts.js';
import { CAPTURE, captureOf } from './capture.js';
import type { Collected } from './collect.js';
import { endOfStage, exitSignals, memorySignals } from './command-ends.js';
import type { StageExit } from './stage-process.js';
import type { StageRoom } from './stage-room.js';

/** A stage whose command has ended, with everything that it started. */
export interface RanStage {
  readonly exit: StageExit;
  readonly room: StageRoom;
  readonly seconds: number;
  /** What was done to the room; null for nothing. */
  readonly damage: string | null;
}

export type DamagedEnd = Extract<GenerateEnd & GradeEnd, { kind: 'failure' }>;

/**
 * What a stage's command leaves, whatever came of it.
 *
 * @throws {BoundbookError} DISK_FULL or FILE_UNWRITABLE
 */
export async function leftBy(
  { exit, seconds }: RanStage,
  artifacts: CollectedArtifacts,
  store: ObjectFolder,
) {
  const end = await endOfStage(exit, seconds, store);
  const capture = captureOf(exit, artifacts.words);
  const kept = { ...end.objects, ...artifacts.objects };
  return { ...end, objects: capture === null ? kept : { ...kept, [CAPTURE]: capture } };
}

/** The end of a stage of which nothing is known but that its room was damaged. */
export function damagedEnd(
  stage: Stage,
  damage: string,
  artifacts: readonly Artifact[],
  seconds: number,
): DamagedEnd {
  const capture = captureOf(null, refusedArtifacts(artifacts, damage).words);
  const objects = capture === null ? {} : { [CAPTURE]: capture };
  return { kind: 'failure', signals: damageSignals(stage, damage, null), ...NOTHING_MORE, objects, seconds };
}

/** @param exit null for a command whose end nobody saw */
export function damageSignals(stage: Stage, damage: string, exit: StageExit | null): FailureSignals {
  return failureSignals({
    stage,
    phase: 'collect',
    cause: 'room_damaged',
    exit_status: exit?.exit_status ?? null,
    signal: exit?.signal ?? null,
    text: damage,
    ...(exit === null ? {} : memorySignals(exit)),
  });
}

/** How a process ended that did not end by itself with exit status 0; null for one that did. */
export function cutSignals(stage: Stage, exit: StageExit): FailureSignals | null {
  const observed = exitSignals(exit);
  return observed === null ? null : failureSignals({ stage, ...observed, ...memorySignals(exit) });
}

/** Why a stage has not made the file that it is for: how its process ended comes before what it left. */
export function missingSignals(
  stage: Stage,
  exit: StageExit,
  cause: FailureSignals['cause'],
  text: string,
): FailureSignals {
  const { exit_status } = exit;
  const observed = exitSignals(exit) ?? { phase: 'collect' as const, cause, exit_status, text };
  return failureSignals({ stage, ...observed, ...memorySignals(exit) });
}

/** Why a declared file could not be collected. */
export function missingText(name: string, collected: Exclude<Collected, { kind: 'file' }>): string {
  switch (collected.kind) {
    case 'absent':
      return `no file ${name}`;
    case 'refused':
      return collected.reason;
    case 'too_large':
      return `${name} has ${collected.size} bytes`;
  }
}
