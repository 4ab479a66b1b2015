import { BoundbookError } from '../core/errors.js';
import type { Account } from './accounts.js';

/** The columns that are asked of Slurm, in this order; others would carry names of users and machines. */
export const SACCT_COLUMNS = 'JobIDRaw,ElapsedRaw,AllocTRES';
export const MAX_ACCOUNT_BYTES = 1 << 20;
const COUNT = /^(0|[1-9]\d{0,9})$/;

/**
 * Reads what `sacct --parsable2 --format=JobIDRaw,ElapsedRaw,AllocTRES` says of whole jobs, by job. Lines of job steps
 * (`123.batch`) repeat what their job was given and are passed over. Devices are the `gres/gpu` of the allocation; where
 * only typed ones (`gres/gpu:a100`) are listed, their sum. A job without any has none.
 *
 * @see https://slurm.schedmd.com/sacct.html
 * @returns null where the bytes are not in that form
 */
export function readSacct(bytes: Buffer): readonly Account[] | null {
  if (bytes.length > MAX_ACCOUNT_BYTES) return null;
  const [header, ...lines] = bytes.toString('utf8').replace(/\n$/, '').split('\n');
  if (header !== SACCT_COLUMNS.replaceAll(',', '|')) return null;
  const accounts = new Map<string, Account>();
  for (const line of lines) {
    const [job = '', elapsed = '', tres, ...rest] = line.split('|');
    if (tres === undefined || rest.length > 0 || !COUNT.test(elapsed)) return null;
    if (job.includes('.')) continue;
    const gpus = devices(tres);
    if (!COUNT.test(job) || gpus === null || accounts.has(job)) return null;
    accounts.set(job, { job, seconds: Number(elapsed), gpus });
  }
  return accounts.size === 0 ? null : [...accounts.values()];
}

/** null where a count is none. */
function devices(tres: string): number | null {
  let whole: number | null = null;
  let typed = 0;
  for (const part of tres.split(',')) {
    const [name = '', ...rest] = part.split('=');
    const count = rest.join('=');
    if (name !== 'gres/gpu' && !name.startsWith('gres/gpu:')) continue;
    if (!COUNT.test(count)) return null;
    if (name === 'gres/gpu') whole = Number(count);
    else typed += Number(count);
  }
  return whole ?? typed;
}

/** @throws {BoundbookError} ACCOUNT_INVALID */
export function parseSacct(bytes: Buffer, path: string): readonly Account[] {
  const accounts = readSacct(bytes);
  if (accounts !== null) return accounts;
  throw new BoundbookError(
    'ACCOUNT_INVALID',
    `${path} does not hold an account of Slurm in the form that is read`,
    {
      hint: `Write it with sacct --jobs=ID --parsable2 --format=${SACCT_COLUMNS} > ${path}: one header line, and one line for each job.`,
    },
  );
}
