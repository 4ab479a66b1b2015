import { type FailureSignals, failureSignals } from '../../attempts/signals.js';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import type { JsonObject, JsonValue } from '../../core/json.js';
import { parseStrictJson } from '../../core/strict-json.js';
import type { Phase } from '../../protocol/schema/signals.js';
import type { TrialExpectations } from './harbor-config.js';
import { TRIAL_FILES, type TrialEvidence, type TrialFile, type TrialObservation } from './harbor-evidence.js';
import { asRecord, mismatch } from './harbor-match.js';
import { type RewardFile, readReward } from './harbor-reward.js';
import { instantMs } from './harbor-time.js';

/** What a trial came to: no candidate, or a candidate and what grading it came to. */
export type TrialReading =
  | { readonly kind: 'failure'; readonly signals: FailureSignals }
  | { readonly kind: 'made'; readonly candidate: Digest; readonly grade: TrialGrade };

export type TrialGrade =
  | { readonly kind: 'report'; readonly bytes: Buffer; readonly value: number }
  | { readonly kind: 'failure'; readonly signals: FailureSignals };

type Judged = Pick<TrialEvidence, 'observation' | 'bytes'>;
type Observed = Pick<FailureSignals, 'phase' | 'cause'> & Partial<FailureSignals>;

/** Phases of a trial before its verifier, in order. */
const BEFORE = ['environment_setup', 'agent_setup', 'agent_execution'] as const satisfies readonly Phase[];
const EMPTY = digestOf('');

/**
 * Reads a trial, by the plan and what was kept of it alone, so that an audit comes to the same. In this order: what
 * cannot be read, or is of another plan or trial, has no outcome at all; how far it came is what the result's timing
 * objects say, never the name of an exception; a valid reward counts whatever exception stands beside it (law 3, P14).
 */
export function readTrial({ observation, bytes }: Judged, expected: TrialExpectations): TrialReading {
  const stage = expected.graded === null ? 'generate' : 'grade';
  const { exit } = observation;
  const fail = (signals: Observed): TrialReading => ({
    kind: 'failure',
    signals: failureSignals({
      stage,
      exit_status: exit?.exit_status ?? null,
      signal: exit?.signal ?? null,
      ...signals,
    }),
  });
  const result = parseRecord(bytes.result);
  if (result === null) return fail(brokenOff(observation) ?? unreadable(observation, 'result'));
  if (typeof result.finished_at !== 'string') {
    const text = 'result.json says no end';
    return fail(brokenOff(observation) ?? { phase: 'collect', cause: 'trial_unreadable', text });
  }
  const papers = { result, config: parseRecord(bytes.config), lock: parseRecord(bytes.lock) };
  const difference =
    observation.trial === expected.trial ? mismatch(papers, expected) : 'it is another trial';
  if (difference !== null) return fail({ phase: 'collect', cause: 'trial_mismatch', text: difference });
  const exception = exceptionOf(result);
  if (!isBegun(result.verifier)) {
    const phase = BEFORE.findLast((name) => isBegun(result[name])) ?? 'environment_setup';
    return exception.exception === null
      ? fail({ phase, cause: 'trial_unreadable', text: 'neither verifier nor exception' })
      : fail({ phase, cause: 'trial_exception', ...exception });
  }
  const candidate = candidateOf(observation, expected);
  if (typeof candidate !== 'string') return fail(candidate);
  return { kind: 'made', candidate, grade: gradeOf({ observation, bytes }, result, candidate, expected) };
}

function gradeOf(
  { observation, bytes }: Judged,
  result: JsonObject,
  candidate: Digest,
  expected: TrialExpectations,
): TrialGrade {
  const { exit, files } = observation;
  const fail = (signals: Observed): TrialGrade => ({
    kind: 'failure',
    signals: failureSignals({
      stage: 'grade',
      exit_status: exit?.exit_status ?? null,
      signal: exit?.signal ?? null,
      ...signals,
    }),
  });
  if (expected.graded !== null && candidate !== expected.graded) {
    const text = `the trial graded ${candidate}, not ${expected.graded}`;
    return fail({ phase: 'collect', cause: 'trial_mismatch', text });
  }
  const exception = exceptionOf(result);
  if (hasSteps(result)) {
    return fail({
      phase: 'verifier',
      cause: 'report_invalid',
      exception: exception.exception,
      text: 'it has steps',
    });
  }
  const refused = (['reward_json', 'reward_text'] as const).find(
    (name) => files[name].kind === 'refused' || files[name].kind === 'too_large',
  );
  if (refused !== undefined)
    return fail({ ...unreadable(observation, refused), phase: 'verifier', cause: 'report_invalid' });
  const reading = readReward(result, rewardFiles({ observation, bytes }), expected.grader);
  if (reading.ok) {
    const report = trialReport(observation, candidate, reading.value, exception.exception, expected);
    return { kind: 'report', bytes: report, value: reading.value };
  }
  const { cause, text } = reading;
  if (cause !== 'report_missing' || exception.exception === null) {
    return fail({ phase: 'verifier', cause, exception: exception.exception, text });
  }
  return fail({ phase: 'verifier', cause: 'trial_exception', ...exception });
}

