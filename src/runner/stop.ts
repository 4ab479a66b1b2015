import type { BoundbookError } from '../core/errors.js';
import type { DraftOf } from '../ledger/entries/entry.js';

export type PauseReason = DraftOf<'run.paused'>['reason'];

/** Why a session starts nothing more. */
export interface StopCause {
  readonly reason: PauseReason;
  readonly detail: string | null;
  /** What the command ends with; null for an end that was asked for. */
  readonly error: BoundbookError | null;
}

/** The longest time that a timer of Node takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The one switch that ends a session. After {@link request} nothing new is started; what is in flight may end until
 * {@link abandon}, after which it is cut. The first fault is the cause that counts, or else the first cause.
 */
export class StopSwitch {
  readonly #abandon = new AbortController();
  readonly #listeners: (() => void)[] = [];
  #cause: StopCause | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** When the timer fires, on the steady clock. */
  #deadline = Number.POSITIVE_INFINITY;

  get cause(): StopCause | null {
    return this.#cause;
  }

  get requested(): boolean {
    return this.#cause !== null;
  }

  /** Aborts when what is in flight must be cut. */
  get abandoned(): AbortSignal {
    return this.#abandon.signal;
  }

  /** @param graceMs how long what is in flight may go on; null: until it ends by itself */
  request(cause: StopCause, graceMs: number | null): void {
    if (graceMs !== null) this.#abandonIn(graceMs);
    if (this.#cause !== null) {
      // Found out at the end of a session that did what it was asked to: that is why it ends.
      if (this.#cause.error === null && cause.error !== null) this.#cause = cause;
      return;
    }
    this.#cause = cause;
    for (const listener of this.#listeners) listener();
  }

  abandon(): void {
    this.#abandon.abort();
  }

  /** The earliest of all deadlines counts. */
  #abandonIn(graceMs: number): void {
    const deadline = performance.now() + graceMs;
    if (deadline >= this.#deadline) return;
    this.#deadline = deadline;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abandon(), Math.min(graceMs, MAX_TIMER_MS));
    this.#timer.unref();
  }

  onRequest(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Call it when nothing is in flight any more. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
