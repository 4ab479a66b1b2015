import { execFile } from 'node:child_process';
import { BoundbookError, systemCode } from '../core/errors.js';

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT = 4_000_000;

export interface OpensslResult {
  readonly ok: boolean;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/**
 * Runs the openssl program: no shell, no configuration file of the host, nothing of our environment but the path.
 *
 * @throws {BoundbookError} OPENSSL_UNAVAILABLE when it is missing, cannot run or does not end.
 */
export function runOpenssl(command: string, args: readonly string[]): Promise<OpensslResult> {
  const environment = { PATH: process.env.PATH ?? '', LC_ALL: 'C', OPENSSL_CONF: '/dev/null' };
  const options = {
    env: environment,
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT,
    encoding: 'buffer' as const,
  };
  return new Promise((resolve, reject) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      const text = stderr.toString('utf8').slice(0, 4000);
      if (error === null) resolve({ ok: true, stdout, stderr: text });
      else if (typeof error.code === 'number') resolve({ ok: false, stdout, stderr: text });
      else
        reject(
          unavailable(command, `it does not run (${systemCode(error) ?? error.signal ?? 'unknown'})`, error),
        );
    }).stdin?.end();
  });
}

/**
 * The version line of openssl; its `ts` verb is needed as OpenSSL has it since 1.1.1.
 *
 * @throws {BoundbookError} OPENSSL_UNAVAILABLE when it is missing, or another or older program.
 */
export async function requireOpenssl(command: string): Promise<string> {
  const { stdout } = await runOpenssl(command, ['version']);
  const version = stdout.toString('utf8').trim().slice(0, 200);
  if (!/^OpenSSL (1\.1\.1|[3-9]\.|[1-9][0-9])/.test(version)) {
    throw unavailable(command, `it is ${JSON.stringify(version)}, not OpenSSL 1.1.1 or later`);
  }
  return version;
}

function unavailable(command: string, reason: string, cause?: unknown): BoundbookError {
  return new BoundbookError(
    'OPENSSL_UNAVAILABLE',
    `the program "${command}" is needed for time stamps: ${reason}`,
    {
      hint: 'Install OpenSSL (Debian: apt install openssl), or leave time stamps unchecked: the audit says so then.',
      ...(cause === undefined ? {} : { cause }),
    },
  );
}
