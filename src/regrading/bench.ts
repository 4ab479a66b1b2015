import type { DraftOf } from '../ledger/entries/entry.js';
import type { LedgerObject, ObjectFolder } from '../ledger/objects.js';
import type { RegradingCommand } from '../ledger/regradings.js';
import type { CommandGrader } from '../protocol/schema/command-grader.js';
import type { GraderSources } from './grader-sources.js';
import type { OutputTask } from './outputs.js';

type Recorded = DraftOf<'regrading.recorded'>;

/** What grading an output again came to, as it is recorded, with the objects that it names. */
export interface Regraded extends Pick<Recorded, 'result' | 'stage'> {
  readonly objects: readonly LedgerObject[];
}

export interface BenchSetting {
  /** Name of the regrading. */
  readonly regrading: string;
  readonly grader: CommandGrader;
  readonly sources: Pick<GraderSources, 'paths' | 'schema'>;
  /** The ledger's folder. */
  readonly folder: string;
  readonly objects: ObjectFolder;
}

/** Where a grade command is run again. What it starts is its own to end. */
export interface GradeBench {
  /** The process that is recorded as the one that grades. */
  readonly process: RegradingCommand['process'];
  /** Whether the process that was recorded before is still at it. */
  isHeld(by: RegradingCommand['process']): boolean;
  /** Ends and removes what a process left that is gone. @throws {BoundbookError} PROCESS_NOT_ENDED */
  clear(): Promise<void>;
  /** @returns null when it was cut; what is thrown is a fault of the host */
  grade(slot: string, task: OutputTask, candidate: Buffer, cut: AbortSignal): Promise<Regraded | null>;
  /** Removes what the grading of an output left in the work folder, once it is recorded. */
  forget(slot: string): Promise<void>;
  close(): Promise<void>;
}

export type OpenBench = (setting: BenchSetting) => Promise<GradeBench>;
