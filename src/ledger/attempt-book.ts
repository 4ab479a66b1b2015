import type { Attribution } from '../attempts/rules.js';
import type { AttemptKind } from '../attempts/slot-state.js';
import { forbid, type Violation } from '../attempts/violation.js';
import type { AdjudicationBook } from './adjudications.js';
import type { Entry, EntryOf } from './entries/entry.js';
import { toSlotEvent } from './entries/slot-event.js';
import type { PlanBook } from './plan-book.js';
import type { PlanContext } from './plan-index.js';
import type { RecheckBook } from './rechecks.js';
import { canaryFault } from './service-marks.js';
import type { SessionBook } from './sessions.js';
import type { SlotBook } from './slot-book.js';

/** The books by which it is judged what an attempt may do. */
export interface AttemptSetting {
  readonly context: PlanContext;
  readonly slots: SlotBook;
  readonly sessions: SessionBook;
  readonly adjudications: AdjudicationBook;
  readonly rechecks: RecheckBook;
  readonly plan: PlanBook;
}

/** One member for each field of an {@link AttemptBook}. */
export interface AttemptBookSnapshot {
  readonly started: Readonly<Record<AttemptKind, number>>;
  readonly attributions: Readonly<Record<Attribution, number>>;
  readonly recovered: number;
  readonly abandoned: number;
  readonly startedAfterUnblinding: number;
}

/** Takes entries of attempts and slots, under what the whole ledger says beside the slot's own state; counts attempts. */
export class AttemptBook {
  readonly #setting: AttemptSetting;
  readonly #started: Record<AttemptKind, number> = { first: 0, replacement: 0, regrade: 0 };
  readonly #attributions: Record<Attribution, number> = { infrastructure: 0, model: 0, undetermined: 0 };
  #recovered = 0;
  #abandoned = 0;
  #startedAfterUnblinding = 0;

  constructor(setting: AttemptSetting) {
    this.#setting = setting;
  }

  snapshot(): AttemptBookSnapshot {
    return {
      started: this.#started,
      attributions: this.#attributions,
      recovered: this.#recovered,
      abandoned: this.#abandoned,
      startedAfterUnblinding: this.#startedAfterUnblinding,
    };
  }

  restore(snapshot: AttemptBookSnapshot): void {
    const { started, attributions, recovered, abandoned, startedAfterUnblinding } = snapshot;
    Object.assign(this.#started, started);
    Object.assign(this.#attributions, attributions);
    this.#recovered = recovered;
    this.#abandoned = abandoned;
    this.#startedAfterUnblinding = startedAfterUnblinding;
  }

  /** Attempts started, by kind. */
  get started(): Readonly<Record<AttemptKind, number>> {
    return this.#started;
  }

  /** How failures were attributed, revisions included. Shows model failures, which are outcomes (law 8). */
  get attributions(): Readonly<Record<Attribution, number>> {
    return this.#attributions;
  }

  /** Attempts that did not end by themselves: their process was found gone, or their session gave them up. */
  get recovered(): number {
    return this.#recovered;
  }

  /** Of those, the ones that their session gave up: on a second stop of the operator, or for a fault. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** Attempts started when outcomes could be read already: exploratory, like all that rests on them (P22). */
  get startedAfterUnblinding(): number {
    return this.#startedAfterUnblinding;
  }

  start(entry: EntryOf<'attempt.started'>): Violation | null {
    const { context, slots, sessions, plan } = this.#setting;
    if (plan.seal !== null) return forbid('P22', `nothing is started after ${plan.seal}`);
    const violation =
      sessions.mayStart(entry.session) ??
      canaryFault(
        { kind: entry.kind, key: { arm: entry.key.arm, trainingSeed: entry.key.training_seed } },
        sessions.get(entry.session),
        context.protocol,
      ) ??
      slots.start(entry);
    if (violation !== null) return violation;
    this.#started[entry.kind]++;
    if (plan.unblinded !== null) this.#startedAfterUnblinding++;
    sessions.touch(entry.session, entry);
    return null;
  }

  /** Takes any other entry that names a slot; all others are passed over. */
  proceed(entry: Entry): Violation | null {
    const named = toSlotEvent(entry);
    if (named === null) return null;
    const { context, slots, sessions, adjudications, rechecks } = this.#setting;
    const session = slots.sessionOf(named.slot);
    const violation = this.#forbidden(entry) ?? slots.proceed(named.slot, entry, named.event);
    if (violation !== null) return violation;
    if (entry.type === 'attribution.recorded') {
      this.#attributions[entry.attribution]++;
      if (entry.by === 'adjudicator') adjudications.applied(entry);
    }
    if (entry.type === 'stage.finished' && entry.result.kind === 'candidate')
      rechecks.generated(entry, slots, context.protocol);
    if (entry.type === 'attempt.recovered') {
      this.#recovered++;
      if (entry.evidence.reason === 'abandoned') this.#abandoned++;
    } else if (entry.type !== 'attribution.recorded' || entry.by === 'rule') sessions.touch(session, entry);
    return null;
  }

  /** What the state of the whole ledger forbids, whatever the slot's own state. */
  #forbidden(entry: Entry): Violation | null {
    const { sessions, adjudications, plan } = this.#setting;
    if (entry.type === 'attribution.recorded' && entry.by === 'adjudicator') {
      if (entry.reason === null) return forbid('P14', 'an adjudicator gives a reason');
      if (entry.late !== (plan.unblinded !== null))
        return forbid('P14', 'late means: recorded after unblinding');
      if (plan.amended !== null && !entry.late)
        return forbid('P22', 'the plan was amended: its outcomes were carried as they are');
      return adjudications.attributionFault(entry);
    }
    if (entry.type === 'attribution.recorded' && entry.late)
      return forbid('P14', 'only an adjudicator can be late');
    if (entry.type === 'attempt.recovered' && sessions.get(entry.session) === undefined) {
      return forbid('law 1', `session ${entry.session} never passed the gate`);
    }
    return plan.seal === null ? null : forbid('P22', `nothing but late attributions follows ${plan.seal}`);
  }
}
