import type { FailureSignals } from '../attempts/signals.js';
import type { Digest } from '../core/digest.js';
import { digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { parseStrictJson } from '../core/strict-json.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { HarborRunner } from '../protocol/schema/harbor-runner.js';
import { type Regrade, trialExpectations } from '../runner/adapters/harbor-config.js';
import {
  TRIAL_FILES,
  type TrialFile,
  type TrialObservation,
  trialObservation,
} from '../runner/adapters/harbor-evidence.js';
import {
  gradeOfFirst,
  gradeOfRegrade,
  readTrial,
  type TrialGrade,
  type TrialReading,
} from '../runner/adapters/harbor-trial.js';
import { shown } from './difference.js';
import type { FindingCode, Findings, Place } from './finding.js';
import type { ObjectShelf } from './objects.js';
import type { PlannedWork } from './planned-work.js';
import type { Unchecked } from './unchecked.js';

export interface TrialSetting {
  readonly runner: HarborRunner;
  readonly manifest: Digest;
  readonly shelf: ObjectShelf;
  readonly findings: Findings;
  readonly unchecked: Unchecked;
}

type StageEntry = EntryOf<'stage.finished'>;

/** Of a regrade: the session that went on with it, when another one had begun it. */
export type RegradeOf = Pick<Regrade, 'takenOver'>;

/** The stage of a trial that is being checked. */
interface Stage {
  readonly entry: StageEntry;
  readonly where: Place;
  readonly code: FindingCode;
}

/** What signals must agree in; a change of the boot is shown elsewhere, and the text is for people. */
const SHOWN = [
  'stage',
  'phase',
  'cause',
  'exit_status',
  'signal',
  'exception',
  'http_status',
  'embedded_status',
  'service_alive',
  'oom_kill',
] as const satisfies readonly (keyof FailureSignals)[];

/** Reads Harbor trials again from what was kept of them: candidate, report, value and failure must follow from it. */
export class TrialCheck {
  readonly #setting: TrialSetting;
  /** Outcomes that were read again. */
  read = 0;

  constructor(setting: TrialSetting) {
    this.#setting = setting;
  }

  /** @param graded what is being graded; null while a candidate is made */
  check(
    entry: StageEntry,
    work: PlannedWork,
    graded: Digest | null,
    regrade: RegradeOf | null,
    where: Place,
  ): void {
    const { result } = entry;
    const code =
      result.kind === 'candidate'
        ? 'CANDIDATE_DIFFERS'
        : result.kind === 'report'
          ? 'REPORT_DIFFERS'
          : 'FAILURE_DIFFERS';
    const stage: Stage = { entry, where, code };
    const { fields } = work;
    if (fields === null) this.#setting.unchecked.add('trial');
    const kept = fields === null ? null : this.#kept(stage);
    if (fields === null || kept === null) return;
    const { runner, manifest } = this.#setting;
    const expected = trialExpectations(
      runner,
      manifest,
      entry.attempt,
      { ...work, fields },
      regrade === null || graded === null ? null : { candidate: graded, ...regrade },
    );
    const reading = readTrial(kept, expected);
    this.read++;
    if (entry.stage === 'generate') this.#made(stage, reading);
    else if (graded !== null)
      this.#graded(stage, regrade === null ? gradeOfFirst(reading, graded) : gradeOfRegrade(reading));
  }

  #made(stage: Stage, reading: TrialReading): void {
    const { result } = stage.entry;
    if (result.kind === 'candidate') {
      if (reading.kind === 'made' && reading.candidate === result.candidate) return;
      const due = reading.kind === 'made' ? reading.candidate : `no candidate (${reading.signals.cause})`;
      this.#differs(
        stage,
        `the trial gives ${due}, the entry names ${result.candidate}`,
        '/result/candidate',
      );
    } else if (result.kind === 'failure') {
      if (reading.kind === 'failure') this.#signals(stage, result.signals, reading.signals);
      else this.#differs(stage, 'the trial made a candidate', '/result/signals');
    }
  }

  #graded(stage: Stage, grade: TrialGrade): void {
    const { result } = stage.entry;
    if (result.kind === 'report') {
      if (grade.kind === 'failure') {
        this.#differs(stage, `the trial gives no valid report: ${grade.signals.cause}`, '/result/report');
        return;
      }
      if (digestOf(grade.bytes) !== result.report) {
        this.#differs(stage, 'the trial gives another report', '/result/report');
      }
      this.#value(stage, grade.value, result.value);
    } else if (result.kind === 'failure') {
      if (grade.kind === 'failure') this.#signals(stage, result.signals, grade.signals);
      else
        this.#differs(
          stage,
          'the trial has a valid report: it should have settled the slot',
          '/result/signals',
          'P11',
        );
    }
  }

  #value({ where }: Stage, expected: number, actual: number): void {
    if (expected === actual) return;
    this.#setting.findings.add({
      code: 'VALUE_DIFFERS',
      where: { ...where, pointer: '/result/value' },
      message: `the entry says ${actual}, the trial gives ${expected}`,
      evidence: { expected, actual },
      outcome: true,
    });
  }

  #signals(stage: Stage, actual: FailureSignals, expected: FailureSignals): void {
    const name = SHOWN.find((each) => actual[each] !== expected[each]);
    if (name === undefined) return;
    const message = `${name} is ${shown(actual[name])} in the entry; the trial shows ${shown(expected[name])}`;
    this.#differs(stage, message, `/result/signals/${name}`);
  }

  #differs({ where, code }: Stage, message: string, pointer: string, clause?: string): void {
    this.#setting.findings.add({
      code,
      ...(clause === undefined ? {} : { clause }),
      where: { ...where, pointer },
      message,
      outcome: code !== 'CANDIDATE_DIFFERS',
    });
  }

  /** What was kept of the trial; null when it is redacted, or nothing that the entry could rest on. */
  #kept(stage: Stage): Parameters<typeof readTrial>[0] | null {
    const observation = this.#observation(stage);
    if (observation === null) return null;
    const bytes: Partial<Record<TrialFile, Buffer>> = {};
    for (const name of Object.keys(TRIAL_FILES) as TrialFile[]) {
      const file = observation.files[name];
      const due = file.kind === 'file' ? file.object : undefined;
      if (stage.entry.objects[name] !== due) {
        this.#differs(stage, `the object ${name} is not the file that was seen`, `/objects/${name}`);
        return null;
      }
      const content = due === undefined ? undefined : this.#object(due, stage, name);
      if (content === null) return null;
      if (content !== undefined) bytes[name] = content;
    }
    return { observation, bytes };
  }

  #observation(stage: Stage): TrialObservation | null {
    const digest = stage.entry.objects.trial;
    if (digest === undefined) {
      this.#differs(stage, 'nothing was kept of the trial', '/objects');
      return null;
    }
    const bytes = this.#object(digest, stage, 'trial');
    if (bytes === null) return null;
    const parsed = trialObservation.safeParse(parseOrNull(bytes));
    if (parsed.success) return parsed.data;
    this.#differs(stage, 'what was seen of the trial has not its form', '/objects/trial');
    return null;
  }

  #object(digest: Digest, { where }: Stage, name: string): Buffer | null {
    const { shelf, unchecked } = this.#setting;
    const bytes = shelf.read(digest, { ...where, pointer: `/objects/${name}` });
    if (bytes === null && shelf.isRedacted(digest)) unchecked.add('trial');
    return bytes;
  }
}

function parseOrNull(bytes: Buffer): unknown {
  try {
    return parseStrictJson(bytes, 'the object');
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}
