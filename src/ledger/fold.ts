import type { Attribution } from '../attempts/rules.js';
import type { AttemptKind } from '../attempts/slot-state.js';
import { forbid, type Violation } from '../attempts/violation.js';
import { type Account, AccountBook } from './accounts.js';
import { AdjudicationBook, type AdjudicationSnapshot, type RoundSetting } from './adjudications.js';
import { AttemptBook, type AttemptBookSnapshot } from './attempt-book.js';
import { CheckpointBook, type CheckpointBookSnapshot } from './checkpoint-book.js';
import { type Obstacle, obstacles } from './completeness.js';
import type { Entry, EntryOf } from './entries/entry.js';
import type { Restoration } from './incarnations.js';
import { foreignFault, OpeningBook, type OpeningBookSnapshot } from './openings.js';
import type { LedgerIdentity } from './origin.js';
import { type NotedDeviation, PlanBook, type PlanBookSnapshot } from './plan-book.js';
import { type Costs, planCosts } from './plan-costs.js';
import type { PlanContext } from './plan-index.js';
import { RecheckBook, type RecheckSetting, type RecheckSnapshot } from './rechecks.js';
import { RegradingBook, type RegradingSnapshot } from './regradings.js';
import { type ServiceSetting, serviceDown, serviceSpoke, serviceUp } from './service-entries.js';
import { ServiceMarks, type ServiceMarksSnapshot } from './service-marks.js';
import { type Deviation, SessionBook, type SessionBookSnapshot } from './sessions.js';
import { SlotBook, type SlotBookSnapshot } from './slot-book.js';
import type { LiveSnapshot } from './slot-records.js';

export interface FoldViolation extends Violation {
  /** The entry that breaks the rule. */
  readonly seq: number;
}

/** A fold without its slots, as plain data: one member for each of its fields. A test holds the two together. */
export interface FoldSnapshot {
  readonly slots: SlotBookSnapshot;
  readonly sessions: SessionBookSnapshot;
  readonly services: ServiceMarksSnapshot;
  readonly accounts: readonly Account[];
  readonly regradings: RegradingSnapshot;
  readonly rechecks: RecheckSnapshot;
  readonly checkpoints: CheckpointBookSnapshot;
  readonly adjudications: AdjudicationSnapshot;
  readonly openings: OpeningBookSnapshot;
  readonly plan: PlanBookSnapshot;
  readonly attempts: AttemptBookSnapshot;
  readonly lastTime: string | null;
  readonly next: number;
}

const LAWFUL: readonly FoldViolation[] = [];

/**
 * The state of a ledger as a fold over its entries (DESIGN §8). The runner decides by it and the audit judges by it.
 * Memory grows with the slots that were touched, see {@link SlotBook}.
 */
export class LedgerFold {
  readonly context: PlanContext;
  readonly slots: SlotBook;
  readonly sessions = new SessionBook();
  readonly services = new ServiceMarks();
  readonly accounts = new AccountBook();
  readonly regradings = new RegradingBook();
  readonly rechecks = new RecheckBook();
  readonly checkpoints = new CheckpointBook();
  readonly adjudications = new AdjudicationBook();
  readonly #openings = new OpeningBook();
  readonly #plan = new PlanBook();
  readonly #attempts: AttemptBook;
  #lastTime: string | null = null;
  #next = 0;

  constructor(context: PlanContext) {
    this.context = context;
    this.slots = new SlotBook(context);
    const { slots, sessions, adjudications, rechecks } = this;
    this.#attempts = new AttemptBook({ context, slots, sessions, adjudications, rechecks, plan: this.#plan });
  }

  /** Shares what it holds with the fold: to be written down before the next entry is taken. */
  snapshot(): FoldSnapshot {
    return {
      slots: this.slots.snapshot(),
      sessions: this.sessions.snapshot(),
      services: this.services.snapshot(),
      accounts: this.accounts.snapshot(),
      regradings: this.regradings.snapshot(),
      rechecks: this.rechecks.snapshot(),
      checkpoints: this.checkpoints.snapshot(),
      adjudications: this.adjudications.snapshot(),
      openings: this.#openings.snapshot(),
      plan: this.#plan.snapshot(),
      attempts: this.#attempts.snapshot(),
      lastTime: this.#lastTime,
      next: this.#next,
    };
  }

