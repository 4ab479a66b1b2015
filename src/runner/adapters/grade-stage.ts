import { failureSignals } from '../../attempts/signals.js';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import type { JsonObject } from '../../core/json.js';
import { expectedTests } from '../../grading/reference.js';
import type { ReportSchema } from '../../grading/report-schema.js';
import { faultText, type ReportVerdict, validateReport } from '../../grading/validate-report.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import type { Grader } from '../../protocol/schema/grader.js';
import type { GradeEnd } from './adapter.js';
import type { AttemptRooms, StageBegins } from './attempt-rooms.js';
import { collectFile } from './collect.js';
import { memorySignals } from './command-ends.js';
import type { CommandStage } from './command-stage.js';
import { damageSignals, leftBy, missingSignals, missingText } from './stage-end.js';

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
   * @throws {BoundbookError} TASKS_INVALID for expected tests that are none; DISK_FULL and the like
   */
  async grade(
    graded: Graded,
    candidate: Buffer,
    begins: StageBegins,
    signal: AbortSignal,
  ): Promise<GradeEnd> {
    const { command, objects } = this.#setting;
    const { attempt, task, grader } = graded;
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
    return command.run({ attempt, task, request, candidate, begins }, signal, async (ran) => {
      const { exit, room, damage } = ran;
      const rest = await leftBy(ran, { objects: {}, words: {} }, objects);
      if (damage !== null) return { kind: 'failure', signals: damageSignals('grade', damage, exit), ...rest };
      const collected = collectFile(room.outputFile, REPORT, REPORT_BYTES);
      if (collected.kind !== 'file') {
        const cause = collected.kind === 'absent' ? 'report_missing' : 'report_invalid';
        const signals = missingSignals('grade', exit, cause, missingText(REPORT, collected));
        return { kind: 'failure', signals, ...rest };
      }
      const { bytes } = collected;
      const verdict = validate(bytes, graded, digest);
      if (verdict.ok) return { kind: 'report', bytes, value: verdict.value, ...rest };
      const signals = failureSignals({
        stage: 'grade',
        phase: 'collect',
        cause: 'report_invalid',
        exit_status: exit.exit_status,
        signal: exit.signal,
        text: faultText(verdict.faults),
        ...memorySignals(exit),
      });
      return { kind: 'failure', signals, ...rest, objects: { ...rest.objects, rejected_report: bytes } };
    });
  }

  /**
   * A report counts however its process ended, so one that is valid counts although nobody saw the end (law 3). One that was
   * there before grading began is nobody's.
   */
  async unseen(graded: Graded, candidate: Digest): Promise<{ bytes: Buffer; value: number } | null> {
    const { rooms } = this.#setting;
    const { attempt } = graded;
    const output = await rooms.gradedIn(attempt, candidate);
    if (output === null) return null;
    const collected = collectFile(rooms.home(attempt), `${output}/${REPORT}`, REPORT_BYTES);
    if (collected.kind !== 'file') return null;
    const verdict = validate(collected.bytes, graded, candidate);
    return verdict.ok ? { bytes: collected.bytes, value: verdict.value } : null;
  }
}

function validate(bytes: Buffer, { task, grader, schema }: Graded, candidate: Digest): ReportVerdict {
  const tests = expectedTests(grader, task.fields);
  return validateReport(bytes, { task: task.id, candidate, tests, reward: grader.reward, schema });
}
