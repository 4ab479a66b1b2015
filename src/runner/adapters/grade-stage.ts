import { failureSignals } from '../../attempts/signals.js';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import type { JsonObject } from '../../core/json.js';
import { expectedTests } from '../../grading/reference.js';
import type { ReportSchema } from '../../grading/report-schema.js';
import { faultText, type ReportVerdict, validateReport } from '../../grading/validate-report.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import type { Grader } from '../../protocol/schema/grader.js';
import { type GradeEnd, secondsSince } from './adapter.js';
import type { AttemptRooms } from './attempt-rooms.js';
import { CAPTURE, captureOf } from './capture.js';
import { collectFile } from './collect.js';
import { endOfStage, exitSignals, memorySignals } from './command-ends.js';
import type { CommandStage } from './command-stage.js';

export type ReportGrader = Extract<Grader, { kind: 'report' }>;

export interface GradeStageSetting {
  /** Runs the grade command. */
  readonly command: CommandStage;
  readonly rooms: AttemptRooms;
  /** Where large output goes. */
  readonly objects: ObjectFolder;
}

/** What a grading is of. */
export interface Graded {
  readonly attempt: string;
  readonly task: { readonly id: string; readonly fields: JsonObject };
  readonly grader: Pick<ReportGrader, 'kind' | 'expected_tests' | 'reward'>;
  /** The declared schema of its report. */
  readonly schema: ReportSchema | null;
}

const REPORT_BYTES = 16 * 2 ** 20;
const REPORT = 'report.json';

/** Grades a candidate by a command, in a place that nothing has written to before. */
export class GradeStage {
  readonly #setting: GradeStageSetting;

  constructor(setting: GradeStageSetting) {
    this.#setting = setting;
  }

  /**
   * @param isNew nothing of this attempt is durable yet
   * @throws {BoundbookError} TASKS_INVALID for expected tests that are none; DISK_FULL and the like
   */
  async grade(graded: Graded, candidate: Buffer, isNew: boolean, signal: AbortSignal): Promise<GradeEnd> {
    const { command, rooms, objects } = this.#setting;
    const { attempt, task, grader } = graded;
    const start = performance.now();
    const digest = digestOf(candidate);
    // The grader is told nothing of arm, model or seed: it has no use for them.
    const request = canonicalBytes({
      boundbook: 1,
      stage: 'grade',
      attempt,
      task,
      candidate: digest,
      expected_tests: expectedTests(grader, task.fields),
      reward: grader.reward,
    });
    const exit = await command.run({ attempt, task, request, candidate, isNew }, signal);
    if (exit === null) return { kind: 'abandoned' };
    const end = await endOfStage(exit, secondsSince(start), objects);
    const capture = captureOf(exit, {});
    const rest = { ...end, objects: { ...end.objects, ...(capture === null ? {} : { [CAPTURE]: capture }) } };
    const collected = collectFile(rooms.output(attempt, 'grade'), REPORT, REPORT_BYTES);
    if (collected.kind !== 'file') {
      const observed = exitSignals(exit) ?? {
        phase: 'collect' as const,
        cause: collected.kind === 'absent' ? ('report_missing' as const) : ('report_invalid' as const),
        exit_status: exit.exit_status,
        text: missingText(REPORT, collected),
      };
      const signals = failureSignals({ stage: 'grade', ...observed, ...memorySignals(exit) });
      return { kind: 'failure', signals, ...rest };
    }
    const verdict = validate(collected.bytes, graded, digest);
    if (verdict.ok) return { kind: 'report', bytes: collected.bytes, value: verdict.value, ...rest };
    const signals = failureSignals({
      stage: 'grade',
      phase: 'collect',
      cause: 'report_invalid',
      exit_status: exit.exit_status,
      signal: exit.signal,
      text: faultText(verdict.faults),
      ...memorySignals(exit),
    });
    return {
      kind: 'failure',
      signals,
      ...rest,
      objects: { ...rest.objects, rejected_report: collected.bytes },
    };
  }

  /**
   * A report counts however its process ended, so one that is valid counts although nobody saw the end (law 3). One that was
   * there before grading began is nobody's.
   */
  async unseen(graded: Graded, candidate: Digest): Promise<{ bytes: Buffer; value: number } | null> {
    const { rooms } = this.#setting;
    const { attempt } = graded;
    if (!(await rooms.hasBegun(attempt, candidate))) return null;
    const collected = collectFile(rooms.output(attempt, 'grade'), REPORT, REPORT_BYTES);
    if (collected.kind !== 'file') return null;
    const verdict = validate(collected.bytes, graded, candidate);
    return verdict.ok ? { bytes: collected.bytes, value: verdict.value } : null;
  }
}

/** Why a declared file could not be collected. */
export function missingText(
  name: string,
  collected: Exclude<ReturnType<typeof collectFile>, { kind: 'file' }>,
): string {
  switch (collected.kind) {
    case 'absent':
      return `no file ${name}`;
    case 'refused':
      return collected.reason;
    case 'too_large':
      return `${name} has ${collected.size} bytes`;
  }
}

function validate(bytes: Buffer, { task, grader, schema }: Graded, candidate: Digest): ReportVerdict {
  const tests = expectedTests(grader, task.fields);
  return validateReport(bytes, { task: task.id, candidate, tests, reward: grader.reward, schema });
}
