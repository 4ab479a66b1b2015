import { BoundbookError } from '../core/errors.js';
import type { DraftOf } from '../ledger/entries.js';
import { toObject } from '../ledger/objects.js';
import type { OpenaiAdapter } from './adapters/openai.js';
import type { Journal } from './journal.js';
import type { Exit } from './process-group.js';
import { ended, Service, type ServiceSpec } from './service.js';
import type { StopSwitch } from './stop.js';

export interface KeeperSetting {
  readonly journal: Journal;
  readonly adapter: OpenaiAdapter;
  readonly session: string;
  readonly stop: StopSwitch;
  readonly restarts: number;
  readonly gpus: number;
  readonly progress: (line: string) => void;
  /** Hashes a model's files again and compares. @throws {BoundbookError} GATE_REFUSED. */
  readonly verify: (model: string) => Promise<void>;
  /** A last look at the bound files before a program reads them. */
  readonly beforeStart: () => Promise<void>;
  /** How a service for a model is started. */
  readonly spec: (model: string, label: string) => ServiceSpec;
}

type StopReason = DraftOf<'service.stopped'>['reason'];

/**
 * Keeps one service up at a time: the one of the model that the plan's order has reached. A service that dies is
 * started again, after its files were hashed once more, as often as the protocol allows.
 */
export class ServiceKeeper {
  readonly #setting: KeeperSetting;
  readonly #starts = new Map<string, number>();
  readonly #deaths = new Map<string, number>();
  #model: string | null = null;
  #name: string | null = null;
  #service: Service | null = null;
  /** Whether the present model's service is up; false: it never will be. */
  #up: Promise<boolean> = Promise.resolve(false);
  #stopping = false;

  constructor(setting: KeeperSetting) {
    this.#setting = setting;
  }

  /** Name of the present start of a service. */
  get current(): string | null {
    return this.#name;
  }

  /** Makes a model's service the one that is up. False when it could not be, which has stopped the session. */
  async use(model: string): Promise<boolean> {
    if (this.#model !== model) {
      await this.close('done');
      this.#model = model;
      this.#stopping = false;
      this.#up = this.#start(model);
    }
    return this.#up;
  }

  /** Waits until the present service is up; a dead one is being started again. */
  async isUp(): Promise<boolean> {
    // The end of a process shows in /proc before its event arrives.
    if (this.#service !== null && !(await this.#service.isAlive(0))) await this.#service.exit;
    return this.#up;
  }

  /** Ends the service that is up. Safe to call at any time, and again. */
  async close(reason: StopReason): Promise<void> {
    this.#stopping = true;
    await this.#up;
    const [service, name, model] = [this.#service, this.#name, this.#model];
    this.#service = null;
    this.#name = null;
    this.#model = null;
    this.#setting.adapter.endpoint = null;
    if (service !== null && name !== null && model !== null) {
      const exit = await service.stop();
      await this.#recordStop(service, name, model, reason, exit);
    }
  }

  /** Never throws: what goes wrong stops the session. */
  async #start(model: string): Promise<boolean> {
    try {
      await this.#startOnce(model);
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  async #startOnce(model: string): Promise<void> {
    const { journal, session, adapter, progress, spec, beforeStart, stop } = this.#setting;
    await beforeStart();
    if (stop.requested) throw new BoundbookError('STOPPED', 'stopped before a service was started');
    const start = this.#starts.get(model) ?? 0;
    this.#starts.set(model, start + 1);
    const name = `${model}#${start}`;
    const service = await Service.launch(spec(model, `service-${this.#total()}`));
    try {
      await service.ready();
      const effective = toObject(service.effective);
      await journal.append(
        [
          {
            type: 'service.started',
            session,
            service: name,
            model,
            pid: service.pid,
            port: service.port,
            start,
            effective: effective.digest,
            seconds: service.readySeconds,
          },
        ],
        [effective],
      );
    } catch (error) {
      const exit = await service.stop();
      const reason = service.diedByItself ? 'died' : 'unresponsive';
      await this.#recordStop(service, name, model, reason, exit);
      throw error;
    }
    this.#service = service;
    this.#name = name;
    adapter.endpoint = service;
    progress(`service ${model} ready on 127.0.0.1:${service.port} (pid ${service.pid})`);
    void service.exit.then((exit) => this.#onExit(service, name, model, exit));
  }

  #onExit(service: Service, name: string, model: string, exit: Exit): void {
    if (this.#stopping || this.#service !== service) return;
    this.#service = null;
    this.#name = null;
    this.#up = this.#replace(service, name, model, exit);
  }

  /** Never throws. */
  async #replace(service: Service, name: string, model: string, exit: Exit): Promise<boolean> {
    const { progress, restarts, verify, stop } = this.#setting;
    progress(`service ${model} ${ended(exit)}`);
    try {
      await service.stop();
      await this.#recordStop(service, name, model, 'died', exit);
      while (!stop.requested && !this.#stopping) {
        const deaths = (this.#deaths.get(model) ?? 0) + 1;
        this.#deaths.set(model, deaths);
        if (deaths > restarts) throw tooOften(model, restarts);
        progress(`service ${model} is started again (${deaths} of ${restarts}); its files are hashed first`);
        await verify(model);
        try {
          await this.#startOnce(model);
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

  async #recordStop(
    service: Service,
    name: string,
    model: string,
    reason: StopReason,
    { exit_status, signal }: Exit,
  ): Promise<void> {
    const { journal, session, gpus } = this.#setting;
    const seconds = service.seconds;
    await journal.append([
      { type: 'service.stopped', session, service: name, model, reason, exit_status, signal, seconds, gpus },
    ]);
  }

  #fail(error: unknown): void {
    const typed = error instanceof BoundbookError ? error : null;
    if (typed?.code === 'STOPPED') return;
    const reason =
      typed?.code === 'GATE_REFUSED'
        ? 'bindings_changed'
        : typed?.code === 'DISK_FULL'
          ? 'disk_full'
          : typed !== null && isServiceFailure(typed)
            ? 'service_failed'
            : 'fault';
    const message = error instanceof Error ? error.message : String(error);
    const cause = typed ?? new BoundbookError('INTERNAL', `internal fault: ${message}`, { cause: error });
    this.#setting.stop.request({ reason, detail: message, error: cause }, 0);
  }

  #total(): number {
    let total = 0;
    for (const count of this.#starts.values()) total += count;
    return total;
  }
}

function isServiceFailure(error: unknown): boolean {
  return (
    error instanceof BoundbookError && (error.code === 'SERVICE_FAILED' || error.code === 'PORT_NOT_OWNED')
  );
}

function tooOften(model: string, restarts: number): BoundbookError {
  return new BoundbookError(
    'SERVICE_FAILED',
    `the service for ${model} died more often than the ${restarts} restarts that the protocol allows`,
    { hint: 'Its output lies in the work folder of the ledger. When the cause is found, run again.' },
  );
}
