import type { Journal } from './journal.js';

/**
 * Leaves a sign of life in the ledger when nothing else did, so that the time at which a session worked in silence can be
 * told from the time at which its host slept or was stopped (B8).
 */
export class Heartbeat {
  readonly #timer: NodeJS.Timeout;
  #writing: Promise<void> = Promise.resolve();

  /** @param seconds how often an entry is promised; it is looked for twice as often */
  constructor(journal: Journal, session: string, seconds: number, fault: (error: unknown) => void) {
    const last = () => journal.fold.sessions.get(session)?.lastAt;
    let before = last();
    this.#timer = setInterval(() => {
      const now = last();
      if (now === before) this.#writing = journal.append([{ type: 'session.alive', session }]).catch(fault);
      before = now;
    }, seconds * 500);
    this.#timer.unref();
  }

  /** Resolves when no sign is under way any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
  }
}
