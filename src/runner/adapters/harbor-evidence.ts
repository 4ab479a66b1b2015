import { z } from 'zod';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf, isDigest } from '../../core/digest.js';
import { collectEnd, collectFile } from './collect.js';
import type { StageExit } from './stage-process.js';

/** The files of a trial folder that its outcome rests on, by the name of their object. */
export const TRIAL_FILES = {
  result: 'result.json',
  config: 'config.json',
  lock: 'lock.json',
  reward_json: 'verifier/reward.json',
  reward_text: 'verifier/reward.txt',
} as const;
export type TrialFile = keyof typeof TRIAL_FILES;

/** Files that are kept for people, from their ends. */
const LOGS = {
  exception: 'exception.txt',
  log: 'trial.log',
  test_output: 'verifier/test-stdout.txt',
} as const;

const ms = z.int();
const observedFile = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('file'),
    object: z.custom<Digest>(isDigest),
    size: z.int().min(0),
    modified_ms: ms,
    changed_ms: ms,
  }),
  z.strictObject({ kind: z.literal('absent') }),
  z.strictObject({ kind: z.literal('refused'), reason: z.string() }),
  z.strictObject({ kind: z.literal('too_large'), size: z.int().min(0) }),
]);

/** What was seen of a trial when it had ended: the object `trial` of its stages. */
export const trialObservation = z.strictObject({
  trial: z.string(),
  /** Null when nobody saw the process end. */
  exit: z
    .strictObject({
      exit_status: z.int().nullable(),
      signal: z.string().nullable(),
      timed_out: z.boolean(),
      spawn_error: z.string().nullable(),
    })
    .nullable(),
  files: z.strictObject({
    result: observedFile,
    config: observedFile,
    lock: observedFile,
    reward_json: observedFile,
    reward_text: observedFile,
    candidate: observedFile,
  }),
  /** Sizes of the logs, of which no more than `output_bytes` are kept. */
  logs: z.record(z.string(), z.int().min(0)),
});

export type TrialObservation = z.infer<typeof trialObservation>;
export type ObservedFile = z.infer<typeof observedFile>;

/** A trial as it was found on disk. */
export interface TrialEvidence {
  readonly observation: TrialObservation;
  readonly bytes: Readonly<Partial<Record<TrialFile | 'candidate', Buffer>>>;
  /** Everything that is kept, by name, the candidate apart. */
  readonly objects: Readonly<Record<string, Buffer>>;
}

const PAPER_BYTES = 64 * 2 ** 20;
const CANDIDATE_BYTES = 256 * 2 ** 20;

/**
 * Collects what a trial left. Everything below the folder is hostile: no link is followed, only these names are read,
 * and each has a cap. Call it only when the process and its offspring are gone.
 *
 * @param folder where the trial's folder lies
 * @param candidate the patch's file in the trial's folder
 */
export function collectTrial(
  folder: string,
  trial: string,
  candidate: string,
  logBytes: number,
  exit: StageExit | null,
): TrialEvidence {
  const bytes: Partial<Record<TrialFile | 'candidate', Buffer>> = {};
  const observe = (name: TrialFile | 'candidate', file: string, cap: number): ObservedFile => {
    const collected = collectFile(folder, `${trial}/${file}`, cap);
    if (collected.kind !== 'file') return collected;
    bytes[name] = collected.bytes;
    const { modifiedMs, changedMs } = collected;
    const size = collected.bytes.length;
    const object = digestOf(collected.bytes);
    return { kind: 'file', object, size, modified_ms: modifiedMs, changed_ms: changedMs };
  };
  const paper = (name: TrialFile) => observe(name, TRIAL_FILES[name], PAPER_BYTES);
  const files = {
    result: paper('result'),
    config: paper('config'),
    lock: paper('lock'),
    reward_json: paper('reward_json'),
    reward_text: paper('reward_text'),
    candidate: observe('candidate', candidate, CANDIDATE_BYTES),
  };
  const logs = Object.entries(LOGS).flatMap(([name, file]) => {
    const end = collectEnd(folder, `${trial}/${file}`, logBytes);
    return end === null || end.size === 0 ? [] : [[name, end] as const];
  });
  const observation: TrialObservation = {
    trial,
    exit: exit === null ? null : seen(exit),
    files,
    logs: Object.fromEntries(logs.map(([name, { size }]) => [name, size])),
  };
  const { candidate: _, ...papers } = bytes;
  const objects = {
    trial: canonicalBytes(observation),
    ...papers,
    ...Object.fromEntries(logs.map(([name, end]) => [name, end.bytes])),
  };
  return { observation, bytes, objects };
}

function seen({ exit_status, signal, limit, spawnError }: StageExit): TrialObservation['exit'] {
  return { exit_status, signal, timed_out: limit !== null, spawn_error: spawnError };
}
