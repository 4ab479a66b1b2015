import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atMost, type Figure } from './figure.js';
import type { Growth } from './memory-turn.js';

/** `BOUNDBOOK_BENCH_ATTEMPTS` makes it smaller. */
const ATTEMPTS = Number(process.env.BOUNDBOOK_BENCH_ATTEMPTS ?? 100_000);

/**
 * How much more memory `run` holds after 100,000 attempts than after a tenth of them, all in one session. The session is
 * a process of its own, so that nothing else is counted.
 */
export async function memoryGrowthBench(): Promise<Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'boundbook-memory-'));
  try {
    const { attempts, early, late, cpuMs, seconds } = await turn(root);
    const mb = (bytes: number): string => (bytes / 1e6).toFixed(0);
    process.stderr.write(
      `${attempts} attempts in ${seconds.toFixed(0)} s, ${(cpuMs / attempts).toFixed(2)} ms of processors each: ` +
        `${mb(early.resident)} MB resident (${mb(early.heap)} MB heap) after ${early.attempts}, ` +
        `${mb(late.resident)} MB (${mb(late.heap)} MB) after ${late.attempts}\n`,
    );
    const growth = (late.resident - early.resident) / 1e6;
    return [
      atMost(`resident memory that run gains from ${ATTEMPTS / 10} to ${ATTEMPTS} attempts, MB`, growth, 50),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function turn(root: string): Promise<Growth> {
  const program = fileURLToPath(new URL('memory-turn.js', import.meta.url));
  return new Promise((resolve, reject) => {
    const argv = ['--expose-gc', program, root, String(ATTEMPTS)];
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
    child.on('error', reject);
    child.on('close', (status) => {
      if (status === 0) resolve(JSON.parse(text) as Growth);
      else reject(new Error(`the session ended with ${status}`));
    });
  });
}
