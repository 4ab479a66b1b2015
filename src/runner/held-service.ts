import { BoundbookError } from '../core/errors.js';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import type { Endpoint } from './adapters/openai.js';
import { answersAgain } from './answers-again.js';
import { takeCanary } from './canary.js';
import { HealthWatch } from './health-watch.js';
import type { Exit } from './process-group.js';
import { versionIn } from './self-description.js';
import type { Served, Waiting } from './served.js';
import { ended } from './service.js';
import { otherModels } from './service-client.js';
import { isServiceFailure, pauseReason, tooOften, unanswered } from './service-faults.js';
import type { ServiceName, ServiceRecorder, StopReason } from './service-record.js';
import type { StopSwitch } from './stop.js';

export interface HoldingSetting {
  readonly runner: OpenaiRunner;
  readonly session: string;
  readonly recorder: ServiceRecorder;
  readonly stop: StopSwitch;
  /** Aborts when nothing may be waited for any more. */
  readonly force: AbortSignal;
  /** How often a service that died is started again. */
  readonly restarts: number;
  readonly progress: (line: string) => void;
  /** What must be read again at the end of the session. */
  readonly warn: (line: string) => void;
  /** Hashes a model's files again and compares. @throws {BoundbookError} GATE_REFUSED. */
  readonly verify: (model: string) => Promise<void>;
  /** A last look at the bound files before a program reads them. */
  readonly beforeStart: () => Promise<void>;
  /** Starts a service, or takes hold of one. */
  readonly launch: (model: string) => Promise<Served>;
}

/** How long a service that is of no more use may take to say that it is well. */
const FAREWELL_MS = 5000;

const UNKNOWN_END: Exit = { exit_status: null, signal: null, spawnError: null };

/** The service of one model: started, watched, started again, and ended. */
export class HeldService {
  readonly model: string;
  readonly #setting: HoldingSetting;
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
      last = await this.#farewell(service, name, reason);
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
      if (changed.length > 0) this.#warnOfChanges(name, 'than the first service of its model', changed);
      await this.#firstCanary(service, name);
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

  /** Nothing is attempted before the service has answered as the first one of its model did. */
  async #firstCanary(service: Served, name: ServiceName): Promise<void> {
    const { runner, recorder, stop } = this.#setting;
    const { canary } = runner.service;
    if (canary === undefined) return;
    const taken = await takeCanary(service.pool, runner, canary, this.model, stop.abandoned);
    if (!taken.ok && stop.abandoned.aborted)
      throw new BoundbookError('STOPPED', 'stopped while a service was asked its canary');
    if (!taken.ok) throw unanswered(name, taken.reason);
    const { verdict, largest_logprob_difference: largest } = await recorder.canary(name, 'start', taken);
    if (verdict !== 'differs') return;
    throw new BoundbookError(
      'SERVICE_CHANGED',
      `the service ${name.service} answers the canary otherwise than the first service of ${this.model} did`,
      {
        hint: 'Weights, settings, version or hardware differ from those of the attempts that are in the ledger. Bring the service back to what it was, or amend the plan.',
        evidence: { service: name.service, largest_logprob_difference: largest },
      },
    );
  }

  /** Asks a service that is of no more use once more. @returns why it is ended */
  async #farewell(service: Served, name: ServiceName, reason: StopReason): Promise<StopReason> {
    const { runner, recorder, stop, force } = this.#setting;
    if (reason !== 'done' && reason !== 'run_ended') return reason;
    const died = () => (service.diedByItself ? 'died' : 'unresponsive');
    if (!(await service.isAlive(0))) return died();
    if (force.aborted) return 'run_ended';
    if (!(await service.answers(runner.service.ready.path, FAREWELL_MS, force)))
      return force.aborted ? 'run_ended' : died();
    const description = await service.describe(force);
    const changed = await recorder.atEnd(name, service, description);
    if (changed.length > 0) this.#warnOfChanges(name, 'at its end than at its start', changed);
    const others = otherModels(description, this.model);
    if (others !== null) {
      const message = `the service ${name.service} serves ${others} at its end, no more ${this.model}`;
      const error = new BoundbookError('SERVICE_FAILED', message, {
        hint: 'Each answer named the bound model, or its attempt failed. Find out who changed the server.',
      });
      stop.request({ reason: 'service_failed', detail: message, error }, null);
    }
    const { canary } = runner.service;
    if (canary === undefined) return reason;
    const taken = await takeCanary(service.pool, runner, canary, this.model, force);
    if (!taken.ok) {
      this.#setting.warn(`${name.service} has no canary at its end: ${taken.reason}`);
      return force.aborted ? 'run_ended' : died();
    }
    const { verdict } = await recorder.canary(name, 'end', taken);
    if (verdict === 'differs') {
      this.#setting.warn(
        `${name.service} answered the canary otherwise at its end than the reference: what it answered in between is in doubt`,
      );
    }
    return reason;
  }

  #warnOfChanges({ service }: ServiceName, than: string, changed: readonly string[]): void {
    const shown = changed.slice(0, 3).join(', ');
    this.#setting.warn(
      `${service} describes itself otherwise ${than}: ${shown}${changed.length > 3 ? ' …' : ''}`,
    );
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
