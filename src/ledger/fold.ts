import type { AttemptKind, Violation } from '../attempts/machine.js';
import type { Attribution } from '../attempts/rules.js';
import { type Entry, type EntryOf, toSlotEvent } from './entries.js';
import type { PlanContext } from './plan-index.js';
import { SessionBook, serviceSeconds, sessionSeconds } from './sessions.js';
import { type AttemptEffort, isComplete, SlotBook } from './slot-book.js';

export interface FoldViolation extends Violation {
  /** The entry that breaks the rule. */
  readonly seq: number;
}

/** P21. Effort on slots that are not closed yet is `open`: whether it was of use is not known. */
export interface Costs extends AttemptEffort {
  /** Sessions at work, off-time excluded (B8). */
  readonly session_seconds: number;
  readonly service_seconds: number;
  /** Devices × seconds that they were held, busy or not. */
  readonly gpu_seconds: number;
}

/** The end of a session that was not its own decision. */
export interface Deviation {
  readonly seq: number;
  readonly session: string;
  readonly reason: EntryOf<'run.paused'>['reason'];
  readonly detail: string | null;
}

const PLANNED_ENDS: ReadonlySet<string> = new Set(['finished', 'limit', 'signal']);

/**
 * The state of a ledger as a fold over its entries (DESIGN §8). The runner decides by it and the audit judges by it.
 * Memory grows with the slots that were touched, see {@link SlotBook}.
 */
export class LedgerFold {
  readonly context: PlanContext;
  readonly slots: SlotBook;
  readonly sessions = new SessionBook();
  readonly #attempts: Record<AttemptKind, number> = { first: 0, replacement: 0, regrade: 0 };
  readonly #attributions: Record<Attribution, number> = { infrastructure: 0, model: 0, undetermined: 0 };
  readonly #deviations: Deviation[] = [];
  #recovered = 0;
  #opened: EntryOf<'ledger.opened'> | null = null;
  #unblinded: EntryOf<'unblinded'> | null = null;
  #lastTime: string | null = null;
  #next = 0;

  constructor(context: PlanContext) {
    this.context = context;
    this.slots = new SlotBook(context);
  }

  /** Number of entries folded. */
  get size(): number {
    return this.#next;
  }

  /** Time of the last entry. */
  get time(): string | null {
    return this.#lastTime;
  }

  get opened(): EntryOf<'ledger.opened'> | null {
    return this.#opened;
  }

  get unblinded(): EntryOf<'unblinded'> | null {
    return this.#unblinded;
  }

  /** Whether outcomes may be shown: the protocol does not blind them, or they were unblinded (law 8). */
  get outcomesVisible(): boolean {
    return this.context.protocol.blinding === 'none' || this.#unblinded !== null;
  }

  /** Attempts started, by kind. */
  get attempts(): Readonly<Record<AttemptKind, number>> {
    return this.#attempts;
  }

  /** How failures were attributed, revisions included. Shows model failures, which are outcomes (law 8). */
  get attributions(): Readonly<Record<Attribution, number>> {
    return this.#attributions;
  }

  /** Attempts whose process was found gone. */
  get recovered(): number {
    return this.#recovered;
  }

  get deviations(): readonly Deviation[] {
    return this.#deviations;
  }