  /** Puts an empty fold into the state of another one, see {@link SlotBook.restore}. */
  restore(state: FoldSnapshot, live: Iterable<readonly [slot: string, live: LiveSnapshot]>): void {
    this.slots.restore(state.slots, live);
    this.sessions.restore(state.sessions);
    this.services.restore(state.services);
    this.accounts.restore(state.accounts);
    this.regradings.restore(state.regradings);
    this.rechecks.restore(state.rechecks);
    this.checkpoints.restore(state.checkpoints);
    this.adjudications.restore(state.adjudications);
    this.#openings.restore(state.openings);
    this.#plan.restore(state.plan);
    this.#attempts.restore(state.attempts);
    this.#lastTime = state.lastTime;
    this.#next = state.next;
  }

  /** Number of entries folded. */
  get size(): number {
    return this.#next;
  }

  /** Time of the last entry. */
  get time(): string | null {
    return this.#lastTime;
  }

  /** The first entry. */
  get opened(): EntryOf<'ledger.opened'> | null {
    return this.#openings.opened;
  }

  /** The openings after the first: one for each older copy that was put back. */
  get reopened(): readonly EntryOf<'ledger.opened'>[] {
    return this.#openings.reopened;
  }

  /** Older copies that were put back, and what was lost by it. */
  get restorations(): readonly Restoration[] {
    return this.#openings.restorations;
  }

  /** Which tree the entries belong to now; null before the first. */
  get identity(): LedgerIdentity | null {
    return this.#openings.identity;
  }

  get unblinded(): EntryOf<'unblinded'> | null {
    return this.#plan.unblinded;
  }

  /** The entry by which another revision of the plan took its place. */
  get amended(): EntryOf<'amended'> | null {
    return this.#plan.amended;
  }

  /** Whether nothing may be started any more: outcomes were unblinded completely, or the plan was amended (P22). */
  get isSealed(): boolean {
    return this.#plan.seal !== null;
  }

  /** Why outcomes may not be read as those of a complete plan; empty when they may be. */
  obstacles(): readonly Obstacle[] {
    const { slots, adjudications } = this;
    const round = adjudications.open?.round ?? null;
    return obstacles({ slots, protocol: this.context.protocol, amended: this.amended, round });
  }

  /** Attempts started when outcomes could be read already: exploratory, like all that rests on them (P22). */
  get startedAfterUnblinding(): number {
    return this.#attempts.startedAfterUnblinding;
  }

  /** Whether outcomes may be shown: the protocol does not blind them, or they were unblinded (law 8). */
  get outcomesVisible(): boolean {
    return this.context.protocol.blinding === 'none' || this.unblinded !== null;
  }

  /** Attempts started, by kind. */
  get attempts(): Readonly<Record<AttemptKind, number>> {
    return this.#attempts.started;
  }

  /** How failures were attributed, revisions included. Shows model failures, which are outcomes (law 8). */
  get attributions(): Readonly<Record<Attribution, number>> {
    return this.#attempts.attributions;
  }

  /** Attempts whose process was found gone, or that their session gave up. */
  get recovered(): number {
    return this.#attempts.recovered;
  }

  /** Of the recovered attempts those that their session gave up. */
  get abandoned(): number {
    return this.#attempts.abandoned;
  }

  get deviations(): readonly Deviation[] {
    return this.sessions.deviations;
  }

  get noted(): readonly NotedDeviation[] {
    return this.#plan.noted;
  }

