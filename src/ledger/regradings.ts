import type { Violation } from '../attempts/violation.js';
import type { Digest } from '../core/digest.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { slotsDigest } from '../slots/selector.js';
import type { EntryOf } from './entries/entry.js';
import type { SlotBook } from './slot-book.js';

/** A corrected grader and what it made of the outputs that it was given (B6). */
export interface Regrading {
  readonly id: string;
  readonly seq: number;
  readonly time: string;
  readonly grader: Digest;
  readonly conditions: readonly string[];
  readonly reason: string;
  readonly slots: EntryOf<'regrading.opened'>['slots'];
  /** Opened when outcomes could be read already. */
  readonly afterUnblinding: boolean;
  /** Of a grader that is a command: its files, and the process that runs it now; null for one that reads answers. */
  command: RegradingCommand | null;
  /** How often another process went on with it. */
  resumed: number;
  /** Outputs of which the command gave no valid report. */
  failed: number;
  closed: boolean;
}

export type RegradingCommand = NonNullable<EntryOf<'regrading.opened'>['command']>;

export interface RegradingSnapshot {
  readonly regradings: readonly Regrading[];
  readonly recorded: readonly string[];
  readonly counts: RegradingCounts;
}

type RegradingCounts = Readonly<Record<'changed' | 'same' | 'truncated' | 'failed', number>>;

const NONE: RegradingCounts = { changed: 0, same: 0, truncated: 0, failed: 0 };

/** Slots that a regrading is about: all that a report of these conditions settled, whoever looks at them (B6). */
export function regradableSlots(
  slots: SlotBook,
  conditions: readonly string[],
  protocol: Protocol,
): readonly string[] {
  const arms = new Set(
    Object.entries(protocol.arms)
      .filter(([, { condition }]) => conditions.includes(condition))
      .map(([arm]) => arm),
  );
  return [...slots.settledByReport(arms)].sort();
}

/** The regradings of a ledger. They touch no slot: the first valid report stays what the slot settled on (law 3). */
export class RegradingBook {
  readonly #all: Regrading[] = [];
  /** Of the open one. */
  readonly #recorded = new Set<string>();
  #counts = NONE;

  get all(): readonly Regrading[] {
    return this.#all;
  }

  /** The one that is under way. */
  get open(): Regrading | null {
    const last = this.#all.at(-1);
    return last === undefined || last.closed ? null : last;
  }

  /** Of the open one: slots that were recorded. */
  get recorded(): ReadonlySet<string> {
    return this.#recorded;
  }

  get counts(): RegradingCounts {
    return this.#counts;
  }

  begin(
    entry: EntryOf<'regrading.opened'>,
    { slots, protocol, unblinded }: { slots: SlotBook; protocol: Protocol; unblinded: boolean },
  ): Violation | null {
    const { regrading: id, seq, time, grader, conditions, reason } = entry;
    if (this.open !== null) return forbid(`the regrading ${this.open.id} is not closed`);
    if (this.#all.some((one) => one.id === id)) return forbid(`the regrading ${id} was opened before`);
    const unknown = conditions.find((name) => !Object.hasOwn(protocol.conditions, name));
    if (unknown !== undefined || new Set(conditions).size < conditions.length)
      return forbid('its conditions are not those of the protocol, each once');
    const due = slotsDigest(regradableSlots(slots, conditions, protocol));
    if (due.count !== entry.slots.count || due.digest !== entry.slots.digest)
      return forbid(`it names ${entry.slots.count} slots, and reports settled ${due.count} (${due.digest})`);
    this.#all.push({
      id,
      seq,
      time,
      grader,
      conditions,
      reason,
      slots: entry.slots,
      afterUnblinding: unblinded,
      command: entry.command ?? null,
      resumed: 0,
      failed: 0,
      closed: false,
    });
    this.#recorded.clear();
    this.#counts = NONE;
    return null;
  }

  resume(entry: EntryOf<'regrading.resumed'>): Violation | null {
    const { open } = this;
    if (open?.id !== entry.regrading) return forbid(`the regrading ${entry.regrading} is not open`);
    if (open.command === null) return forbid('no process is named of a grader that reads answers');
    open.command = { ...open.command, process: entry.process };
    open.resumed++;
    return null;
  }

  record(entry: EntryOf<'regrading.recorded'>, slots: SlotBook, protocol: Protocol): Violation | null {
    const { open } = this;
    const { slot, before, result } = entry;
    if (open?.id !== entry.regrading) return forbid(`the regrading ${entry.regrading} is not open`);
    if (this.#recorded.has(slot)) return forbid(`slot ${slot} was regraded before`);
    const byCommand = open.command !== null;
    if (byCommand !== (entry.stage !== undefined) || result.kind === (byCommand ? 'truncated' : 'failed'))
      return forbid(`a grader that ${byCommand ? 'is a command' : 'reads answers'} does not end so`);
    const state = slots.state(slot);
    const key = slots.key(slot);
    const condition = key === null ? undefined : protocol.arms[key.arm]?.condition;
    if (
      state.phase !== 'settled' ||
      state.basis.kind !== 'report' ||
      !open.conditions.includes(condition ?? '')
    )
      return forbid(`no report of the regraded conditions settled slot ${slot}`);
    if (state.basis.report !== before.report || state.value !== before.value)
      return forbid(`slot ${slot} settled on ${state.basis.report} with ${state.value}`);
    this.#recorded.add(slot);
    const kind = result.kind !== 'graded' ? result.kind : result.value === before.value ? 'same' : 'changed';
    if (kind === 'failed') open.failed++;
    this.#counts = { ...this.#counts, [kind]: this.#counts[kind] + 1 };
    return null;
  }

  close(entry: EntryOf<'regrading.closed'>): Violation | null {
    const { open } = this;
    if (open?.id !== entry.regrading) return forbid(`the regrading ${entry.regrading} is not open`);
    const { count, digest } = slotsDigest([...this.#recorded].sort());
    if (count !== open.slots.count || digest !== open.slots.digest)
      return forbid(`it recorded ${count} of ${open.slots.count} slots`);
    const { changed, same, truncated, failed } = this.#counts;
    if (entry.changed !== changed || entry.same !== same || entry.truncated !== truncated)
      return forbid(`it recorded ${changed} changed, ${same} same and ${truncated} truncated ones`);
    if (entry.failed !== (open.command === null ? undefined : failed))
      return forbid(`it recorded ${failed} failed ones`);
    open.closed = true;
    this.#recorded.clear();
    return null;
  }

  snapshot(): RegradingSnapshot {
    return {
      regradings: this.#all.map((one) => ({ ...one })),
      recorded: [...this.#recorded],
      counts: this.#counts,
    };
  }

  restore({ regradings, recorded, counts }: RegradingSnapshot): void {
    for (const one of regradings) this.#all.push({ ...one });
    for (const slot of recorded) this.#recorded.add(slot);
    this.#counts = counts;
  }
}

function forbid(message: string): Violation {
  return { clause: 'B6', message };
}
