import { type Action, nextAction } from '../attempts/next-action.js';
import type { Attribution } from '../attempts/rules.js';
import type { FailureSignals } from '../attempts/signals.js';
import { attemptId } from '../attempts/slot-state.js';
import type { EntryDraft } from '../ledger/entries/entry.js';
import { type LedgerObject, toObject } from '../ledger/objects.js';
import type { Adapter, RunningAttempt } from './adapters/adapter.js';
import { secondsSince } from './adapters/adapter.js';
import { judged } from './cut-candidate.js';
import { conclusions, generateRecord, gradeRecord, type Recorded, stateAfter } from './drafts.js';
import type { Journal } from './journal.js';
import type { Job } from './plan-queue.js';
import type { ProcessIdentity } from './process-identity.js';

/** What a driver needs to know of the session around it. */
export interface DriverSetting {
  readonly journal: Journal;
  readonly adapter: Adapter;
  readonly session: string;
  /** The process that the session runs in. */
  readonly own: ProcessIdentity;
  /** Cuts what is in flight. */
  readonly abandoned: AbortSignal;
  /** Waits until an attempt that generates may be started; false: nothing may be started any more. */
  readonly mayStart: (generates: boolean) => Promise<boolean>;
  /** The service that is up now, when there is one. */
  readonly service: () => string | null;
  /** Called when the start of an attempt is durable. */
  readonly started: () => void;
  /** Called for every attempt that ended and was recorded, with the service that it met. */
  readonly ended: (failure: AttemptFailure | null, service: string | null) => void;
  /** Called when an attempt that was cut has been recorded as such. */
  readonly cut: () => void;
  /** Called when the last attempt in flight has ended. */
  readonly idle: () => void;
}

export interface AttemptFailure {
  readonly signals: FailureSignals;
  readonly attribution: Attribution;
}

/** What is measured and remembered of an attempt beside its entries. */
interface Met {
  readonly start: number;
  readonly service: string | null;
}

type Start = Extract<Action, { do: 'start' }>;

/**
 * Takes one slot as far as it goes: starts what is due, executes it, records what came of it, until the slot is closed
 * or nothing more may be started. What is due is asked of the state machine each time, never decided here.
 */
export class SlotDriver {
  readonly #setting: DriverSetting;
  #inFlight = 0;

  constructor(setting: DriverSetting) {
    this.#setting = setting;
  }

