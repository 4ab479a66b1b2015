import { setMaxListeners } from 'node:events';
import { BoundbookError } from '../core/errors.js';
import { gateError } from '../gate/refusal.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { LedgerObject } from '../ledger/objects.js';
import type { RestoreRequest } from '../ledger/restore.js';
import { loadAttestations, unnamedTokens } from '../manifest/attestations.js';
import type { Product } from '../manifest/product.js';
import { assertInForce } from '../manifest/succession.js';
import { readWorkspace } from '../manifest/workspace.js';
import { operatorsWord } from '../protocol/operators-word.js';
import type { SignerKey } from '../signing/keys.js';
import { assertPlanned } from '../slots/selector.js';
import { type Admission, type AdmissionOptions, admit, gatePassed, inspectModel } from './admission.js';
import { BindingsWatch } from './bindings-watch.js';
import { Breaker } from './breaker.js';
import { CgroupFolder } from './cgroup.js';
import { Coverage } from './coverage.js';
import { lackOfSpace } from './free-space.js';
import { Heartbeat } from './heartbeat.js';
import { countedAttempts, Interruptions } from './interruptions.js';
import { Journal } from './journal.js';
import type { Job } from './plan-queue.js';
import { Progress } from './progress.js';
import { assertRecheckable, assertStopRule, StoppedRecheck } from './recheck.js';
import { type RecoveryResult, recoverAttempts, type TakenOver } from './recovery.js';
import { describeSelection, type RunSelection } from './selection.js';
import { ServiceKeeper } from './service-keeper.js';
import { ServiceRecorder } from './service-record.js';
import { SessionCheckpoints } from './session-checkpoints.js';
import { ANYWHERE, sessionQueue } from './session-queue.js';
import { type AttemptFailure, SlotDriver } from './slot-driver.js';
import { type StopCause, StopSwitch } from './stop.js';
import { type RunSummary, summarize } from './summary.js';
import { attemptLimit, openWorkshop, type Workshop } from './workshop.js';

export interface RunOptions {
  readonly root: string;
  readonly manifest?: string | undefined;
  readonly workers: number;
  readonly selection: RunSelection;
  /** Goes on with an older copy that was put back, on the record. */
  readonly restore?: RestoreRequest | undefined;
  /** How many slots may be taken up; null: all; 0: none but those that were started before. */
  readonly limit: number | null;
  /** Generates this share of the stopped outputs again, without the stop rule, and takes up no slot; absent: works on the plan. */
  readonly recheck?: string | undefined;
  readonly terminal: boolean;
  readonly progress: (line: string) => void;
  /** Stops the session in order: what is in flight may end. */
  readonly signal: AbortSignal;
  /** Stops it at once: what is in flight is cut. */
  readonly force?: AbortSignal | undefined;
  readonly now: () => string;
  /** Signs the checkpoints; null: they have no note. */
  readonly key?: SignerKey | null | undefined;
  /** The running program; tests hand in another. */
  readonly product?: Product | undefined;
  /** How often bound files are looked at, in milliseconds. */
  readonly watchMs?: number | undefined;
  /** How often the ledger gets an entry at least, in seconds. */
  readonly heartbeatSeconds?: number | undefined;
  readonly onHash?: ((done: number, total: number) => void) | undefined;
}

const WATCH_MS = 3000;
const HEARTBEAT_SECONDS = 60;
const CLOCK_TOLERANCE_MS = 1000;

/** Sessions that are at work in this process. */
const active = new Set<string>();

/**
 * Executes the selected part of a plan under the gate, from admission to the entry that says why it ended.
 *
 * @throws {BoundbookError} what {@link admit} refuses, with nothing executed; SLOT_NOT_PLANNED; RECHECK_REFUSED; otherwise the error of
 * the cause that ended the session early, with the summary as evidence: STOPPED, BREAKER_OPEN, DISK_FULL,
 * SERVICE_FAILED, PORT_NOT_OWNED, GATE_REFUSED for a binding that changed.
 */
