import type { OpenaiAdapter } from './adapters/openai.js';
import { HeldService, type HoldingSetting } from './held-service.js';
import type { StopReason } from './service-record.js';

export interface KeeperSetting extends HoldingSetting {
  readonly adapter: OpenaiAdapter;
  /** How many services may be up at once. */
  readonly maxUp: number;
}

/**
 * Sees to it that the service of the model that the plan's order has reached is up, and that no more are up than the
 * protocol allows: the one whose last use lies back the furthest is ended first.
 */
export class ServiceKeeper {
  readonly #setting: KeeperSetting;
  /** By model, the one that was used last at the end. */
  readonly #held = new Map<string, HeldService>();
  #current: HeldService | null = null;

  constructor(setting: KeeperSetting) {
    this.#setting = setting;
    setting.adapter.onBrokenConnection = (endpoint) => this.#current?.connectionBroke(endpoint);
    setting.adapter.onOtherModel = (model, said) => this.#held.get(model)?.answeredAs(said);
    setting.adapter.onFingerprints = (model, said) => this.#held.get(model)?.answeredFrom(said);
  }

  /** Name of the present start of the service in use. */
  get current(): string | null {
    return this.#current?.name ?? null;
  }

  /** Makes a model's service the one that is in use. False when it could not be, which has stopped the session. */
  async use(model: string): Promise<boolean> {
    if (this.#current?.model === model) return this.#current.open();
    this.#current?.rest();
    this.#current = null;
    const held = this.#held.get(model) ?? new HeldService(model, this.#setting, () => this.#point());
    this.#held.delete(model);
    if (!held.isOpen) await this.#makeRoom();
    this.#held.set(model, held);
    this.#current = held;
    this.#point();
    return held.open();
  }

  /** Waits until the service in use is up; a dead one is being started again. */
  async isUp(): Promise<boolean> {
    return this.#current === null ? false : this.#current.isUp();
  }

  /** Ends all services. Safe to call at any time, and again. */
  async close(reason: StopReason): Promise<void> {
    this.#current = null;
    const closed = await Promise.allSettled([...this.#held.values()].map((held) => held.close(reason)));
    this.#setting.adapter.endpoint = null;
    for (const one of closed) if (one.status === 'rejected') throw one.reason;
  }

  async #makeRoom(): Promise<void> {
    for (const held of this.#held.values()) {
      if (this.#open < this.#setting.maxUp) return;
      if (held.isOpen) await held.close('done');
    }
  }

  get #open(): number {
    return [...this.#held.values()].filter(({ isOpen }) => isOpen).length;
  }

  /** Attempts ask the service in use; one that has died until the next is up, so that they see it dead. */
  #point(): void {
    const service = this.#current?.service ?? null;
    if (service !== null) this.#setting.adapter.endpoint = service;
  }
}
