import type { Pool } from 'undici';
import { createPool, type HttpResult, send } from './adapters/http.js';
import { describedBytes, modelsIn, SELF_DESCRIPTION } from './self-description.js';

const DESCRIPTION_BYTES = 2 ** 20;

/** Asks a service about itself, over connections that no attempt waits for or is waited for on. Never throws. */
export class ServiceClient {
  readonly #pool: Pool;

  constructor(origin: string, key: string | null = null) {
    this.#pool = createPool(origin, SELF_DESCRIPTION.length, key);
  }

  async close(): Promise<void> {
    await this.#pool.destroy().catch(() => undefined);
  }

  get(path: string, timeoutMs: number, signal: AbortSignal): Promise<HttpResult> {
    return send(this.#pool, {
      method: 'GET',
      path,
      body: null,
      timeoutMs,
      maxBytes: DESCRIPTION_BYTES,
      signal,
    });
  }

  /** Whether a path answers with 2xx. */
  async answers(path: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const result = await this.get(path, timeoutMs, signal);
    return result.kind === 'answer' && result.status >= 200 && result.status <= 299;
  }

  /** What the service says of itself, as canonical JSON by path. */
  async describe(timeoutMs: number, signal: AbortSignal): Promise<Buffer> {
    const answers = await Promise.all(
      SELF_DESCRIPTION.map(async (path) => {
        const result = await this.get(path, timeoutMs, signal);
        return [path, result.kind === 'answer' && result.status === 200 ? result.body : null] as const;
      }),
    );
    return describedBytes(Object.fromEntries(answers));
  }
}

/** The models that a service lists in place of the one that is bound, in words; null when it lists that, or no list. */
export function otherModels(description: Buffer, model: string): string | null {
  const names = modelsIn(description);
  if (names === null || names.includes(model)) return null;
  return (
    names
      .slice(0, 5)
      .map((name) => JSON.stringify(name).slice(0, 100))
      .join(', ') || 'no model'
  );
}
