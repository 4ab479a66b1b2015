import type { Attribution } from '../attempts/rules.js';
import type { FailureSignals } from '../attempts/signals.js';

/**
 * Counts equal infrastructure failures in a row (DESIGN §9). Any other end of an attempt breaks the row. All attempts
 * that die with one service are one event: they fail together, however many were in flight.
 */
export class Breaker {
  readonly #limit: number;
  #cause: string | null = null;
  #count = 0;
  #lastDeath: string | null = null;

  /** @param limit how many pause the run */
  constructor(limit: number) {
    this.#limit = limit;
  }

  succeeded(): void {
    this.#cause = null;
    this.#count = 0;
  }

  /**
   * @param service the start of the service that the attempt met, when there is one
   * @returns whether the breaker is open now
   */
  failed(signals: FailureSignals, attribution: Attribution, service: string | null): boolean {
    if (attribution !== 'infrastructure') {
      this.succeeded();
      return false;
    }
    if (signals.service_alive === false && service !== null) {
      if (this.#lastDeath === service) return this.isOpen;
      this.#lastDeath = service;
    }
    this.#count = this.#cause === signals.cause ? this.#count + 1 : 1;
    this.#cause = signals.cause;
    return this.isOpen;
  }

  get isOpen(): boolean {
    return this.#count >= this.#limit;
  }

  /** For the message: how many of what. */
  describe(): string {
    return `${this.#count} infrastructure failures in a row, each "${this.#cause ?? ''}"`;
  }
}