export async function runSession(options: RunOptions): Promise<RunSummary> {
  const check: AdmissionOptions['check'] = (protocol, taskIds) => {
    assertPlanned(options.selection.only, protocol, taskIds);
    if (options.recheck !== undefined) assertStopRule(protocol);
    if (protocol.runner.adapter === 'command' && protocol.runner.cgroup !== undefined) {
      CgroupFolder.open(protocol.runner.cgroup);
    }
  };
  const onRestored: AdmissionOptions['onRestored'] = ({ incarnation, known, lost }) =>
    options.progress(`incarnation ${incarnation}: ${lost} of ${known} entries that were known are lost`);
  const admission = await admit({ ...options, check, onRestored });
  const { book, session } = admission;
  warnOfClock(book.fold.time, options);
  try {
    if (options.recheck !== undefined) assertRecheckable(book, options.recheck);
    active.add(session);
    const summary = await new RunSession(admission, options).run();
    const { error } = summary;
    if (error === null) return summary;
    options.progress(summary.text);
    throw new BoundbookError(error.code, error.message, {
      hint: error.hint ?? 'Run the same command again.',
      evidence: { summary: summary.json, cause: error.evidence ?? null },
      faults: error.faults,
      cause: error,
    });
  } finally {
    active.delete(session);
    book.close();
  }
}

/** Entries never run back in time: with a clock that was set back they bear the last entry's time for a while. */
function warnOfClock(last: string | null, { now, progress }: RunOptions): void {
  const behind = last === null ? 0 : Date.parse(last) - Date.parse(now());
  if (behind < CLOCK_TOLERANCE_MS) return;
  progress(
    `the clock is ${Math.round(behind / 1000)} s behind the ledger's last entry (${last}); until it has caught up, entries bear that time`,
  );
}

class RunSession {
  readonly #admission: Admission;
  readonly #options: RunOptions;
  readonly #force: AbortSignal;
  readonly #journal: Journal;
  readonly #stop = new StopSwitch();
  readonly #breaker: Breaker;
  readonly #coverage: Coverage;
  readonly #checkpoints: SessionCheckpoints;
  readonly #began = performance.now();
  readonly #warnings: string[] = [];
  #keeper: ServiceKeeper | null = null;
  #progress: Progress | null = null;
  #driver: SlotDriver | null = null;
  #recheck: StoppedRecheck | null = null;
  #recovered = 0;
  #abandoned = 0;

