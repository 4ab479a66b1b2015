import type { Violation } from '../attempts/violation.js';
import type { Digest } from '../core/digest.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { slotsDigest } from '../slots/selector.js';
import type { EntryOf } from './entries/entry.js';
import type { PlanContext } from './plan-index.js';
import { recheckSample } from './recheck-sample.js';
import { canaryFault } from './service-marks.js';
import type { SessionBook } from './sessions.js';
import type { SlotBook } from './slot-book.js';

/** A sample of the outputs that the stop rule ended, generated again without it (B10). */
export interface Recheck {
  readonly id: string;
  readonly seq: number;
  readonly time: string;
  readonly fraction: string;
  readonly stopped: SlotSet;
  readonly sample: SlotSet;
  /** Declared when outcomes could be read already. */
  readonly afterUnblinding: boolean;
  closed: boolean;
  counts: RecheckCounts;
  /** Completion tokens that servers counted for what was graded. */
  tokens: number;
}

type SlotSet = { readonly count: number; readonly digest: Digest };
type RecheckCounts = Readonly<Record<'recovered' | 'not_recovered' | 'failed', number>>;

/** One member for each field of {@link RecheckBook}. */
export interface RecheckSnapshot {
  readonly rechecks: readonly Recheck[];
  readonly looped: readonly string[];
  readonly sample: readonly string[];
  readonly sent: readonly (readonly [slot: string, session: string])[];
  readonly ended: readonly string[];
}

/** What of a ledger a recheck is judged by. */
export interface RecheckSetting {
  readonly context: PlanContext;
  readonly slots: SlotBook;
  readonly sessions: SessionBook;
  readonly isAmended: boolean;
  readonly isUnblinded: boolean;
}

const LOOP_STOP = 'loop_stop';

/** The rechecks of a ledger. They touch no slot: the stopped output stays what the slot settled on. */
export class RecheckBook {
  readonly #all: Recheck[] = [];
  /** Slots whose present candidate the stop rule ended. */
  readonly #looped = new Set<string>();
  /** Of the open one, as the two after it. */
  readonly #sample = new Set<string>();
  /** Slots whose request was sent, with the session that sent it. */
  readonly #sent = new Map<string, string>();
  readonly #ended = new Set<string>();

  get all(): readonly Recheck[] {
    return this.#all;
  }

  /** The one that is under way. */
  get open(): Recheck | null {
    const last = this.#all.at(-1);
    return last === undefined || last.closed ? null : last;
  }

