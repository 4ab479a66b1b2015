import type { Attribution } from '../attempts/rules.js';
import type { AttemptKind } from '../attempts/slot-state.js';
import type { Violation } from '../attempts/violation.js';
import { type Account, AccountBook } from './accounts.js';
import { AdjudicationBook, type AdjudicationSnapshot, type RoundSetting } from './adjudications.js';
import { CheckpointBook, type CheckpointBookSnapshot } from './checkpoint-book.js';
import { type Obstacle, obstacles } from './completeness.js';
import type { Entry, EntryOf } from './entries/entry.js';
import { toSlotEvent } from './entries/slot-event.js';
import { firstOpeningFault, type Restoration, reopeningFault, restorationOf } from './incarnations.js';
import type { LedgerIdentity } from './origin.js';
import { type Costs, planCosts } from './plan-costs.js';
import type { PlanContext } from './plan-index.js';
import { RecheckBook, type RecheckSetting, type RecheckSnapshot } from './rechecks.js';
import { RegradingBook, type RegradingSnapshot } from './regradings.js';
import {
  canaryFault,
  farewellFault,
  ServiceMarks,
  type ServiceMarksSnapshot,
  serviceKindFault,
} from './service-marks.js';
import { SessionBook, type SessionBookSnapshot } from './sessions.js';
import { SlotBook, type SlotBookSnapshot } from './slot-book.js';
import type { LiveSnapshot } from './slot-records.js';

export interface FoldViolation extends Violation {
  /** The entry that breaks the rule. */
  readonly seq: number;
}

/** The end of a session that was not its own decision. */
export interface Deviation {
  readonly seq: number;
  readonly session: string;
  readonly reason: EntryOf<'run.paused'>['reason'];
  readonly detail: string | null;
}

/** B9: a change made in mid-run, as a person noted it. */
export interface NotedDeviation {
  readonly seq: number;
  readonly time: string;
  readonly text: string;
  readonly selector: EntryOf<'deviation.noted'>['selector'];
  readonly slots: EntryOf<'deviation.noted'>['slots'];
  /** Noted when outcomes could be read already. */
  readonly afterUnblinding: boolean;
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
  readonly attempts: Readonly<Record<AttemptKind, number>>;
  readonly attributions: Readonly<Record<Attribution, number>>;
  readonly deviations: readonly Deviation[];
  readonly noted: readonly NotedDeviation[];
  readonly recovered: number;
  readonly opened: EntryOf<'ledger.opened'> | null;
  readonly reopened: readonly EntryOf<'ledger.opened'>[];
  readonly unblinded: EntryOf<'unblinded'> | null;
  readonly amended: EntryOf<'amended'> | null;
  readonly startedAfterUnblinding: number;
  readonly isHead: boolean;
  readonly lastTime: string | null;
  readonly next: number;
}