/** What the trial that made a candidate says of it; when the trial is not there any more, its verdict is lost. */
export function gradeOfFirst(reading: TrialReading, candidate: Digest): TrialGrade {
  if (reading.kind === 'made' && reading.candidate === candidate) return reading.grade;
  const text = 'the trial that made the candidate is not there any more';
  return {
    kind: 'failure',
    signals: failureSignals({ stage: 'grade', phase: 'between', cause: 'process_gone', text }),
  };
}

/** What a trial that only grades says. */
export function gradeOfRegrade(reading: TrialReading): TrialGrade {
  return reading.kind === 'failure' ? reading : reading.grade;
}

/** Whether there is no end of this very trial: a session that finds a lost attempt has nothing to adopt. */
export function isNoEnd(reading: TrialReading): boolean {
  if (reading.kind !== 'failure') return false;
  const { phase, cause } = reading.signals;
  return cause === 'trial_mismatch' || (cause === 'trial_unreadable' && phase === 'collect');
}

/** The report that a settlement rests on: it names task and candidate, and what it was read from. */
function trialReport(
  { files }: TrialObservation,
  candidate: Digest,
  reward: number,
  exception: string | null,
  { task, trial, grader }: TrialExpectations,
): Buffer {
  const digest = (name: TrialFile) => (files[name].kind === 'file' ? files[name].object : null);
  return canonicalBytes({
    task,
    candidate,
    tests: {},
    reward,
    grader: { kind: grader.kind, key: grader.key },
    trial,
    exception,
    ...Object.fromEntries((Object.keys(TRIAL_FILES) as TrialFile[]).map((name) => [name, digest(name)])),
  });
}

/** Signals of a process that broke off; null for one that ended by itself in order, or whose end nobody saw. */
function brokenOff({ exit }: TrialObservation): Observed | null {
  if (exit === null) return null;
  if (exit.spawn_error !== null) return { phase: 'spawn', cause: 'spawn_failed', text: exit.spawn_error };
  if (exit.timed_out) return { phase: 'running', cause: 'time_limit' };
  if (exit.signal !== null) return { phase: 'running', cause: 'killed_by_signal' };
  return exit.exit_status === 0 ? null : { phase: 'running', cause: 'exit_status' };
}

function unreadable({ files }: TrialObservation, name: TrialFile): Observed {
  const file = files[name];
  const problem = { file: 'cannot be read', absent: 'is missing', too_large: 'is too large' };
  const text = file.kind === 'refused' ? file.reason : `${TRIAL_FILES[name]} ${problem[file.kind]}`;
  return { phase: 'collect', cause: 'trial_unreadable', text };
}

function candidateOf(
  { files: { candidate } }: TrialObservation,
  { whenAbsent }: TrialExpectations,
): Digest | Observed {
  if (candidate.kind === 'file') return candidate.object;
  if (candidate.kind === 'absent' && whenAbsent === 'empty') return EMPTY;
  const cause = candidate.kind === 'too_large' ? 'body_too_large' : 'candidate_missing';
  return { phase: 'collect', cause, text: candidate.kind === 'refused' ? candidate.reason : 'no candidate' };
}

function rewardFiles({ observation: { files }, bytes }: Judged): readonly RewardFile[] {
  return (['reward_json', 'reward_text'] as const).flatMap((name) => {
    const file = files[name];
    const content = bytes[name];
    if (file.kind !== 'file' || content === undefined) return [];
    const { modified_ms, changed_ms } = file;
    return [{ name: TRIAL_FILES[name], bytes: content, modifiedMs: modified_ms, changedMs: changed_ms }];
  });
}

/** Name and message of the trial's first exception. What was raised after it, Harbor keeps to itself. */
function exceptionOf(result: JsonObject): {
  readonly exception: string | null;
  readonly text: string | null;
} {
  const { exception_info: told } = result;
  if (told === undefined || told === null) return { exception: null, text: null };
  const { exception_type: name, exception_message: message } = asRecord(told) ?? {};
  return {
    exception: typeof name === 'string' ? name.slice(0, 200).toWellFormed() : 'unnamed',
    text: typeof message === 'string' ? message : null,
  };
}

function isBegun(phase: JsonValue | undefined): boolean {
  return typeof asRecord(phase)?.started_at === 'string';
}

/** A task of several steps: its reward leaves out steps without one, and hides their exceptions. */
function hasSteps({ step_results: steps }: JsonObject): boolean {
  return steps !== undefined && steps !== null && !(Array.isArray(steps) && steps.length === 0);
}

/** Seconds that the verifier took; 0 when that is not said. */
export function verifierSeconds(result: Buffer | undefined): number {
  const verifier = asRecord(parseRecord(result)?.verifier);
  const [from, to] = [instantMs(verifier?.started_at), instantMs(verifier?.finished_at)];
  return from === null || to === null ? 0 : Math.max(0, to - from) / 1000;
}

function parseRecord(bytes: Buffer | undefined): JsonObject | null {
  if (bytes === undefined) return null;
  try {
    return asRecord(parseStrictJson(bytes, 'the file'));
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}