  /** Of the open one: slots that are not ended, with the session that sent their request, null before it was. */
  *left(): Generator<readonly [slot: string, session: string | null]> {
    for (const slot of this.#sample) if (!this.#ended.has(slot)) yield [slot, this.#sent.get(slot) ?? null];
  }

  /** Whether a slot of the open one has not been sent. */
  isUnsent(slot: string): boolean {
    return this.#sample.has(slot) && !this.#sent.has(slot);
  }

  /** Slots of this ledger's own that settled on what was generated until the stop rule fired; ids, ascending. */
  stopped(slots: SlotBook): readonly string[] {
    return [...this.#looped].filter((slot) => settledValue(slots, slot) !== null).sort();
  }

  /** Takes the candidate of a slot's own attempt. */
  generated({ slot, finish_reason }: EntryOf<'stage.finished'>, slots: SlotBook, protocol: Protocol): void {
    const key = finish_reason === LOOP_STOP ? slots.key(slot) : null;
    const rule = protocol.conditions[protocol.arms[key?.arm ?? '']?.condition ?? '']?.loop_stop;
    if (rule === undefined) this.#looped.delete(slot);
    else this.#looped.add(slot);
  }

  declare(entry: EntryOf<'recheck.declared'>, setting: RecheckSetting): Violation | null {
    const { recheck: id, seq, time, fraction, stopped, sample } = entry;
    const { slots, context } = setting;
    const fault = mayStart(entry, setting);
    if (fault !== null) return fault;
    if (this.open !== null) return forbid(`the recheck ${this.open.id} is not closed`);
    if (this.#all.some((one) => one.id === id)) return forbid(`the recheck ${id} was declared before`);
    const { pending, open } = slots.total();
    if (pending + open > 0) return forbid(`${pending + open} slots of the plan are not closed`);
    const found = this.stopped(slots);
    const chosen = recheckSample(found, fraction, context.manifest);
    const due = { stopped: slotsDigest(found), sample: slotsDigest(chosen) };
    for (const part of ['stopped', 'sample'] as const)
      if (due[part].count !== entry[part].count || due[part].digest !== entry[part].digest)
        return forbid(
          `its ${part} slots are ${entry[part].count}, due are ${due[part].count}, ${due[part].digest}`,
        );
    const counts = { recovered: 0, not_recovered: 0, failed: 0 };
    const afterUnblinding = setting.isUnblinded;
    this.#all.push({
      id,
      seq,
      time,
      fraction,
      stopped,
      sample,
      afterUnblinding,
      closed: false,
      counts,
      tokens: 0,
    });
    this.#sample.clear();
    for (const slot of chosen) this.#sample.add(slot);
    this.#sent.clear();
    this.#ended.clear();
    return null;
  }

  start(entry: EntryOf<'recheck.started'>, setting: RecheckSetting): Violation | null {
    const { slot, session } = entry;
    const key = setting.slots.key(slot);
    const fault = this.#closed(entry) ?? mayStart(entry, setting);
    if (fault !== null) return fault;
    if (!this.#sample.has(slot) || key === null) return forbid(`slot ${slot} is not in the sample`);
    if (this.#sent.has(slot)) return forbid(`slot ${slot} was started before`);
    const { protocol } = setting.context;
    const unanswered = canaryFault({ kind: 'first', key }, setting.sessions.get(session), protocol);
    if (unanswered === null) this.#sent.set(slot, session);
    return unanswered;
  }

  finish(entry: EntryOf<'recheck.finished'>, setting: RecheckSetting): Violation | null {
    const { slot, session, result, objects } = entry;
    const { open } = this;
    const fault = this.#closed(entry) ?? setting.sessions.mayStart(session);
    if (fault !== null || open === null) return fault;
    const sender = this.#sent.get(slot);
    if (sender === undefined || this.#ended.has(slot)) return forbid(`slot ${slot} is not under way`);
    const isLost = result.kind === 'failure' && result.signals.cause === 'process_gone';
    if (isLost && Object.keys(objects).length > 0) return forbid('a process that is gone left nothing');
    if (sender !== session && !isLost) return forbid(`the session ${sender} started it`);
    if (result.kind === 'graded' && result.before !== settledValue(setting.slots, slot))
      return forbid(`slot ${slot} settled on another value than ${result.before}`);
    this.#ended.add(slot);
    const kind =
      result.kind === 'failure' ? 'failed' : result.value > result.before ? 'recovered' : 'not_recovered';
    open.counts = { ...open.counts, [kind]: open.counts[kind] + 1 };
    open.tokens += entry.usage?.completion_tokens ?? 0;
    return null;
  }

  close(entry: EntryOf<'recheck.closed'>): Violation | null {
    const { open } = this;
    const fault = this.#closed(entry);
    if (fault !== null || open === null) return fault;
    const left = [...this.left()].length;
    if (left > 0) return forbid(`${left} slots of its sample are not ended`);
    const { recovered, not_recovered, failed } = open.counts;
    if (entry.recovered !== recovered || entry.not_recovered !== not_recovered || entry.failed !== failed)
      return forbid(`it found ${recovered} recovered, ${not_recovered} not, and ${failed} failed`);
    open.closed = true;
    this.#sample.clear();
    this.#sent.clear();
    this.#ended.clear();
    return null;
  }

  snapshot(): RecheckSnapshot {
    return {
      rechecks: this.#all.map((one) => ({ ...one })),
      looped: [...this.#looped],
      sample: [...this.#sample],
      sent: [...this.#sent],
      ended: [...this.#ended],
    };
  }

  restore({ rechecks, looped, sample, sent, ended }: RecheckSnapshot): void {
    for (const one of rechecks) this.#all.push({ ...one });
    for (const slot of looped) this.#looped.add(slot);
    for (const slot of sample) this.#sample.add(slot);
    for (const [slot, session] of sent) this.#sent.set(slot, session);
    for (const slot of ended) this.#ended.add(slot);
  }

  #closed({ recheck }: { readonly recheck: string }): Violation | null {
    return this.open?.id === recheck ? null : forbid(`the recheck ${recheck} is not open`);
  }
}

/** Null unless a report settled the slot. */
function settledValue(slots: SlotBook, slot: string): number | null {
  const state = slots.carriedSlot(slot) === null ? slots.state(slot) : null;
  return state?.phase === 'settled' && state.basis.kind === 'report' ? state.value : null;
}

function mayStart({ session }: { readonly session: string }, setting: RecheckSetting): Violation | null {
  return setting.isAmended
    ? { clause: 'P22', message: 'nothing is rechecked after the amendment of the plan' }
    : setting.sessions.mayStart(session);
}

function forbid(message: string): Violation {
  return { clause: 'B10', message };
}
