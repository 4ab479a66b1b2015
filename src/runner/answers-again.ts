import { setTimeout } from 'node:timers/promises';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import type { Served, Waiting } from './served.js';

const PROBE_MS = 10_000;
const FIRST_POLL_MS = 50;
const LAST_POLL_MS = 2000;
/** How long after a broken connection the end of the service's process is waited for. */
const DEATH_MS = 250;

/**
 * Asks the ready path of a service that lives until it answers with 2xx, the service has ended, the time that it has to
 * become ready is over, or the signal comes.
 *
 * @returns false: it lives, had its time, and does not answer
 */
export async function answersAgain(
  service: Served,
  { path, timeout_s }: OpenaiRunner['service']['ready'],
  { signal, onSilence }: Waiting,
): Promise<boolean> {
  const end = performance.now() + timeout_s * 1000;
  for (let wait = FIRST_POLL_MS; ; wait = Math.min(LAST_POLL_MS, wait * 1.5)) {
    const left = () => end - performance.now();
    if (await service.answers(path, Math.max(1000, Math.min(PROBE_MS, left())), signal)) return true;
    const isFirst = wait === FIRST_POLL_MS;
    if (signal.aborted || !(await service.isAlive(isFirst ? DEATH_MS : 0))) return true;
    if (isFirst) onSilence();
    if (left() <= 0) return false;
    await Promise.race([
      setTimeout(Math.max(0, Math.min(wait, left())), undefined, { signal }).catch(() => undefined),
      service.exit,
    ]);
  }
}