  /**
   * Takes the next entry. An unlawful one changes nothing and comes back as violations; an early unblinding is the
   * exception, because what was seen was seen. An entry that was folded before is passed over.
   */
  apply(entry: Entry): readonly FoldViolation[] {
    if (entry.seq < this.#next) return [];
    const found: Violation[] = [];
    if (entry.seq > this.#next)
      found.push(forbid('law 4', `entries ${this.#next} to ${entry.seq - 1} are missing`));
    if (this.#next === 0 && entry.type !== 'ledger.opened') {
      found.push(forbid('law 1', 'the first entry does not say what the ledger belongs to'));
    }
    this.#next = entry.seq + 1;
    this.#lastTime = entry.time;
    const violation = this.#applyTyped(entry);
    if (violation !== null) found.push(violation);
    return found.map((each) => ({ ...each, seq: entry.seq }));
  }

  /** P21. */
  costs(): Costs {
    const { runner } = this.context.protocol;
    const time = { session_seconds: 0, service_seconds: 0, gpu_seconds: 0 };
    const declared = runner.adapter === 'openai' ? runner.service.gpus : 0;
    for (const session of this.sessions.all()) {
      const seconds = sessionSeconds(session);
      time.session_seconds += seconds;
      // A command runner holds its devices as long as its session works.
      if (runner.adapter === 'command') time.gpu_seconds += seconds * runner.gpus;
      for (const service of session.services.values()) {
        const held = serviceSeconds(session, service);
        time.service_seconds += held;
        time.gpu_seconds += held * (service.gpus ?? declared);
      }
    }
    return { ...this.slots.effort(), ...time };
  }

  #applyTyped(entry: Entry): Violation | null {
    switch (entry.type) {
      case 'ledger.opened':
        return this.#open(entry);
      case 'gate.passed':
        return this.#foreign(entry.manifest) ?? this.sessions.open(entry);
      case 'gate.refused':
        return this.#foreign(entry.manifest);
      case 'service.started':
        return this.sessions.startService(entry);
      case 'service.stopped':
        return this.sessions.stopService(entry);
      case 'run.paused':
        return this.#pause(entry);
      case 'unblinded':
        return this.#unblind(entry);
      case 'attempt.started':
        return this.#start(entry);
      default:
        return this.#proceed(entry);
    }
  }

  #open(entry: EntryOf<'ledger.opened'>): Violation | null {
    if (this.#opened !== null) return forbid('law 1', 'the ledger was opened before');
    this.#opened = entry;
    const { plan } = this.context;
    if (entry.plan.count !== plan.count || entry.plan.digest !== plan.digest) {
      return forbid(
        'law 1',
        `it was opened for another plan (${entry.plan.count} slots, ${entry.plan.digest})`,
      );
    }
    return this.#foreign(entry.manifest);
  }

  #foreign(manifest: string): Violation | null {
    return manifest === this.context.manifest
      ? null
      : forbid('law 1', `it belongs to the manifest ${manifest}`);
  }

  #pause(entry: EntryOf<'run.paused'>): Violation | null {
    const violation = this.sessions.pause(entry);
    if (violation === null && !PLANNED_ENDS.has(entry.reason)) {
      const { seq, session, reason, detail } = entry;
      this.#deviations.push({ seq, session, reason, detail });
    }
    return violation;
  }

  #unblind(entry: EntryOf<'unblinded'>): Violation | null {
    if (this.#unblinded !== null)
      return forbid('P22', `outcomes were unblinded before, by entry ${this.#unblinded.seq}`);
    this.#unblinded = entry;
    if (!entry.partial && !isComplete(this.slots.counts())) {
      return forbid('P22', 'slots were not closed, and the unblinding is not marked as partial');
    }
    const { planned, settled, unresolved, pending, open } = this.slots.total();
    const agree =
      entry.planned === planned &&
      entry.settled === settled &&
      entry.unresolved === unresolved &&
      entry.pending === pending + open;
    return agree ? null : forbid('P22', 'its counts are not those of the ledger');
  }

  #start(entry: EntryOf<'attempt.started'>): Violation | null {
    if (this.#isSealed()) return forbid('P22', 'nothing is started after a complete unblinding');
    const violation = this.sessions.mayStart(entry.session) ?? this.slots.start(entry);
    if (violation !== null) return violation;
    this.#attempts[entry.kind]++;
    this.sessions.touch(entry.session, entry);
    return null;
  }

  #proceed(entry: Entry): Violation | null {
    const named = toSlotEvent(entry);
    if (named === null) return null;
    const session = this.slots.sessionOf(named.slot);
    const violation = this.#forbidden(entry) ?? this.slots.proceed(named.slot, entry);
    if (violation !== null) return violation;
    if (entry.type === 'attribution.recorded') this.#attributions[entry.attribution]++;
    if (entry.type === 'attempt.recovered') this.#recovered++;
    else if (entry.type !== 'attribution.recorded' || entry.by === 'rule')
      this.sessions.touch(session, entry);
    return null;
  }

  /** What the state of the whole ledger forbids, whatever the slot's own state. */
  #forbidden(entry: Entry): Violation | null {
    if (entry.type === 'attribution.recorded' && entry.by === 'adjudicator') {
      if (entry.reason === null) return forbid('P14', 'an adjudicator gives a reason');
      return entry.late === (this.#unblinded !== null)
        ? null
        : forbid('P14', 'late means: recorded after unblinding');
    }
    if (entry.type === 'attribution.recorded' && entry.late)
      return forbid('P14', 'only an adjudicator can be late');
    if (entry.type === 'attempt.recovered' && this.sessions.get(entry.session) === undefined) {
      return forbid('law 1', `session ${entry.session} never passed the gate`);
    }
    return this.#isSealed()
      ? forbid('P22', 'nothing but late attributions follows a complete unblinding')
      : null;
  }

  #isSealed(): boolean {
    return this.#unblinded !== null && !this.#unblinded.partial;
  }
}

function forbid(clause: string, message: string): Violation {
  return { clause, message };
}
