import type { Attribution } from '../attempts/rules.js';
import type { FailureSignals } from '../attempts/signals.js';

/**
 * Counts in a row, each up to the declared number: equal infrastructure failures (DESIGN §9), and attempts that waited for
 * one service in vain. All attempts that die with one service are one event: they fail together, however many were in
 * flight.
 */
export class Breaker {
  readonly #limit: number;
  #cause: string | null = null;
  #count = 0;
  #lastDeath: string | null = null;
  /** The service that is silent, and for how many attempts in a row it is. */
  #silent: { readonly service: string; readonly attempts: number } | null = null;

  /** @param limit how many pause the run */
  constructor(limit: number) {
    this.#limit = limit;
  }

  succeeded(): void {
    this.#cause = null;
    this.#count = 0;
    this.#silent = null;
  }

  /**
   * @param service the start of the service that the attempt met, when there is one
   * @returns whether the breaker is open now
   */
  failed(signals: FailureSignals, attribution: Attribution, service: string | null): boolean {
    const isSilence = service !== null && isSilent(signals);
    if (isSilence) {
      const before = this.#silent?.service === service ? this.#silent.attempts : 0;
      this.#silent = { service, attempts: before + 1 };
    } else if (isAnswer(signals)) this.#silent = null;
    if (attribution === 'infrastructure') this.#infrastructure(signals, service);
    // That nothing came says nothing against an infrastructure that fails.
    else if (!isSilence) {
      this.#cause = null;
      this.#count = 0;
    }
    return this.isOpen;
  }

  #infrastructure(signals: FailureSignals, service: string | null): void {
    if (signals.service_alive === false && service !== null) {
      if (this.#lastDeath === service) return;
      this.#lastDeath = service;
    }
    this.#count = this.#cause === signals.cause ? this.#count + 1 : 1;
    this.#cause = signals.cause;
  }

  get isOpen(): boolean {
    return this.#count >= this.#limit || this.#silence >= this.#limit;
  }

  get #silence(): number {
    return this.#silent?.attempts ?? 0;
  }

  /** For the message: how many of what. */
  describe(): string {
    return this.#count >= this.#limit || this.#silent === null
      ? `${this.#count} infrastructure failures in a row, each "${this.#cause ?? ''}"`
      : `${this.#silence} attempts in a row at ${this.#silent.service} reached their time limit or were turned away, and no answer came in between`;
  }
}

/** Statuses by which a server says that it takes no question of this client, whatever the question: a key, a path, a name. */
const TURNED_AWAY: ReadonlySet<number | null> = new Set([401, 403, 404]);

/**
 * The time was over before anything of an answer was there, or every question is turned away. Whose fault a rule calls that
 * is no matter.
 */
function isSilent({ cause, first_token, http_status }: FailureSignals): boolean {
  if (cause === 'http_status') return TURNED_AWAY.has(http_status);
  return cause === 'time_limit' && first_token !== true;
}

/** Whether a failure shows that the service generates all the same. An error may be its front end's. */
function isAnswer({ stage, cause, http_status, first_token }: FailureSignals): boolean {
  return stage === 'grade' || first_token === true || (http_status === 200 && cause !== 'body_error');
}
