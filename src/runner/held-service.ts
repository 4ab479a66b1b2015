import { BoundbookError } from '../core/errors.js';
import type { Endpoint } from './adapters/openai.js';
import { answersAgain } from './answers-again.js';
import { HealthWatch } from './health-watch.js';
import type { Exit } from './process-group.js';
import { versionIn } from './self-description.js';
import type { Served, Waiting } from './served.js';
import { ended } from './service.js';
import { isServiceFailure, pauseReason, tooOften } from './service-faults.js';
import { type QuestionSetting, ServiceQuestions } from './service-questions.js';
import type { ServiceName, StopReason } from './service-record.js';

export interface HoldingSetting extends QuestionSetting {
  readonly session: string;
  /** How often a service that died is started again. */
  readonly restarts: number;
  readonly progress: (line: string) => void;
  /** Hashes a model's files again and compares. @throws {BoundbookError} GATE_REFUSED. */
  readonly verify: (model: string) => Promise<void>;
  /** A last look at the bound files before a program reads them. */
  readonly beforeStart: () => Promise<void>;
  /** Starts a service, or takes hold of one. */
  readonly launch: (model: string) => Promise<Served>;
}

const UNKNOWN_END: Exit = { exit_status: null, signal: null, spawnError: null };

/** The service of one model: started, watched, started again, and ended. */
export class HeldService {
  readonly model: string;
  readonly #setting: HoldingSetting;
  readonly #questions: ServiceQuestions;
  /** Told of each service that is up, and of none. */
  readonly #onService: () => void;
  #starts = 0;
  #deaths = 0;
  #name: ServiceName | null = null;
  #service: Served | null = null;
  /** Whether the service is up; false: it never will be. */
  #up: Promise<boolean> = Promise.resolve(false);
  #open = false;
  #resting = false;
  #watch: HealthWatch | null = null;
  #unresponsive: Served | null = null;
  /** An external service that was lost and is waited for, or was never found again. */
  #parted: Served | null = null;
  /** Ends the waiting for a service whose connections broke; null when none is in doubt. */
  #doubt: AbortController | null = null;

  constructor(model: string, setting: HoldingSetting, onService: () => void) {
    this.model = model;
    this.#setting = setting;
    this.#questions = new ServiceQuestions(setting);
    this.#onService = onService;
  }

  /** Name of the present start. */
  get name(): string | null {
    return this.#name?.service ?? null;
  }

  get service(): Served | null {
    return this.#service;
  }

  /** Whether it is up, or being started. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** Starts it unless it is up. False when it could not be, which has stopped the session. */
  open(): Promise<boolean> {
    this.#resting = false;
    if (!this.#open) {
      this.#open = true;
      this.#up = this.#up.then(() => this.#start());
    }
    return this.#up;
  }

