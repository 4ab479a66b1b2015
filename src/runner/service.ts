import { join } from 'node:path';
import type { Pool } from 'undici';
import { BoundbookError } from '../core/errors.js';
import type { ManagedService } from '../protocol/schema/services.js';
import { createPool } from './adapters/http.js';
import { fillArgv, type SourcePaths } from './argv.js';
import { CappedFile } from './capped-file.js';
import { freePort, portOwner } from './ports.js';
import { type Exit, ProcessGroup } from './process-group.js';
import { readStat } from './process-identity.js';
import type { Served } from './served.js';
import { otherModels, ServiceClient } from './service-client.js';
import type { Watchdog } from './watchdog.js';

export interface ServiceSpec {
  readonly config: ManagedService;
  /** `M@42`, or `base`: what requests call the model. */
  readonly model: string;
  /** Exactly the paths that the gate verified. */
  readonly weights: string;
  readonly tokenizer: string | null;
  readonly sources: SourcePaths;
  readonly root: string;
  /** Where the service's output goes. */
  readonly folder: string;
  /** File-name stem of the output, and end of the process mark. */
  readonly label: string;
  readonly mark: string;
  readonly connections: number;
  readonly watchdog: Watchdog | null;
  readonly signal: AbortSignal;
}

const HOST = '127.0.0.1';
const LOG_BYTES = 16 * 2 ** 20;
const PROBE_MS = 10_000;
const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 250;
/** How long a service that is about to be stopped has to describe itself. */
const FAREWELL_MS = 5000;

/** One started server under test: its process group, its port, what it says of itself. */
export class Service implements Served {
  readonly #spec: ServiceSpec;
  readonly #group: ProcessGroup;
  readonly #logs: readonly CappedFile[];
  readonly #spawned = performance.now();
  #endedAt: number | null = null;
  #diedByItself = false;
  #asked = false;
  #givenUp = false;
  readonly #client: ServiceClient;
  readonly isExternal = false;
  readonly port: number;
  readonly pool: Pool;
  /** Seconds from spawn to ready. */
  readySeconds = 0;
  /** What it says of itself, as canonical JSON. */
  effective: Buffer = Buffer.alloc(0);

