import type { HealthSetting } from '../protocol/schema/services.js';
import type { Served } from './served.js';

/** Asks a service at intervals whether it is well, until it failed as often in a row as the protocol allows. */
export class HealthWatch {
  readonly #stop = new AbortController();

  /**
   * @param path asked when the protocol names none for health
   * @param onFailure called once, with the number of questions that it left unanswered
   */
  constructor(service: Served, health: HealthSetting, path: string, onFailure: (failures: number) => void) {
    void this.#watch(service, health, path, onFailure);
  }

  close(): void {
    this.#stop.abort();
  }

  async #watch(
    service: Served,
    { every_s, timeout_s, failures, path }: HealthSetting,
    readyPath: string,
    onFailure: (failures: number) => void,
  ): Promise<void> {
    const { signal } = this.#stop;
    for (let failed = 0; failed < failures; ) {
      await pause(every_s * 1000, signal);
      if (signal.aborted) return;
      const well = await service.answers(path ?? readyPath, timeout_s * 1000, signal);
      if (signal.aborted) return;
      failed = well ? 0 : failed + 1;
    }
    onFailure(failures);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    signal.addEventListener('abort', end);
  });
}
