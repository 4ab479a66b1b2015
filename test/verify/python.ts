import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The second verifier, and the driver that lets tests call its functions. */
export const VERIFIER = fileURLToPath(new URL('../../verify/boundbook_verify.py', import.meta.url));
const DRIVER = fileURLToPath(new URL('driver.py', import.meta.url));

const probe = spawnSync('python3', ['-c', 'import sys; print(sys.version_info >= (3, 9))'], {
  encoding: 'utf8',
});

/** False where no Python 3.9 or later is on the path; the tests of the second verifier are skipped there. */
export const hasPython = probe.status === 0 && probe.stdout.trim() === 'True';

export const NO_PYTHON = 'needs python3, version 3.9 or later, on the path';

export type Answer = { readonly value?: unknown; readonly refused?: string };

/** Runs Python with arguments; a test fails when it does not answer in time. */
export function python(
  args: readonly string[],
  input = '',
): { status: number | null; stdout: string; stderr: string } {
  const run = spawnSync('python3', ['-B', ...args], {
    encoding: 'utf8',
    input,
    timeout: 50_000,
    maxBuffer: 1 << 28,
  });
  return { status: run.status, stdout: run.stdout, stderr: run.stderr };
}

/** Calls functions of the verifier, one answer for each call. */
export function call(
  calls: readonly (readonly [name: string, args: readonly unknown[]])[],
): readonly Answer[] {
  const run = python([DRIVER], JSON.stringify(calls));
  if (run.status !== 0) throw new Error(run.stderr);
  return JSON.parse(run.stdout) as Answer[];
}

/** One call that has to be accepted. */
export function value(name: string, ...args: readonly unknown[]): unknown {
  const [answer] = call([[name, args]]);
  if (answer?.refused !== undefined) throw new Error(answer.refused);
  return answer?.value;
}

export const bytes = (data: string | Uint8Array): { hex: string } => ({
  hex: Buffer.from(data).toString('hex'),
});
