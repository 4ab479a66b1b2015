import { operatorsWord } from '../protocol/operators-word.js';
import type { Admission } from './admission.js';
import type { Announcer } from './announcer.js';
import type { BindingsWatch } from './bindings-watch.js';
import { Breaker } from './breaker.js';
import { Coverage } from './coverage.js';
import type { Journal } from './journal.js';
import type { Job, PlanQueue } from './plan-queue.js';
import { StoppedRecheck } from './recheck.js';
import { type RecoveryResult, type RecoverySetting, recoverAttempts, type TakenOver } from './recovery.js';
import type { RunOptions } from './run-options.js';
import type { ServiceKeeper } from './service-keeper.js';
import type { SessionCheckpoints } from './session-checkpoints.js';
import { ANYWHERE, sessionQueue } from './session-queue.js';
import { sessionServices } from './session-services.js';
import { type AttemptFailure, SlotDriver } from './slot-driver.js';
import type { StopSwitch } from './stop.js';
import { stopForBreaker, stopForFault, stopForLackOfSpace } from './stop-causes.js';
import { openWorkshop, type Workshop } from './workshop.js';

export interface SessionWorkSetting {
  readonly admission: Admission;
  readonly options: RunOptions;
  /** Sessions that are at work in this process. */
  readonly active: ReadonlySet<string>;
  readonly journal: Journal;
  readonly stop: StopSwitch;
  /** Aborts when what is in flight is cut by the operator. */
  readonly force: AbortSignal;
  readonly announcer: Announcer;
  readonly checkpoints: SessionCheckpoints;
}

/** What a session does between its gate and its end: takes over what dead ones left, then works on the plan or rechecks. */
export class SessionWork {
  readonly #setting: SessionWorkSetting;
  readonly #breaker: Breaker;
  readonly coverage: Coverage;
  #keeper: ServiceKeeper | null = null;
  #driver: SlotDriver | null = null;
  #recheck: StoppedRecheck | null = null;
  #recovered = 0;
  #abandoned = 0;

  constructor(setting: SessionWorkSetting) {
    const { admission, options } = setting;
    this.#setting = setting;
    this.#breaker = new Breaker(admission.book.context.protocol.attempts.breaker);
    this.coverage = new Coverage(admission.book, options.selection);
  }

  /** Attempts that are under way. */
  get inFlight(): number {
    return this.#driver?.inFlight ?? this.#recheck?.inFlight ?? 0;
  }

  /** Attempts of dead sessions that were taken over. */
  get recovered(): number {
    return this.#recovered;
  }

  /** Attempts that this session gave up. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** Opens the workshop, works, and leaves no process behind, whatever happens. */
  async run(watch: BindingsWatch): Promise<void> {
    const { root, workers } = this.#setting.options;
    const workshop = await openWorkshop(this.#setting.admission, {
      root,
      workers,
      abandoned: this.#setting.stop.abandoned,
    });
    try {
      await this.#work(workshop, watch);
    } catch (error) {
      this.#fault(error);
    } finally {
      await this.#keeper
        ?.close(this.#setting.stop.requested ? 'run_ended' : 'done')
        .catch((error: unknown) => {
          this.#fault(error);
        });
      workshop.watchdog.close();
    }
  }

  async #work(workshop: Workshop, watch: BindingsWatch): Promise<void> {
    const { adapter } = workshop;
    const { book, session, process: own } = this.#setting.admission;
    const { protocol } = book.context;
    const tasks = book.tasks.tasks;
    const journal = this.#setting.journal;
    const { active } = this.#setting;
    const setting = { journal, adapter, protocol, tasks, session, own, active };
    let recovery = await this.#recover(setting);
    if (workshop.kind === 'openai') this.#keeper = this.#services(workshop, watch);
    if (this.#setting.options.recheck !== undefined) {
      await this.#recheckStopped(workshop, this.#setting.options.recheck);
      return;
    }
    await this.#startProgress();
    const driver = new SlotDriver({
      journal,
      adapter,
      session,
      own,
      abandoned: this.#setting.stop.abandoned,
      mayStart: (generates) => this.#mayStart(generates),
      service: () => this.#keeper?.current ?? null,
      started: () => this.#setting.checkpoints.attemptStarted(),
      ended: (failure, service) => this.#attemptEnded(failure, service),
      cut: () => {
        this.#abandoned++;
      },
      idle: () => this.#idle(),
    });
    this.#driver = driver;
    do {
      await this.#takeOver(driver, recovery.takenOver);
      await this.#drain(sessionQueue(book, workshop, this.#setting.options), driver);
      if (this.#setting.stop.requested || this.#setting.options.limit !== null) break;
      // Another process may have died meanwhile.
      recovery = await this.#recover(setting);
    } while (recovery.recovered > 0);
  }

