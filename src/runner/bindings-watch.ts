import { readError } from '../core/files.js';
import { gateError } from '../gate/refusal.js';
import { changedSince, type WatchedBinding } from '../gate/watch.js';
import type { StopSwitch } from './stop.js';

/**
 * Looks every few seconds whether a bound file was touched since the gate (F-33), and ends the session when one was:
 * what is in flight is cut, because nobody can say what it ran on.
 */
export class BindingsWatch {
  readonly #watched: readonly WatchedBinding[];
  readonly #stop: StopSwitch;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;
  #lastGood = new Date().toISOString();

  constructor(watched: readonly WatchedBinding[], stop: StopSwitch, everyMs: number) {
    this.#watched = watched;
    this.#stop = stop;
    this.#everyMs = everyMs;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), this.#everyMs);
    this.#timer.unref();
  }

  /** Looks now. Never throws. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const time = new Date().toISOString();
    const changes = await changedSince(this.#watched).catch((error: unknown) => {
      const typed = readError('a bound file', error);
      this.#stop.request({ reason: 'fault', detail: typed.message, error: typed }, 0);
      return null;
    });
    if (changes === null) return;
    if (changes.length === 0) {
      this.#lastGood = time;
      return;
    }
    const [first] = changes;
    const more = changes.length === 1 ? '' : ` and ${changes.length - 1} more`;
    const detail = `${first?.binding}: ${first?.path} ${first?.reason}${more}; last found untouched at ${this.#lastGood}`;
    const error = gateError('the manifest', changes);
    this.#stop.request({ reason: 'bindings_changed', detail, error }, 0);
  }
}