  private constructor(spec: ServiceSpec, port: number) {
    this.#spec = spec;
    this.port = port;
    const [out, err] = ['stdout', 'stderr'].map(
      (name) => new CappedFile(join(spec.folder, `${spec.label}.${name}`), LOG_BYTES),
    ) as [CappedFile, CappedFile];
    this.#logs = [out, err];
    const values = {
      weights: spec.weights,
      tokenizer: spec.tokenizer ?? undefined,
      host: HOST,
      port: String(port),
      model: spec.model,
    };
    const argv = fillArgv(spec.config.argv, values, spec.sources);
    const { mark, root: cwd, config } = spec;
    const process = { argv, cwd, env: config.env ?? [], mark, stdout: out.write, stderr: err.write };
    this.#group = new ProcessGroup(process, spec.watchdog);
    void this.#group.exit.then(() => {
      this.#endedAt = performance.now();
      this.#diedByItself = !this.#asked;
    });
    this.pool = createPool(`http://${HOST}:${port}`, spec.connections);
    this.#client = new ServiceClient(`http://${HOST}:${port}`);
  }

  /** Starts the program of a service on a free port. @throws {BoundbookError} SERVICE_FAILED without a free port. */
  static async launch(spec: ServiceSpec): Promise<Service> {
    return new Service(spec, await freePort(HOST));
  }

  /**
   * Waits until the service is ready and asks what it says of itself. The port must belong to the started process
   * group before anything is sent to it, and still when it is ready.
   *
   * @throws {BoundbookError} SERVICE_FAILED or PORT_NOT_OWNED, STOPPED by the signal; the caller stops it then.
   */
  async ready(): Promise<void> {
    await this.#becomeReady();
    this.readySeconds = this.seconds;
    this.effective = await this.#client.describe(this.#patience(), this.#spec.signal);
    const others = otherModels(this.effective, this.model);
    if (others !== null) throw this.#failure(`it serves ${others}`);
  }

  get model(): string {
    return this.#spec.model;
  }

  get place(): string {
    return `${HOST}:${this.port} (pid ${this.pid})`;
  }

  get origin(): { readonly pid: number; readonly port: number } {
    return { pid: this.pid, port: this.port };
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

  get pid(): number {
    return this.#group.pid;
  }

  get exit(): Promise<Exit> {
    return this.#group.exit;
  }

  /** Seconds since it was spawned; when it has ended, until then. */
  get seconds(): number {
    return Math.round((this.#endedAt ?? performance.now()) - this.#spawned) / 1000;
  }

  /** Whether it ended before anybody asked it to. */
  get diedByItself(): boolean {
    return this.#diedByItself;
  }

  async isAlive(waitMs: number): Promise<boolean> {
    const end = performance.now() + waitMs;
    while (this.#lives() && performance.now() < end) await pause(FIRST_POLL_MS);
    return this.#lives();
  }

  /** SIGTERM, then SIGKILL of the whole group after the grace time; resolves when nothing of it is left. */
  async stop(): Promise<Exit> {
    this.#asked = true;
    const [exit] = await Promise.all([
      this.#group.stop(this.#spec.config.stop_grace_s * 1000),
      this.pool.destroy().catch(() => undefined),
      this.#client.close(),
    ]);
    for (const log of this.#logs) log.close();
    return exit;
  }

  #lives(): boolean {
    if (this.#givenUp || this.#group.ended !== null || this.pid === 0) return false;
    const stat = readStat(this.pid);
    return stat !== null && stat.state !== 'Z' && stat.state !== 'X';
  }

  async #becomeReady(): Promise<void> {
    const { ready } = this.#spec.config;
    let wait = FIRST_POLL_MS;
    for (;;) {
      if (this.#spec.signal.aborted) throw new BoundbookError('STOPPED', 'stopped while a service started');
      if (this.#group.ended !== null || this.pid === 0) throw this.#failure(`it ${ended(await this.exit)}`);
      if (this.#owned() && (await this.answers(ready.path, this.#patience(), this.#spec.signal))) break;
      if (this.seconds > ready.timeout_s) {
        throw this.#failure(`${ready.path} did not answer with 2xx within ${ready.timeout_s} s`);
      }
      await Promise.race([pause(wait), this.exit]);
      wait = Math.min(LAST_POLL_MS, wait * 1.25);
    }
    if (!this.#owned()) throw this.#failure('it stopped listening while it was asked whether it is ready');
  }

  /** Whether the started group listens on the port. @throws {BoundbookError} PORT_NOT_OWNED when others do. */
  #owned(): boolean {
    const owner = portOwner(this.port, this.pid);
    if (owner !== 'stranger') return owner === 'family';
    throw new BoundbookError(
      'PORT_NOT_OWNED',
      `port ${this.port} is served by a process that was not started for ${this.#spec.model}`,
      {
        hint: 'Another server took the port, or the service leaves its process group. Its answers would say nothing about the bound weights.',
        evidence: { port: this.port, started_pid: this.pid },
      },
    );
  }

  /** How long one question may take while it becomes ready, in milliseconds. */
  #patience(): number {
    const left = this.#spec.config.ready.timeout_s * 1000 + 1000 - this.seconds * 1000;
    return Math.max(1000, Math.min(PROBE_MS, left));
  }

  #failure(reason: string): BoundbookError {
    const [out, err] = this.#logs;
    const tail = err?.tail() || out?.tail() || '';
    return new BoundbookError(
      'SERVICE_FAILED',
      `the service for ${this.#spec.model} did not come up: ${reason}`,
      {
        hint: `Its output lies in ${this.#spec.folder}/${this.#spec.label}.stderr${tail === '' ? '' : `, which ends:\n${tail}`}`,
        evidence: { model: this.#spec.model, pid: this.pid, port: this.port },
      },
    );
  }
}

/** How a process ended, as part of a sentence. */
export function ended(exit: Exit): string {
  if (exit.spawnError !== null) return `could not be started (${exit.spawnError})`;
  return exit.signal === null ? `ended with exit status ${exit.exit_status}` : `was ended by ${exit.signal}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