  /** Attempts that are under way now. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * @returns whether anything about the slot was this session's to record; false: it was another's, or nothing may be
   * started any more
   * @throws {BoundbookError} when the ledger takes no more entries, or an adapter meets a fault of the host.
   */
  async drive(job: Job): Promise<boolean> {
    const { journal } = this.#setting;
    for (let own = false; ; own = true) {
      const due = nextAction(journal.fold.slots.state(job.rules.slot), job.rules);
      switch (due?.do) {
        case 'start':
          switch (await this.#start(job, due)) {
            case 'not_ours':
              return own;
            case 'cut':
              return true;
            case 'ended':
          }
          break;
        case 'settle':
        case 'unresolve':
          // Left by an adjudicator's verdict; another process may be at it, too.
          if (!(await journal.claim(job.rules, this.#conclude(job, []), []))) return own;
          break;
        default:
          return own;
      }
    }
  }

  /** Goes on with an attempt whose candidate is in the ledger and whose grading this session has taken over. */
  async regrade(job: Job, attempt: string, candidate: LedgerObject['digest']): Promise<void> {
    const { replacements, regrades } = this.#setting.journal.fold.slots.state(job.rules.slot);
    // A regrade is never followed by anything, so that one that was started is this one.
    const kind = regrades > 0 ? 'regrade' : replacements > 0 ? 'replacement' : 'first';
    const running: RunningAttempt = {
      work: job.work,
      attempt,
      kind,
      request: null,
      takenOver: this.#setting.session,
    };
    const bytes = this.#setting.journal.object(candidate);
    const ended = await this.#fly(() => this.#grade(job, running, toObject(bytes), NOTHING, this.#meet()));
    if (ended) await this.drive(job);
  }

  async #start(job: Job, due: Start): Promise<'not_ours' | 'cut' | 'ended'> {
    if (!(await this.#setting.mayStart(due.candidate === null))) return 'not_ours';
    return this.#fly(() => this.#claim(job, due));
  }

  async #fly<T>(work: () => Promise<T>): Promise<T> {
    this.#inFlight++;
    try {
      return await work();
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#setting.idle();
    }
  }

  /** Claims and executes one attempt. */
  async #claim(job: Job, due: Start): Promise<'not_ours' | 'cut' | 'ended'> {
    const { journal, adapter, session } = this.#setting;
    const { rules, work } = job;
    const { attempts } = journal.fold.slots.state(rules.slot);
    const attempt = attemptId(rules.slot, attempts.length + 1);
    const request = due.candidate === null ? toObject(adapter.request(work, attempt)) : null;
    const { queue, arm, trainingSeed, evaluationSeed, task, rep } = work.slot;
    const draft: EntryDraft = {
      type: 'attempt.started',
      session,
      attempt,
      slot: rules.slot,
      key: { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep },
      kind: due.kind,
      of: due.of,
      sampling_seed: rules.samplingSeed,
      candidate: due.candidate,
      request: request?.digest ?? null,
    };
    const met = this.#meet();
    // law 2: durable before the model is touched
    if (!(await journal.claim(rules, [draft], request === null ? [] : [request]))) return 'not_ours';
    this.#setting.started();
    const running: RunningAttempt = {
      work,
      attempt,
      kind: due.kind,
      request: request === null ? null : Buffer.from(request.bytes),
      takenOver: null,
    };
    const ended =
      due.candidate === null
        ? await this.#generate(job, running, met)
        : await this.#grade(job, running, toObject(journal.object(due.candidate)), NOTHING, met);
    return ended ? 'ended' : 'cut';
  }

  /** False when it was cut, here and in {@link #grade}. */
  async #generate(job: Job, running: RunningAttempt, met: Met): Promise<boolean> {
    const { adapter, journal, abandoned } = this.#setting;
    const end = await adapter.generate(running, abandoned);
    if (end.kind === 'abandoned') return this.#recordCut(job, running, met);
    const names = { attempt: running.attempt, slot: job.rules.slot };
    const record = judged(generateRecord(names, end), job.rules.rules);
    await adapter.mark(running.attempt, record);
    const { result } = record.draft;
    if (result.kind === 'failure' || end.kind === 'failure') {
      await this.#close(job, recorded(record), met, result.kind === 'failure' ? result.signals : null);
      return true;
    }
    const candidate = toObject(end.bytes);
    if (adapter.gradesAtOnce) {
      return this.#grade(job, running, candidate, recorded(record), met);
    }
    await journal.record(job.rules, [record.draft], record.objects);
    return this.#grade(job, running, candidate, NOTHING, met);
  }

  /** @param before what is recorded together with the end of the grading */
  async #grade(
    job: Job,
    running: RunningAttempt,
    candidate: LedgerObject,
    before: Recorded,
    met: Met,
  ): Promise<boolean> {
    const { adapter, abandoned } = this.#setting;
    const end = await adapter.grade(running, Buffer.from(candidate.bytes), abandoned);
    if (end.kind === 'abandoned') return this.#recordCut(job, running, met);
    const names = { attempt: running.attempt, slot: job.rules.slot };
    const record = gradeRecord(names, candidate.digest, end);
    await adapter.mark(running.attempt, record);
    const signals = end.kind === 'failure' ? end.signals : null;
    const together = {
      drafts: [...before.drafts, record.draft],
      objects: [...before.objects, ...record.objects],
    };
    await this.#close(job, together, met, signals);
    return true;
  }

  /**
   * Records that this session itself gave an attempt up, with all that follows (DESIGN §9): without a candidate it is
   * an infrastructure failure, and with one its grading is due in the next session.
   */
  async #recordCut(job: Job, { attempt }: RunningAttempt, met: Met): Promise<false> {
    const { journal, session, own, cut } = this.#setting;
    const { slot } = job.rules;
    const found = journal.fold.slots.state(slot).phase === 'grading' ? 'candidate' : 'nothing';
    const evidence = { reason: 'abandoned', boot_id: own.boot_id, pid: own.pid } as const;
    const given: EntryDraft = { type: 'attempt.recovered', attempt, slot, session, found, evidence };
    const following = this.#conclude(job, [given], secondsSince(met.start));
    await journal.record(job.rules, [given, ...following]);
    cut();
    return false;
  }

  /** Records the end of an attempt with all that follows from it, in one commit. */
  async #close(
    job: Job,
    { drafts, objects }: Recorded,
    met: Met,
    signals: FailureSignals | null,
  ): Promise<void> {
    const following = this.#conclude(job, drafts, secondsSince(met.start));
    await this.#setting.journal.record(job.rules, [...drafts, ...following], objects);
    const attribution = following.find((draft) => draft.type === 'attribution.recorded')?.attribution;
    const failure = signals === null ? null : { signals, attribution: attribution ?? 'undetermined' };
    this.#setting.ended(failure, met.service);
  }

  #meet(): Met {
    return { start: performance.now(), service: this.#setting.service() };
  }

  #conclude({ rules }: Job, drafts: readonly EntryDraft[], seconds = 0): EntryDraft[] {
    const state = this.#setting.journal.fold.slots.state(rules.slot);
    return conclusions(stateAfter(state, drafts, rules), rules, seconds);
  }
}

const NOTHING: Recorded = { drafts: [], objects: [] };

function recorded(record: {
  readonly draft: EntryDraft;
  readonly objects: readonly LedgerObject[];
}): Recorded {
  return { drafts: [record.draft], objects: record.objects };
}