  /**
   * Takes the next entry. An unlawful one changes nothing and comes back as violations; an early unblinding is the
   * exception, because what was seen was seen. An entry that was folded before is passed over.
   */
  apply(entry: Entry): readonly FoldViolation[] {
    if (entry.seq < this.#next) return [];
    const before = entry.seq === this.#next && this.#next > 0 ? null : this.#outOfPlace(entry);
    this.#next = entry.seq + 1;
    this.#lastTime = entry.time;
    const violation = this.#applyTyped(entry);
    if (before === null && violation === null) return LAWFUL;
    const found = violation === null ? (before ?? []) : [...(before ?? []), violation];
    return found.map((each) => ({ ...each, seq: entry.seq }));
  }

  #outOfPlace(entry: Entry): readonly Violation[] {
    const found: Violation[] = [];
    if (entry.seq > this.#next)
      found.push(forbid('law 4', `entries ${this.#next} to ${entry.seq - 1} are missing`));
    if (this.#next === 0 && entry.type !== 'ledger.opened') {
      found.push(forbid('law 1', 'the first entry does not say what the ledger belongs to'));
    }
    return found;
  }

  /** P21. */
  costs(): Costs {
    return planCosts(this.context.protocol, this.slots.effort(), this.sessions, this.accounts);
  }

  #applyTyped(entry: Entry): Violation | null {
    this.#openings.met(entry);
    switch (entry.type) {
      case 'ledger.opened':
        return this.#openings.open(entry, this.context);
      case 'gate.passed':
        return foreignFault(entry, this.context) ?? this.sessions.open(entry);
      case 'gate.refused':
        return foreignFault(entry, this.context);
      case 'service.started':
      case 'service.attached':
        return serviceUp(entry, this.#serviceSetting());
      case 'service.described':
      case 'canary.recorded':
        return serviceSpoke(entry, this.#serviceSetting());
      case 'service.stopped':
        return serviceDown(entry, this.#serviceSetting());
      case 'session.alive':
        return this.sessions.alive(entry);
      case 'account.recorded':
        return this.accounts.take(entry, this.sessions);
      case 'regrading.opened':
        return this.regradings.begin(entry, {
          slots: this.slots,
          protocol: this.context.protocol,
          unblinded: this.unblinded !== null,
        });
      case 'regrading.resumed':
        return this.regradings.resume(entry);
      case 'regrading.recorded':
        return this.regradings.record(entry, this.slots, this.context.protocol);
      case 'regrading.closed':
        return this.regradings.close(entry);
      case 'recheck.declared':
        return this.#ofSession(entry, this.rechecks.declare(entry, this.#recheckSetting()));
      case 'recheck.started':
        return this.#ofSession(entry, this.rechecks.start(entry, this.#recheckSetting()));
      case 'recheck.finished':
        return this.#ofSession(entry, this.rechecks.finish(entry, this.#recheckSetting()));
      case 'recheck.closed':
        return this.rechecks.close(entry);
      case 'run.paused':
        return this.sessions.pause(entry);
      case 'unblinded':
        return this.#plan.unblind(entry, this.obstacles(), this.slots.total());
      case 'slot.carried':
        return this.#openings.carryFault() ?? this.slots.carry(entry);
      case 'amended':
        return this.#plan.amend(entry, this.context);
      case 'deviation.noted':
        return this.#plan.note(entry, this.context);
      case 'attempt.started':
        return this.#attempts.start(entry);
      case 'checkpoint':
        return this.checkpoints.take(entry);
      case 'adjudication.opened':
        return this.adjudications.begin(entry, this.#roundSetting());
      case 'verdict.committed':
        return this.adjudications.commit(entry);
      case 'adjudication.revealed':
        return this.adjudications.reveal(entry, this.#roundSetting());
      case 'verdict.opened':
        return this.adjudications.openVerdict(entry);
      case 'adjudication.closed':
        return this.adjudications.close(entry, this.#roundSetting());
      default:
        return this.#attempts.proceed(entry);
    }
  }

  #serviceSetting(): ServiceSetting {
    const { context, sessions, services } = this;
    return { protocol: context.protocol, sessions, services };
  }

  #roundSetting(): RoundSetting {
    return {
      isAmended: this.amended !== null,
      isUnblinded: this.unblinded !== null,
      judgeable: (revises) => [...this.slots.judgeable(revises)],
    };
  }

  #recheckSetting(): RecheckSetting {
    const { context, slots, sessions } = this;
    return {
      context,
      slots,
      sessions,
      isAmended: this.amended !== null,
      isUnblinded: this.unblinded !== null,
    };
  }

  /** A lawful entry is a sign of life of its session. */
  #ofSession(entry: Entry & { readonly session: string }, violation: Violation | null): Violation | null {
    if (violation === null) this.sessions.touch(entry.session, entry);
    return violation;
  }
}