  constructor(admission: Admission, options: RunOptions) {
    this.#admission = admission;
    this.#options = options;
    this.#force = options.force ?? new AbortController().signal;
    this.#journal = new Journal(admission.book.store, admission.book.fold);
    this.#breaker = new Breaker(admission.book.context.protocol.attempts.breaker);
    this.#coverage = new Coverage(admission.book, options.selection);
    this.#checkpoints = new SessionCheckpoints({
      book: admission.book,
      journal: this.#journal,
      key: options.key ?? null,
      tokens: () => untoldTokens(options.root, admission.book.fold),
      say: (line) => this.#say(line),
      fault: (error) => this.#fault(error),
    });
    // Services are asked many questions at a time under either.
    setMaxListeners(0, this.#stop.abandoned, this.#force);
  }

  async run(): Promise<RunSummary> {
    const {
      selection,
      limit,
      recheck = null,
      watchMs = WATCH_MS,
      heartbeatSeconds = HEARTBEAT_SECONDS,
    } = this.#options;
    const { session } = this.#admission;
    const passed = gatePassed(
      this.#admission,
      describeSelection(selection, limit, recheck),
      heartbeatSeconds,
    );
    await this.#journal.append([passed]);
    const heartbeat = new Heartbeat(this.#journal, session, heartbeatSeconds, (error) => this.#fault(error));
    const watch = new BindingsWatch(this.#admission.inspection.watched, this.#stop, watchMs);
    const interruptions = this.#interruptions();
    try {
      interruptions.listen();
      await this.#checkpoints.begin();
      await this.#assertInForce();
      watch.start();
      await this.#workIn(watch);
    } catch (error) {
      this.#fault(error);
    } finally {
      interruptions.close();
      this.#progress?.stop();
      await watch.look();
      await watch.close();
      await heartbeat.stop();
      this.#stop.close();
    }
    return this.#end();
  }

  /**
   * An amendment that was under way while this session was admitted either saw its gate, and refused, or left its manifest
   * before it.
   */
  async #assertInForce(): Promise<void> {
    const { manifests } = await readWorkspace(this.#options.root);
    assertInForce(this.#admission.stored, manifests);
  }

  /** Opens the workshop, works, and leaves no process behind, whatever happens. */
  async #workIn(watch: BindingsWatch): Promise<void> {
    const { root, workers } = this.#options;
    const workshop = await openWorkshop(this.#admission, {
      root,
      workers,
      abandoned: this.#stop.abandoned,
    });
    try {
      await this.#work(workshop, watch);
    } catch (error) {
      this.#fault(error);
    } finally {
      await this.#keeper?.close(this.#stop.requested ? 'run_ended' : 'done').catch((error: unknown) => {
        this.#fault(error);
      });
      workshop.watchdog.close();
    }
  }

  async #work(workshop: Workshop, watch: BindingsWatch): Promise<void> {
    const { adapter } = workshop;
    const { book, session, process: own } = this.#admission;
    const { protocol } = book.context;
    const tasks = book.tasks.tasks;
    const journal = this.#journal;
    const recovery = await recoverAttempts({ journal, adapter, protocol, tasks, session, own, active });
    this.#noteRecovery(recovery);
    if (workshop.kind === 'openai') this.#keeper = this.#makeKeeper(workshop, watch);
    if (this.#options.recheck !== undefined) {
      await this.#recheckStopped(workshop, this.#options.recheck);
      return;
    }
    const queue = sessionQueue(book, workshop, this.#options);
    await this.#startProgress();
    const driver = new SlotDriver({
      journal,
      adapter,
      session,
      own,
      abandoned: this.#stop.abandoned,
      mayStart: (generates) => this.#mayStart(generates),
      service: () => this.#keeper?.current ?? null,
      started: () => this.#checkpoints.attemptStarted(),
      ended: (failure, service) => this.#attemptEnded(failure, service),
      cut: () => {
        this.#abandoned++;
      },
      idle: () => this.#idle(),
    });
    this.#driver = driver;
    await this.#takeOver(driver, recovery.takenOver);
    for (let at = queue.nextStation(); at !== null && !this.#stop.requested; at = queue.nextStation()) {
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
    if (queue.limited || this.#options.limit === 0)
      this.#stop.request({ reason: 'limit', detail: null, error: null }, null);
  }

  /** Nothing is said of how many there are: that some were stopped is an outcome (law 8). */
  async #recheckStopped({ adapter }: Workshop, fraction: string): Promise<void> {
    const { book, session, process: own } = this.#admission;
    this.#recheck = new StoppedRecheck({
      book,
      journal: this.#journal,
      adapter,
      session,
      own,
      active,
      fraction,
      workers: this.#options.workers,
      abandoned: this.#stop.abandoned,
      use: async (model) => !this.#stop.requested && (await this.#keeper?.use(model)) === true,
      mayStart: () => this.#mayStart(true),
      started: () => this.#checkpoints.attemptStarted(),
      idle: () => this.#idle(),
      fault: (error) => this.#fault(error),
    });
    await this.#recheck.run();
  }

  #makeKeeper(workshop: Extract<Workshop, { kind: 'openai' }>, watch: BindingsWatch): ServiceKeeper {
    const { book, session } = this.#admission;
    const { runner, adapter, launch } = workshop;
    const { service } = runner;
    const isExternal = 'external' in service;
    const word = operatorsWord(book.context.protocol);
    if (word !== null) this.#warn(word);
    return new ServiceKeeper({
      adapter,
      runner,
      session,
      recorder: new ServiceRecorder(this.#journal, runner),
      stop: this.#stop,
      force: this.#force,
      restarts: isExternal ? 0 : service.restarts,
      maxUp: isExternal ? Number.POSITIVE_INFINITY : (service.max_up ?? 1),
      progress: (line) => this.#say(line),
      warn: (line) => this.#warn(line),
      verify: async (model) => {
        const inspection = await inspectModel(book.manifest, model, this.#options);
        if (inspection.mismatches.length > 0) throw gateError('the manifest', inspection.mismatches);
      },
      beforeStart: () => watch.look(),
      launch,
    });
  }

  /** Said now, and once more at the end. */
  #warn(line: string): void {
    this.#warnings.push(line);
    this.#say(`warning: ${line}`);
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
      while (!this.#stop.requested) {
        const job = take();
        if (job === null) return;
        try {
          const own = await drive(job);
          this.#coverage.worked(job.rules.slot, job.work.slot, own);
        } catch (error) {
          this.#fault(error);
        }
      }
    };
    await Promise.all(Array.from({ length: this.#options.workers }, worker));
  }

  async #mayStart(generates: boolean): Promise<boolean> {
    if (this.#stop.requested) return false;
    const full = lackOfSpace(this.#admission.book.folder);
    // No grace is set: a disk that still has room for what is in flight lets it end.
    if (full !== null) this.#stop.request({ reason: 'disk_full', detail: full.message, error: full }, null);
    if (full !== null) return false;
    if (!generates || this.#keeper === null) return true;
    return (await this.#keeper.isUp()) && !this.#stop.requested;
  }

  #attemptEnded(failure: AttemptFailure | null, service: string | null): void {
    if (failure === null) {
      this.#breaker.succeeded();
      return;
    }
    if (!this.#breaker.failed(failure.signals, failure.attribution, service)) return;
    const detail = this.#breaker.describe();
    const error = new BoundbookError('BREAKER_OPEN', `the breaker opened: ${detail}`, {
      hint: 'Find the cause before running again: each of these slots has used its one replacement or will.',
    });
    this.#stop.request({ reason: 'breaker', detail, error }, null);
  }

  #interruptions(): Interruptions {
    const { signal, force } = this.#options;
    return new Interruptions({
      signal,
      force,
      stop: this.#stop,
      limitSeconds: () => attemptLimit(this.#admission.book.context.protocol.runner),
      inFlight: () => this.#driver?.inFlight ?? this.#recheck?.inFlight ?? 0,
      say: (line) => {
        this.#progress?.stop();
        this.#say(line);
      },
    });
  }

  /** With nothing in flight and nothing to start, a service that is still being started is of no use. */
  #idle(): void {
    if (this.#stop.requested) this.#stop.abandon();
  }

  /** A fault of the host or of Boundbook, not of an attempt: nothing that it touched can be recorded any more. */
  #fault(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const typed =
      error instanceof BoundbookError
        ? error
        : new BoundbookError('INTERNAL', `internal fault: ${message}`, { cause: error });
    const reason = typed.code === 'DISK_FULL' ? 'disk_full' : 'fault';
    this.#stop.request({ reason, detail: typed.message.slice(0, 2000), error: typed }, 0);
  }

  async #end(): Promise<RunSummary> {
    const { session } = this.#admission;
    await this.#checkpoints.end().catch((error: unknown) => this.#fault(error));
    const cause = this.#cause();
    const { reason } = cause;
    const detail = cause.detail === null ? null : cause.detail.slice(0, 2000).toWellFormed();
    try {
      await this.#journal.append([{ type: 'run.paused', session, reason, detail }]);
    } catch (error) {
      if (cause.error === null) throw error;
      // The ledger takes nothing more; the cause of that is what is reported.
    }
    return this.#summary(cause);
  }

  /** Why it ended, and what was cut by whose act. */
  #cause(): StopCause {
    const cause = this.#stop.cause ?? { reason: 'finished', detail: null, error: null };
    if (this.#abandoned === 0) return cause;
    const act = this.#options.force?.aborted === true ? ' by the operator, who asked twice' : '';
    const note = `${countedAttempts(this.#abandoned)} abandoned${act}`;
    return { ...cause, detail: cause.detail === null ? note : `${cause.detail.slice(0, 1900)}; ${note}` };
  }

  #summary(cause: StopCause): RunSummary {
    const { book, session } = this.#admission;
    const others = [...book.fold.slots.open()].filter((slot) => slot.session !== session);
    return summarize({
      book,
      session,
      cause,
      recheck: this.#options.recheck ?? null,
      selected: this.#coverage.selected,
      done: this.#coverage.done,
      closed: this.#coverage.closed,
      recovered: this.#recovered,
      abandoned: this.#abandoned,
      seconds: Math.round(performance.now() - this.#began) / 1000,
      elsewhere: others.length,
      checkpoint: this.#checkpoints.last,
      warnings: this.#warnings,
    });
  }

  async #startProgress(): Promise<void> {
    if (this.#stop.requested) return;
    const { terminal, progress } = this.#options;
    this.#progress = new Progress({
      terminal,
      line: progress,
      done: () => this.#coverage.done,
      total: this.#coverage.selected,
    });
    await this.#progress.start();
    if (this.#stop.requested) this.#progress.stop();
  }

  #noteRecovery({ recovered }: RecoveryResult): void {
    this.#recovered = recovered;
    if (recovered > 0) this.#say(`${recovered} attempts of a process that is gone were taken over`);
  }

  #say(line: string): void {
    if (this.#progress === null) this.#options.progress(line);
    else this.#progress.line(line);
  }
}

/** Time-stamp tokens in the workspace that the ledger has not named. */
async function untoldTokens(root: string, fold: LedgerFold): Promise<readonly LedgerObject[]> {
  return unnamedTokens(await loadAttestations(root), fold.checkpoints.told);
}