const LAWFUL: readonly FoldViolation[] = [];
const PLANNED_ENDS: ReadonlySet<string> = new Set(['finished', 'limit', 'signal']);

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
  readonly #attempts: Record<AttemptKind, number> = { first: 0, replacement: 0, regrade: 0 };
  readonly #attributions: Record<Attribution, number> = { infrastructure: 0, model: 0, undetermined: 0 };
  readonly #deviations: Deviation[] = [];
  readonly #noted: NotedDeviation[] = [];
  #recovered = 0;
  #opened: EntryOf<'ledger.opened'> | null = null;
  readonly #reopened: EntryOf<'ledger.opened'>[] = [];
  #unblinded: EntryOf<'unblinded'> | null = null;
  #amended: EntryOf<'amended'> | null = null;
  #startedAfterUnblinding = 0;
  /** Nothing but the opening and what it carries was met so far. */
  #isHead = true;
  #lastTime: string | null = null;
  #next = 0;

  constructor(context: PlanContext) {
    this.context = context;
    this.slots = new SlotBook(context);
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
      attempts: this.#attempts,
      attributions: this.#attributions,
      deviations: this.#deviations,
      noted: this.#noted,
      recovered: this.#recovered,
      opened: this.#opened,
      reopened: this.#reopened,
      unblinded: this.#unblinded,
      amended: this.#amended,
      startedAfterUnblinding: this.#startedAfterUnblinding,
      isHead: this.#isHead,
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
    Object.assign(this.#attempts, state.attempts);
    Object.assign(this.#attributions, state.attributions);
    this.#deviations.push(...state.deviations);
    this.#noted.push(...state.noted);
    this.#recovered = state.recovered;
    this.#opened = state.opened;
    this.#reopened.push(...state.reopened);
    this.#unblinded = state.unblinded;
    this.#amended = state.amended;
    this.#startedAfterUnblinding = state.startedAfterUnblinding;
    this.#isHead = state.isHead;
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
    return this.#opened;
  }

  /** The openings after the first: one for each older copy that was put back. */
  get reopened(): readonly EntryOf<'ledger.opened'>[] {
    return this.#reopened;
  }

  /** Older copies that were put back, and what was lost by it. */
  get restorations(): readonly Restoration[] {
    return this.#reopened.flatMap((entry) => restorationOf(entry) ?? []);
  }

  /** Which tree the entries belong to now; null before the first. */
  get identity(): LedgerIdentity | null {
    const latest = this.#reopened.at(-1) ?? this.#opened;
    return latest === null ? null : { ledger: latest.ledger, incarnation: latest.incarnation };
  }

  get unblinded(): EntryOf<'unblinded'> | null {
    return this.#unblinded;
  }

  /** The entry by which another revision of the plan took its place. */
  get amended(): EntryOf<'amended'> | null {
    return this.#amended;
  }

  /** Whether nothing may be started any more: outcomes were unblinded completely, or the plan was amended (P22). */
  get isSealed(): boolean {
    return this.#amended !== null || (this.#unblinded !== null && !this.#unblinded.partial);
  }

  /** Why outcomes may not be read as those of a complete plan; empty when they may be. */
  obstacles(): readonly Obstacle[] {
    const { slots, adjudications } = this;
    const round = adjudications.open?.round ?? null;
    return obstacles({ slots, protocol: this.context.protocol, amended: this.#amended, round });
  }

  /** Attempts started when outcomes could be read already: exploratory, like all that rests on them (P22). */
  get startedAfterUnblinding(): number {
    return this.#startedAfterUnblinding;
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

  get noted(): readonly NotedDeviation[] {
    return this.#noted;
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
    if (entry.seq > 0 && entry.type !== 'slot.carried') this.#isHead = false;
    switch (entry.type) {
      case 'ledger.opened':
        return this.#open(entry);
      case 'gate.passed':
        return this.#foreign(entry.manifest) ?? this.sessions.open(entry);
      case 'gate.refused':
        return this.#foreign(entry.manifest);
      case 'service.started':
      case 'service.attached':
        return this.#serviceUp(entry);
      case 'service.described':
      case 'canary.recorded':
        return this.#ofService(entry);
      case 'service.stopped':
        return this.#serviceDown(entry);
      case 'session.alive':
        return this.sessions.alive(entry);
      case 'account.recorded':
        return this.accounts.take(entry, this.sessions);
      case 'regrading.opened':
        return this.regradings.begin(entry, {
          slots: this.slots,
          protocol: this.context.protocol,
          unblinded: this.#unblinded !== null,
        });
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
        return this.#pause(entry);
      case 'unblinded':
        return this.#unblind(entry);
      case 'slot.carried':
        return this.#carry(entry);
      case 'amended':
        return this.#amend(entry);
      case 'deviation.noted':
        return this.#note(entry);
      case 'attempt.started':
        return this.#start(entry);
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
        return this.#proceed(entry);
    }
  }

  #open(entry: EntryOf<'ledger.opened'>): Violation | null {
    if (this.#opened !== null) return this.#reopen(entry, this.#opened);
    this.#opened = entry;
    const fault = firstOpeningFault(entry);
    if (fault !== null) return forbid('law 1', fault);
    const { plan } = this.context;
    if (entry.plan.count !== plan.count || entry.plan.digest !== plan.digest) {
      return forbid(
        'law 1',
        `it was opened for another plan (${entry.plan.count} slots, ${entry.plan.digest})`,
      );
    }
    return this.#foreign(entry.manifest);
  }

  /** An older copy was put back: what came after it and was known outside is lost, and is said to be. */
  #reopen(entry: EntryOf<'ledger.opened'>, first: EntryOf<'ledger.opened'>): Violation | null {
    const { restored, seq } = entry;
    if (restored === null) return forbid('law 1', 'the ledger was opened before');
    const fault = reopeningFault(this.#reopened.at(-1) ?? first, entry, restored, seq);
    if (fault !== null) return forbid('law 4', fault);
    this.#isHead = false;
    this.#reopened.push(entry);
    return null;
  }

  #roundSetting(): RoundSetting {
    return {
      isAmended: this.#amended !== null,
      isUnblinded: this.#unblinded !== null,
      judgeable: (revises) => [...this.slots.judgeable(revises)],
    };
  }

  #recheckSetting(): RecheckSetting {
    const { context, slots, sessions } = this;
    return {
      context,
      slots,
      sessions,
      isAmended: this.#amended !== null,
      isUnblinded: this.#unblinded !== null,
    };
  }

  /** A lawful entry is a sign of life of its session. */
  #ofSession(entry: Entry & { readonly session: string }, violation: Violation | null): Violation | null {
    if (violation === null) this.sessions.touch(entry.session, entry);
    return violation;
  }

  #foreign(manifest: string): Violation | null {
    return manifest === this.context.manifest
      ? null
      : forbid('law 1', `it belongs to the manifest ${manifest}`);
  }

  #serviceUp(entry: EntryOf<'service.started' | 'service.attached'>): Violation | null {
    const violation = serviceKindFault(entry, this.context.protocol) ?? this.sessions.startService(entry);
    if (violation === null) this.services.up(entry);
    return violation;
  }

  #ofService(entry: EntryOf<'service.described' | 'canary.recorded'>): Violation | null {
    const { runner } = this.context.protocol;
    const record = this.sessions.service(entry);
    if ('clause' in record) return record;
    if (runner.adapter !== 'openai') return forbid('law 1', 'a command has no service');
    const violation =
      entry.type === 'service.described'
        ? this.services.describe(entry, record)
        : this.services.recordCanary(entry, record, runner.service);
    if (violation === null) this.sessions.touch(entry.session, entry);
    return violation;
  }

  #serviceDown(entry: EntryOf<'service.stopped'>): Violation | null {
    const record = this.sessions.get(entry.session)?.services.get(entry.service);
    const fault = record === undefined ? null : farewellFault(entry, record, this.context.protocol);
    return this.sessions.stopService(entry) ?? fault ?? this.#otherDevices(entry);
  }

  /** P21: what a service held is declared, and not for its end to say. */
  #otherDevices({ gpus }: EntryOf<'service.stopped'>): Violation | null {
    const { runner } = this.context.protocol;
    if (runner.adapter !== 'openai' || gpus === runner.service.gpus) return null;
    return forbid('P21', `the service held ${gpus} GPUs, and ${runner.service.gpus} are declared`);
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
    const [obstacle] = entry.partial ? [] : this.obstacles();
    if (obstacle !== undefined) {
      const { clause, where, message } = obstacle;
      return forbid(clause, `the unblinding is not marked as partial, although in ${where}: ${message}`);
    }
    const { planned, settled, unresolved, pending, open } = this.slots.total();
    const agree =
      entry.planned === planned &&
      entry.settled === settled &&
      entry.unresolved === unresolved &&
      entry.pending === pending + open;
    return agree ? null : forbid('P22', 'its counts are not those of the ledger');
  }

  /** A slot that was closed under the superseded plan stands at the head of the ledger or nowhere (P22). */
  #carry(entry: EntryOf<'slot.carried'>): Violation | null {
    if (this.#opened === null || this.#opened.carries === null)
      return forbid('P22', 'the opening of this ledger carries nothing');
    return this.#isHead
      ? this.slots.carry(entry)
      : forbid('P22', 'slots are carried directly after the opening of the ledger');
  }

  #amend(entry: EntryOf<'amended'>): Violation | null {
    if (this.#amended !== null)
      return forbid('P22', `the plan was amended before, by entry ${this.#amended.seq}`);
    if (entry.successor === this.context.manifest) return forbid('P22', 'a plan does not succeed itself');
    const { revision } = this.context.protocol;
    if (entry.revision <= revision)
      return forbid('P22', `revision ${entry.revision} does not follow revision ${revision}`);
    this.#amended = entry;
    return null;
  }

  #note({ seq, time, text, selector, slots }: EntryOf<'deviation.noted'>): Violation | null {
    if (slots.count > this.context.plan.count)
      return forbid('B9', `it touches ${slots.count} slots of a plan of ${this.context.plan.count}`);
    this.#noted.push({ seq, time, text, selector, slots, afterUnblinding: this.#unblinded !== null });
    return null;
  }

  #start(entry: EntryOf<'attempt.started'>): Violation | null {
    if (this.isSealed) return forbid('P22', `nothing is started after ${this.#seal()}`);
    const violation =
      this.sessions.mayStart(entry.session) ??
      canaryFault(
        { kind: entry.kind, key: { arm: entry.key.arm, trainingSeed: entry.key.training_seed } },
        this.sessions.get(entry.session),
        this.context.protocol,
      ) ??
      this.slots.start(entry);
    if (violation !== null) return violation;
    this.#attempts[entry.kind]++;
    if (this.#unblinded !== null) this.#startedAfterUnblinding++;
    this.sessions.touch(entry.session, entry);
    return null;
  }

  #proceed(entry: Entry): Violation | null {
    const named = toSlotEvent(entry);
    if (named === null) return null;
    const session = this.slots.sessionOf(named.slot);
    const violation = this.#forbidden(entry) ?? this.slots.proceed(named.slot, entry, named.event);
    if (violation !== null) return violation;
    if (entry.type === 'attribution.recorded') {
      this.#attributions[entry.attribution]++;
      if (entry.by === 'adjudicator') this.adjudications.applied(entry);
    }
    if (entry.type === 'stage.finished' && entry.result.kind === 'candidate')
      this.rechecks.generated(entry, this.slots, this.context.protocol);
    if (entry.type === 'attempt.recovered') this.#recovered++;
    else if (entry.type !== 'attribution.recorded' || entry.by === 'rule')
      this.sessions.touch(session, entry);
    return null;
  }

  /** What the state of the whole ledger forbids, whatever the slot's own state. */
  #forbidden(entry: Entry): Violation | null {
    if (entry.type === 'attribution.recorded' && entry.by === 'adjudicator') {
      if (entry.reason === null) return forbid('P14', 'an adjudicator gives a reason');
      if (entry.late !== (this.#unblinded !== null))
        return forbid('P14', 'late means: recorded after unblinding');
      if (this.#amended !== null && !entry.late)
        return forbid('P22', 'the plan was amended: its outcomes were carried as they are');
      return this.adjudications.attributionFault(entry);
    }
    if (entry.type === 'attribution.recorded' && entry.late)
      return forbid('P14', 'only an adjudicator can be late');
    if (entry.type === 'attempt.recovered' && this.sessions.get(entry.session) === undefined) {
      return forbid('law 1', `session ${entry.session} never passed the gate`);
    }
    return this.isSealed ? forbid('P22', `nothing but late attributions follows ${this.#seal()}`) : null;
  }

  /** What sealed the ledger, in words. */
  #seal(): string {
    return this.#amended === null ? 'a complete unblinding' : 'the amendment of the plan';
  }
}

function forbid(clause: string, message: string): Violation {
  return { clause, message };
}
