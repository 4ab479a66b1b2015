import { setTimeout } from 'node:timers/promises';
import type { Pool } from 'undici';
import { BoundbookError } from '../core/errors.js';
import type { ExternalService as Setting } from '../protocol/schema/services.js';
import { createPool } from './adapters/http.js';
import { MIN_KEY_LENGTH } from './adapters/key-mask.js';
import type { Exit } from './process-group.js';
import type { Served, Waiting } from './served.js';
import { otherModels, ServiceClient } from './service-client.js';

export interface ExternalSpec {
  readonly config: Setting;
  readonly model: string;
  readonly connections: number;
  /** The environment in which the key is looked up. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const PROBE_MS = 10_000;
const FAREWELL_MS = 5000;
const FIRST_POLL_MS = 100;
const LAST_POLL_MS = 2000;
/** For how long one look at the service answers for all attempts that ask. */
const LOOK_MS = 500;
const LET_GO: Exit = { exit_status: null, signal: null, spawnError: null };

/**
 * A service that somebody else started (P10): nothing is known of its process, its port or its weights. That it lives
 * means that its ready path answers.
 */
export class ExternalService implements Served {
  readonly #spec: ExternalSpec;
  readonly #client: ServiceClient;
  readonly #address: string;
  readonly #gone: { readonly promise: Promise<Exit>; readonly resolve: (exit: Exit) => void };
  #began = performance.now();
  #endedAt: number | null = null;
  #givenUp = false;
  /** Whether it is waited for, and has not answered yet. */
  #silent = false;
  #look: { readonly at: number; readonly lives: Promise<boolean> } | null = null;
  readonly pool: Pool;
  readonly isExternal = true;
  readonly diedByItself = false;
  readySeconds = 0;
  effective: Buffer = Buffer.alloc(0);

  /** @throws {BoundbookError} SERVICE_FAILED when the environment has no key. */
  constructor(spec: ExternalSpec) {
    this.#spec = spec;
    this.#address = addressOf(spec);
    const key = keyOf(this.#address, spec);
    this.pool = createPool(this.#address, spec.connections, key);
    this.#client = new ServiceClient(this.#address, key);
    let resolve: (exit: Exit) => void = () => undefined;
    const promise = new Promise<Exit>((settle) => {
      resolve = settle;
    });
    this.#gone = { promise, resolve };
  }

  get model(): string {
    return this.#spec.model;
  }

  get place(): string {
    return `${this.#address} (not started by the gate)`;
  }

  get origin(): { readonly address: string } {
    return { address: this.#address };
  }

  get exit(): Promise<Exit> {
    return this.#gone.promise;
  }

  get seconds(): number {
    return Math.round((this.#endedAt ?? performance.now()) - this.#began) / 1000;
  }

  async ready(again?: Waiting): Promise<void> {
    const { signal, model } = this.#spec;
    this.#began = performance.now();
    this.#look = null;
    await this.#answered(again === undefined ? signal : AbortSignal.any([signal, again.signal]), again);
    this.readySeconds = this.seconds;
    this.effective = await this.#client.describe(PROBE_MS, signal);
    const others = otherModels(this.effective, model);
    if (others !== null) throw this.#failure(`it serves ${others}`);
  }

  async #answered(signal: AbortSignal, again: Waiting | undefined): Promise<void> {
    const { path, timeout_s } = this.#spec.config.ready;
    for (let wait = FIRST_POLL_MS; ; wait = Math.min(LAST_POLL_MS, wait * 1.5)) {
      const left = () => timeout_s * 1000 - (performance.now() - this.#began);
      const well = await this.answers(path, Math.max(1000, Math.min(PROBE_MS, left())), signal);
      if (signal.aborted) throw new BoundbookError('STOPPED', 'stopped while a service was waited for');
      if (well) break;
      if (!this.#silent) again?.onSilence();
      this.#silent = true;
      if (left() <= 0) throw this.#failure(`${path} did not answer with 2xx within ${timeout_s} s`);
      const ms = Math.max(0, Math.min(wait, left()));
      await setTimeout(ms, undefined, { signal }).catch(() => undefined);
    }
    this.#silent = false;
  }

  answers(path: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    return this.#client.answers(path, timeoutMs, signal);
  }

  describe(signal: AbortSignal): Promise<Buffer> {
    return this.#client.describe(FAREWELL_MS, signal);
  }

  get isGivenUp(): boolean {
    return this.#givenUp;
  }

  giveUp(): void {
    this.#givenUp = true;
  }

  async isAlive(waitMs: number): Promise<boolean> {
    if (this.#isGone || this.#silent) return false;
    if (waitMs <= 0) return true;
    const now = performance.now();
    if (this.#look === null || now - this.#look.at > LOOK_MS) {
      const lives = this.answers(this.#spec.config.ready.path, PROBE_MS, this.#spec.signal);
      this.#look = { at: now, lives };
    }
    return (await this.#look.lives) && !this.#isGone;
  }

  get #isGone(): boolean {
    return this.#givenUp || this.#endedAt !== null;
  }

  async stop(): Promise<Exit> {
    this.#endedAt ??= performance.now();
    await Promise.all([this.pool.destroy().catch(() => undefined), this.#client.close()]);
    this.#gone.resolve(LET_GO);
    return LET_GO;
  }

  #failure(reason: string): BoundbookError {
    return new BoundbookError(
      'SERVICE_FAILED',
      `the service for ${this.#spec.model} at ${this.#address} cannot be used: ${reason}`,
      {
        hint: 'It was started by somebody else: look at its own log. Its name of the model must be the bound one.',
        evidence: { model: this.#spec.model, origin: this.#address },
      },
    );
  }
}

function addressOf({ config, model }: ExternalSpec): string {
  const { origin } = config.external;
  const address = typeof origin === 'string' ? origin : origin[model];
  if (address === undefined) throw new BoundbookError('INTERNAL', `no address for ${model}`);
  return address;
}

/** The key, which answers are searched for; null when the protocol names none. */
function keyOf(address: string, { config, env }: ExternalSpec): string | null {
  const name = config.external.api_key_env;
  if (name === undefined) return null;
  const key = env[name];
  if (key === undefined || key === '' || /[^\x21-\x7e]/.test(key)) {
    throw new BoundbookError(
      'SERVICE_FAILED',
      `the environment variable ${name} holds no key for ${address}`,
      {
        hint: `Set ${name} to the key of the service and run again. It is sent as a bearer token and kept nowhere.`,
      },
    );
  }
  if (key.length >= MIN_KEY_LENGTH) return key;
  throw new BoundbookError(
    'SERVICE_FAILED',
    `the key in the environment variable ${name} has less than ${MIN_KEY_LENGTH} characters`,
    {
      hint: 'It is masked wherever the service gives it back, and a text so short stands in honest answers too. Give the service a longer key, or leave api_key_env out when it wants none.',
    },
  );
}
