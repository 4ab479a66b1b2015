import type { Endpoint } from './adapters/openai.js';
import type { Exit } from './process-group.js';

/** The waiting for a service that was there before. */
export interface Waiting {
  readonly signal: AbortSignal;
  /** Called once when it does not answer at the first question. */
  readonly onSilence: () => void;
}

/** A server under test while it is up, whoever started it. */
export interface Served extends Endpoint {
  readonly model: string;
  /** Where it is, for people. */
  readonly place: string;
  /** How it came to be there, as the entry says by which it is up. */
  readonly origin: { readonly pid: number; readonly port: number } | { readonly address: string };
  /** Seconds until it was ready. */
  readonly readySeconds: number;
  /** What it said of itself when it was ready, as canonical JSON. */
  readonly effective: Buffer;
  /** Seconds until now, or until its end. */
  readonly seconds: number;
  /** Whether it ended before anybody asked it to. */
  readonly diedByItself: boolean;
  /** Resolves when nothing of it is left to be used. */
  readonly exit: Promise<Exit>;
  /** Whether somebody else started it, so that nothing shows when it has become another server. */
  readonly isExternal: boolean;
  /**
   * Waits until it is ready to be used; an external one may be waited for again.
   *
   * @throws {BoundbookError} when it does not become ready, or is not what is bound; STOPPED by a signal.
   */
  ready(again?: Waiting): Promise<void>;
  /** Whether a path answers with 2xx. */
  answers(path: string, timeoutMs: number, signal: AbortSignal): Promise<boolean>;
  /** What it says of itself now. */
  describe(signal: AbortSignal): Promise<Buffer>;
  /** From here on it counts as dead, whatever its process does. */
  giveUp(): void;
  /** Ends it, or lets go of it. */
  stop(): Promise<Exit>;
}
