import { setMaxListeners } from 'node:events';
import type { LedgerFold } from '../ledger/fold.js';
import type { LedgerObject } from '../ledger/objects.js';
import { loadAttestations, unnamedTokens } from '../manifest/attestations.js';
import { assertInForce } from '../manifest/succession.js';
import { readWorkspace } from '../manifest/workspace.js';
import { type Admission, gatePassed } from './admission.js';
import { Announcer } from './announcer.js';
import { BindingsWatch } from './bindings-watch.js';
import { Heartbeat } from './heartbeat.js';
import { Interruptions } from './interruptions.js';
import { Journal } from './journal.js';
import type { RunOptions } from './run-options.js';
import { describeSelection } from './selection.js';
import { SessionCheckpoints } from './session-checkpoints.js';
import { SessionWork } from './session-work.js';
import { type StopCause, StopSwitch } from './stop.js';
import { causeOfEnd, stopForFault } from './stop-causes.js';
import { type RunSummary, summarize } from './summary.js';
import { attemptLimit } from './workshop.js';

const WATCH_MS = 3000;
const HEARTBEAT_SECONDS = 60;

/** One passage of the gate, from the entry that says so to the one that says why it ended. */
export class Session {
  readonly #admission: Admission;
  readonly #options: RunOptions;
  readonly #force: AbortSignal;
  readonly #journal: Journal;
  readonly #stop = new StopSwitch();
  readonly #checkpoints: SessionCheckpoints;
  readonly #announcer: Announcer;
  readonly #work: SessionWork;
  readonly #began = performance.now();

  /** @param active sessions that are at work in this process */
  constructor(admission: Admission, options: RunOptions, active: ReadonlySet<string>) {
    this.#admission = admission;
    this.#options = options;
    this.#announcer = new Announcer({ terminal: options.terminal, line: options.progress });
    this.#force = options.force ?? new AbortController().signal;
    this.#journal = new Journal(admission.book.store, admission.book.fold);
    this.#checkpoints = new SessionCheckpoints({
      book: admission.book,
      journal: this.#journal,
      key: options.key ?? null,
      tokens: () => untoldTokens(options.root, admission.book.fold),
      say: (line) => this.#announcer.say(line),
      fault: (error) => this.#fault(error),
    });
    this.#work = new SessionWork({
      admission,
      options,
      active,
      journal: this.#journal,
      stop: this.#stop,
      force: this.#force,
      announcer: this.#announcer,
      checkpoints: this.#checkpoints,
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
      await this.#work.run(watch);
    } catch (error) {
      this.#fault(error);
    } finally {
      interruptions.close();
      this.#announcer.hideProgress();
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

  #interruptions(): Interruptions {
    const { signal, force } = this.#options;
    return new Interruptions({
      signal,
      force,
      stop: this.#stop,
      limitSeconds: () => attemptLimit(this.#admission.book.context.protocol.runner),
      inFlight: () => this.#work.inFlight,
      say: (line) => {
        this.#announcer.hideProgress();
        this.#announcer.say(line);
      },
    });
  }

  #fault(error: unknown): void {
    stopForFault(this.#stop, error);
  }

  async #end(): Promise<RunSummary> {
    const { session } = this.#admission;
    await this.#checkpoints.end().catch((error: unknown) => this.#fault(error));
    const cause = causeOfEnd(this.#stop, this.#work.abandoned, this.#options.force?.aborted === true);
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

  #summary(cause: StopCause): RunSummary {
    const { book, session } = this.#admission;
    const others = [...book.fold.slots.open()].filter((slot) => slot.session !== session);
    return summarize({
      book,
      session,
      cause,
      recheck: this.#options.recheck ?? null,
      selected: this.#work.coverage.selected,
      done: this.#work.coverage.done,
      closed: this.#work.coverage.closed,
      recovered: this.#work.recovered,
      abandoned: this.#work.abandoned,
      seconds: Math.round(performance.now() - this.#began) / 1000,
      elsewhere: others.length,
      checkpoint: this.#checkpoints.last,
      warnings: this.#announcer.warnings,
    });
  }
}

/** Time-stamp tokens in the workspace that the ledger has not named. */
async function untoldTokens(root: string, fold: LedgerFold): Promise<readonly LedgerObject[]> {
  return unnamedTokens(await loadAttestations(root), fold.checkpoints.told);
}