  /** Kept up while another one is in use: when it dies, it is not started again before it is wanted. */
  rest(): void {
    this.#resting = true;
    if (this.#doubt === null) return;
    this.#doubt.abort();
    if (this.#service === null) this.#open = false;
  }

  /** Waits until it is up; a dead one is being started again, and one that broke connections asked whether it is there. */
  async isUp(): Promise<boolean> {
    for (;;) {
      // The end of a process shows in /proc before its event arrives.
      if (this.#service !== null && !(await this.#service.isAlive(0))) await this.#service.exit;
      const up = this.#up;
      const isUp = await up;
      if (up === this.#up) return isUp;
    }
  }

  /**
   * A connection to it was refused or lost: no attempt is started before it has answered at its ready path. An external
   * one may be another server by then, so that it is taken up anew.
   */
  connectionBroke(endpoint: Endpoint): void {
    const [service, name] = [this.#service, this.#name];
    if (!this.#open || this.#doubt !== null || service === null || name === null || service !== endpoint)
      return;
    const doubt = new AbortController();
    this.#doubt = doubt;
    const { ready } = this.#setting.runner.service;
    const wait: Waiting = {
      signal: doubt.signal,
      onSilence: () =>
        this.#setting.progress(
          `the service ${this.model} at ${service.place} does not answer; waiting up to ${ready.timeout_s} s`,
        ),
    };
    const up = service.isExternal ? this.#attachAgain(service, name, wait) : this.#waitFor(service, wait);
    this.#up = up.finally(() => {
      this.#doubt = null;
    });
  }

  /** An answer came under another model's name: whatever it answered since it was checked is in doubt. */
  answeredAs(said: string): void {
    if (this.#name !== null) this.#questions.answeredAs(this.#name, said);
  }

  /** An answer said what system it is from. */
  answeredFrom(fingerprints: readonly string[]): void {
    if (this.#name !== null) this.#questions.answeredFrom(this.#name, fingerprints);
  }

  /** Ends it. Safe to call at any time, and again. */
  async close(reason: StopReason): Promise<void> {
    this.#open = false;
    this.#doubt?.abort();
    await this.#up;
    const [service, name] = [this.#service, this.#name];
    this.#leave();
    await this.#parted?.stop();
    if (service === null || name === null) return;
    let last: StopReason = reason;
    try {
      last = await this.#questions.farewell(service, name, reason);
    } finally {
      const exit = await service.stop();
      await this.#setting.recorder.down(name, last, service.seconds, exit);
    }
  }

  /** Never throws: what goes wrong stops the session. */
  async #start(): Promise<boolean> {
    if (this.#service !== null) return true;
    try {
      await this.#startOnce();
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  /** @param parted taken up anew in place of another one that would be started */
  async #startOnce(
    parted: { readonly service: Served; readonly wait: Waiting } | null = null,
  ): Promise<void> {
    const { session, recorder, beforeStart, stop, launch } = this.#setting;
    const { model } = this;
    await beforeStart();
    if (stop.requested) throw new BoundbookError('STOPPED', 'stopped before a service was started');
    const start = this.#starts++;
    const name = { session, service: `${model}#${start}`, model };
    const service = parted?.service ?? (await launch(model));
    try {
      await service.ready(parted?.wait);
      const changed = await recorder.up(name, service, start);
      if (changed.length > 0)
        this.#questions.warnOfChanges(name, 'than the first service of its model', changed);
      await this.#questions.firstCanary(service, name);
    } catch (error) {
      const exit = await service.stop();
      const refused = error instanceof BoundbookError && error.code === 'SERVICE_CHANGED';
      const reason = service.diedByItself ? 'died' : refused ? 'run_ended' : 'unresponsive';
      await recorder.down(name, reason, service.seconds, exit);
      throw error;
    }
    this.#arrive(service, name);
  }

  #arrive(service: Served, name: ServiceName): void {
    const { runner, progress } = this.#setting;
    const { health, ready } = runner.service;
    this.#service = service;
    this.#name = name;
    this.#onService();
    const version = versionIn(service.effective);
    const said = version === null ? '' : `, version ${JSON.stringify(version)}`;
    progress(`service ${this.model} ready on ${service.place}${said}`);
    if (health !== undefined) {
      this.#watch = new HealthWatch(service, health, ready.path, (failures) => {
        const left = `service ${this.model} left ${failures} questions in a row unanswered`;
        progress(service.isExternal ? left : `${left} and is ended`);
        if (service.isExternal) this.connectionBroke(service);
        else this.#endUnresponsive(service);
      });
    }
    void service.exit.then((exit) => this.#onExit(service, name, exit));
  }

  #leave(): void {
    this.#watch?.close();
    this.#watch = null;
    this.#service = null;
    this.#name = null;
    this.#onService();
  }

  #onExit(service: Served, name: ServiceName, exit: Exit): void {
    if (!this.#open || this.#service !== service || this.#name !== name) return;
    this.#watch?.close();
    this.#service = null;
    this.#name = null;
    this.#up = this.#replace(service, name, exit);
  }

  #endUnresponsive(service: Served): void {
    this.#unresponsive = service;
    service.giveUp();
    void service.stop();
  }

  /** Waits for a started service that lives; one that goes on in silence is ended, which starts it again. */
  async #waitFor(service: Served, { signal, onSilence }: Waiting): Promise<boolean> {
    const { runner, stop, progress } = this.#setting;
    const { ready } = runner.service;
    const wait = { signal: AbortSignal.any([signal, stop.abandoned]), onSilence };
    if (!(await answersAgain(service, ready, wait))) {
      progress(`service ${this.model} did not answer within ${ready.timeout_s} s and is ended`);
      this.#endUnresponsive(service);
    }
    if (!(await service.isAlive(0))) await service.exit;
    return true;
  }

  /** Takes up an external service that was lost, when it answers, under the rules of a start. Never throws. */
  async #attachAgain(service: Served, name: ServiceName, wait: Waiting): Promise<boolean> {
    this.#watch?.close();
    this.#service = null;
    this.#name = null;
    this.#parted = service;
    try {
      await this.#setting.recorder.down(name, 'unresponsive', service.seconds, UNKNOWN_END);
      await this.#startOnce({ service, wait });
      if (this.#resting) this.#open = true;
      return true;
    } catch (error) {
      // Nobody wants it any more when it was put to rest, or the session is over.
      if (!wait.signal.aborted || !isServiceFailure(error)) this.#fail(error);
      return false;
    } finally {
      if (this.#service === service) this.#parted = null;
    }
  }

  /** Never throws. */
  async #replace(service: Served, name: ServiceName, exit: Exit): Promise<boolean> {
    const { progress, restarts, verify, stop, recorder } = this.#setting;
    const { model } = this;
    const unresponsive = this.#unresponsive === service;
    if (!unresponsive) progress(`service ${model} ${ended(exit)}`);
    try {
      await service.stop();
      await recorder.down(name, unresponsive ? 'unresponsive' : 'died', service.seconds, exit);
      if (this.#resting) {
        this.#open = false;
        return false;
      }
      while (!stop.requested && this.#open) {
        const deaths = ++this.#deaths;
        if (deaths > restarts) throw tooOften(model, restarts, unresponsive);
        progress(`service ${model} is started again (${deaths} of ${restarts}); its files are hashed first`);
        await verify(model);
        try {
          await this.#startOnce();
          return true;
        } catch (error) {
          if (deaths >= restarts || !isServiceFailure(error)) throw error;
          progress(`service ${model} did not come up`);
        }
      }
      return false;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #fail(error: unknown): void {
    const typed = error instanceof BoundbookError ? error : null;
    if (typed?.code === 'STOPPED') return;
    const message = error instanceof Error ? error.message : String(error);
    const cause = typed ?? new BoundbookError('INTERNAL', `internal fault: ${message}`, { cause: error });
    this.#setting.stop.request({ reason: pauseReason(typed), detail: message, error: cause }, 0);
  }
}