  /** Works on everything that a queue holds, from station to station. */
  async #drain(queue: PlanQueue, driver: SlotDriver): Promise<void> {
    const { stop, options } = this.#setting;
    for (let at = queue.nextStation(); at !== null && !stop.requested; at = queue.nextStation()) {
      if (this.#keeper !== null && !(await this.#keeper.use(at))) break;
      await this.#pool(
        () => queue.take(at ?? ANYWHERE),
        async (job) => {
          const own = await driver.drive(job);
          if (!own) queue.giveBack();
          return own;
        },
      );
    }
    if (queue.limited || options.limit === 0)
      stop.request({ reason: 'limit', detail: null, error: null }, null);
  }

  /** Nothing is said of how many there are: that some were stopped is an outcome (law 8). */
  async #recheckStopped({ adapter }: Workshop, fraction: string): Promise<void> {
    const { book, session, process: own } = this.#setting.admission;
    this.#recheck = new StoppedRecheck({
      book,
      journal: this.#setting.journal,
      adapter,
      session,
      own,
      active: this.#setting.active,
      fraction,
      workers: this.#setting.options.workers,
      abandoned: this.#setting.stop.abandoned,
      use: async (model) => !this.#setting.stop.requested && (await this.#keeper?.use(model)) === true,
      mayStart: () => this.#mayStart(true),
      started: () => this.#setting.checkpoints.attemptStarted(),
      idle: () => this.#idle(),
      fault: (error) => this.#fault(error),
    });
    await this.#recheck.run();
  }

  #services(workshop: Extract<Workshop, { kind: 'openai' }>, watch: BindingsWatch): ServiceKeeper {
    const word = operatorsWord(this.#setting.admission.book.context.protocol);
    if (word !== null) this.#setting.announcer.warn(word);
    return sessionServices({
      workshop,
      admission: this.#setting.admission,
      gate: this.#setting.options,
      journal: this.#setting.journal,
      stop: this.#setting.stop,
      force: this.#setting.force,
      watch,
      announcer: this.#setting.announcer,
    });
  }

  /** Slots whose candidate a dead session left: their grading comes first. */
  async #takeOver(driver: SlotDriver, takenOver: readonly TakenOver[]): Promise<void> {
    const waiting = [...takenOver];
    const jobs = new Map(waiting.map((one) => [one.job, one]));
    await this.#pool(
      () => waiting.shift()?.job ?? null,
      async (job) => {
        const one = jobs.get(job);
        if (one !== undefined) await driver.regrade(job, one.attempt, one.candidate);
        return true;
      },
    );
  }

  /**
   * Works on jobs until there are none, with as many workers as were asked for. Never throws.
   *
   * @param drive tells whether the job was this session's
   */
  async #pool(take: () => Job | null, drive: (job: Job) => Promise<boolean>): Promise<void> {
    const worker = async (): Promise<void> => {
      while (!this.#setting.stop.requested) {
        const job = take();
        if (job === null) return;
        try {
          const own = await drive(job);
          this.coverage.worked(job.rules.slot, job.work.slot, own);
        } catch (error) {
          this.#fault(error);
        }
      }
    };
    await Promise.all(Array.from({ length: this.#setting.options.workers }, worker));
  }

  async #mayStart(generates: boolean): Promise<boolean> {
    if (this.#setting.stop.requested) return false;
    if (!stopForLackOfSpace(this.#setting.stop, this.#setting.admission.book.folder)) return false;
    if (!generates || this.#keeper === null) return true;
    return (await this.#keeper.isUp()) && !this.#setting.stop.requested;
  }

  #attemptEnded(failure: AttemptFailure | null, service: string | null): void {
    if (failure === null) this.#breaker.succeeded();
    else if (this.#breaker.failed(failure.signals, failure.attribution, service))
      stopForBreaker(this.#setting.stop, this.#breaker);
  }

  /** With nothing in flight and nothing to start, a service that is still being started is of no use. */
  #idle(): void {
    if (this.#setting.stop.requested) this.#setting.stop.abandon();
  }

  #fault(error: unknown): void {
    stopForFault(this.#setting.stop, error);
  }

  async #startProgress(): Promise<void> {
    if (this.#setting.stop.requested) return;
    await this.#setting.announcer.showProgress(() => this.coverage.done, this.coverage.selected);
    if (this.#setting.stop.requested) this.#setting.announcer.hideProgress();
  }

  async #recover(setting: RecoverySetting): Promise<RecoveryResult> {
    const recovery = await recoverAttempts(setting);
    this.#recovered += recovery.recovered;
    if (recovery.recovered > 0)
      this.#setting.announcer.say(`${recovery.recovered} attempts of a process that is gone were taken over`);
    return recovery;
  }
}
