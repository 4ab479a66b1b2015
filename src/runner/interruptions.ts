import { BoundbookError } from '../core/errors.js';
import type { StopSwitch } from './stop.js';

export interface InterruptionsSetting {
  /** Stops the session in order: what is in flight may end. */
  readonly signal: AbortSignal;
  /** Stops it at once: what is in flight is cut. */
  readonly force?: AbortSignal | undefined;
  readonly stop: StopSwitch;
  /** How long an attempt can take, in seconds. */
  readonly limitSeconds: () => number;
  /** Attempts that are under way. */
  readonly inFlight: () => number;
  readonly say: (line: string) => void;
}

/** Ctrl-C and its like: the first lets what is in flight end, the second abandons it. */
export class Interruptions {
  readonly #setting: InterruptionsSetting;
  readonly #onSignal = () => this.#pause();
  readonly #onForce = () => this.#abandon();

  constructor(setting: InterruptionsSetting) {
    this.#setting = setting;
  }

  /** Takes heed of what has come already, too. */
  listen(): void {
    const { signal, force } = this.#setting;
    signal.addEventListener('abort', this.#onSignal);
    force?.addEventListener('abort', this.#onForce);
    if (signal.aborted) this.#pause();
    if (force?.aborted === true) this.#abandon();
  }

  close(): void {
    const { signal, force } = this.#setting;
    signal.removeEventListener('abort', this.#onSignal);
    force?.removeEventListener('abort', this.#onForce);
  }

  #pause(): void {
    const { signal, stop, limitSeconds, say } = this.#setting;
    const inFlight = this.#setting.inFlight();
    const seconds = inFlight === 0 ? 0 : limitSeconds();
    const name = typeof signal.reason === 'string' ? signal.reason : 'a signal';
    say(
      inFlight === 0
        ? 'stopping: no attempt is in flight'
        : `stopping: waiting up to ${seconds} s for ${countedAttempts(inFlight)} in flight (again to abandon now)`,
    );
    const error = new BoundbookError('STOPPED', `stopped by ${name} with work left`, {
      hint: 'Run the same command again to go on.',
    });
    stop.request({ reason: 'signal', detail: name, error }, seconds * 1000);
  }

  #abandon(): void {
    const { stop, say } = this.#setting;
    const inFlight = this.#setting.inFlight();
    if (inFlight > 0 && !stop.abandoned.aborted) say(`abandoning ${countedAttempts(inFlight)} in flight`);
    if (!stop.requested) this.#pause();
    stop.abandon();
  }
}

export function countedAttempts(count: number): string {
  return count === 1 ? '1 attempt' : `${count} attempts`;
}
