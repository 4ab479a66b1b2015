import { expect } from 'vitest';
import type { Digest } from '../../src/core/digest.js';
import type { Entry } from '../../src/ledger/entries/entry.js';
import { observed } from '../runner/story.js';
import { canHappenToAny, isOwnEnd } from './modes.js';

/** One attempt, as the ledger tells it. */
interface Attempt {
  readonly kind: string;
  /** `report VALUE`, the signals of a failure, `lost` with its process; null while nothing is recorded. */
  end: string | null;
  rule: string | null;
  /** How often the server said that it was busy; null when nobody could write it down. */
  refusals: number | null;
  queueLimit: boolean;
}

interface Slot {
  readonly task: string;
  readonly seed: number;
  readonly attempts: Map<string, Attempt>;
  closed: string | null;
}

export interface Accounts {
  readonly slots: number;
  readonly attempts: number;
  /** How often each end of an attempt occurred. */
  readonly ends: ReadonlyMap<string, number>;
}

export interface Evidence {
  readonly entries: Iterable<Entry>;
  /** By task. */
  readonly prompts: Readonly<Record<string, string>>;
  readonly stream: boolean;
  readonly requests: readonly { readonly prompt: string; readonly seed: number }[];
  /** The length of the list that an object holds. */
  readonly listLength: (digest: Digest) => number;
}

/** Every attempt ended as the mode of its prompt allows, and the server saw what the ledger says that it was asked. */
export function expectAccounted(evidence: Evidence): Accounts {
  const slots = collect(evidence);
  const asked = new Map<string, number>();
  for (const { prompt, seed } of evidence.requests) {
    const key = `${seed} ${prompt}`;
    asked.set(key, (asked.get(key) ?? 0) + 1);
  }
  const ends = new Map<string, number>();
  let attempts = 0;
  const wrong: string[] = [];
  for (const slot of slots.values()) {
    const prompt = evidence.prompts[slot.task] ?? '';
    const key = `${slot.seed} ${prompt}`;
    const faults = [
      ...faultsOf(slot, prompt, evidence.stream),
      ...miscounted(slot, prompt, asked.get(key) ?? 0),
    ];
    asked.delete(key);
    attempts += slot.attempts.size;
    for (const { end } of slot.attempts.values()) ends.set(end ?? '-', (ends.get(end ?? '-') ?? 0) + 1);
    const told = [...slot.attempts.values()].map(({ kind, end, rule }) => `${kind}: ${end} by ${rule}`);
    for (const fault of faults) wrong.push(`${prompt}: ${fault} (${told.join('; ')}; ${slot.closed})`);
  }
  for (const key of asked.keys()) wrong.push(`no attempt asked for ${key}`);
  expect(wrong).toEqual([]);
  return { slots: slots.size, attempts, ends };
}

function collect({ entries, listLength }: Evidence): ReadonlyMap<string, Slot> {
  const slots = new Map<string, Slot>();
  for (const entry of entries) {
    if (!('slot' in entry) || !('type' in entry)) continue;
    if (entry.type === 'attempt.started') {
      const { slot, key, sampling_seed: seed, kind, attempt } = entry;
      const known = slots.get(slot) ?? { task: key.task, seed, attempts: new Map(), closed: null };
      known.attempts.set(attempt, { kind, end: null, rule: null, refusals: null, queueLimit: false });
      slots.set(slot, known);
      continue;
    }
    const slot = slots.get(entry.slot);
    if (slot === undefined) continue;
    if (entry.type === 'slot.settled') slot.closed = `settled ${entry.value}`;
    if (entry.type === 'slot.unresolved') slot.closed = entry.reason;
    if (!('attempt' in entry)) continue;
    const attempt = slot.attempts.get(entry.attempt);
    if (attempt === undefined) continue;
    if (entry.type === 'attribution.recorded') attempt.rule = entry.rule;
    if (entry.type === 'attempt.recovered' && entry.found === 'nothing') attempt.end = 'lost';
    if (entry.type !== 'stage.finished') continue;
    const { result, objects } = entry;
    if (entry.stage === 'generate') {
      attempt.refusals = objects.queue === undefined ? 0 : listLength(objects.queue);
    }
    if (result.kind === 'report') attempt.end = `report ${result.value}`;
    if (result.kind === 'failure') {
      attempt.end = observed(result.signals);
      attempt.queueLimit = result.signals.cause === 'queue_limit';
    }
  }
  return slots;
}

/** What the ledger says of a slot that the mode of its prompt does not allow. */
function faultsOf(slot: Slot, prompt: string, stream: boolean): string[] {
  const faults: string[] = [];
  const attempts = [...slot.attempts.values()];
  const last = attempts.at(-1);
  if (attempts.length > 2) faults.push(`${attempts.length} attempts`);
  for (const { end } of attempts) {
    if (end === null) faults.push('an attempt without an end');
    else if (end !== 'lost' && !isOwnEnd(prompt, stream, end) && !canHappenToAny(end)) {
      faults.push(`ended in ${end}`);
    }
  }
  for (const { end, rule } of attempts.slice(0, -1)) {
    if (end !== 'lost' && rule === null) faults.push(`${end} was replaced without a rule`);
  }
  for (const { end, rule } of attempts) {
    if (end?.endsWith(' dead') === true && rule !== 'dead') faults.push(`${end} was attributed by ${rule}`);
  }
  const reported = last?.end?.startsWith('report ') === true;
  const due = reported ? last?.end?.replace('report', 'settled') : undone(attempts);
  if (slot.closed !== due) faults.push(`closed as ${slot.closed}, not ${due}`);
  return faults;
}

/** How a slot without a report must be closed. */
function undone(attempts: readonly Attempt[]): string {
  const last = attempts.at(-1);
  return last?.end !== 'lost' && last?.rule === null ? 'undetermined' : 'limit_reached';
}

/** Whether the server saw as many requests as the attempts account for. */
function miscounted(slot: Slot, prompt: string, asked: number): string[] {
  let least = 0;
  let most = 0;
  for (const { end, refusals, queueLimit } of slot.attempts.values()) {
    const known = (refusals ?? 0) + (queueLimit ? 0 : 1);
    const certain = end !== null && end !== 'lost' && !canHappenToAny(end);
    least += certain ? known : (refusals ?? 0);
    // How often it was refused went with its process.
    most += refusals === null && prompt.startsWith('busy') ? Number.POSITIVE_INFINITY : known;
  }
  if (asked >= least && asked <= most) return [];
  return [`the server was asked ${asked} times, not ${least} to ${most}`];
}
