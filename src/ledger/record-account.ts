import { BoundbookError } from '../core/errors.js';
import type { Account } from './accounts.js';
import type { Book } from './book.js';
import type { DraftOf, EntryOf } from './entries/entry.js';
import { toObject } from './objects.js';
import { sessionSeconds } from './sessions.js';
import { parseSacct } from './slurm.js';
import type { LedgerStore } from './store.js';

/**
 * Records what Slurm says of the jobs that sessions of the ledger ran in (P21). Jobs of which no session was a part are
 * passed over; one that was recorded before with the same figures is not recorded again.
 *
 * @throws {BoundbookError} ACCOUNT_INVALID, also when no job is one of the ledger's; and as the store.
 */
export function recordAccount(
  book: Book<LedgerStore>,
  bytes: Buffer,
  path: string,
): readonly EntryOf<'account.recorded'>[] {
  const { sessions, accounts } = book.fold;
  const jobs = new Set([...sessions.all()].flatMap(({ host }) => host.slurm_job ?? []));
  const known = parseSacct(bytes, path).filter(({ job }) => jobs.has(job));
  if (known.length === 0) {
    throw new BoundbookError('ACCOUNT_INVALID', `${path} names no job that a session of this ledger ran in`, {
      hint:
        jobs.size === 0
          ? 'No session ran in a Slurm job: boundbook run takes the job from SLURM_JOB_ID.'
          : `Sessions ran in ${[...jobs].slice(0, 10).join(', ')}.`,
      evidence: { jobs: [...jobs].slice(0, 100) },
    });
  }
  for (const account of known) assertPlausible(book, account, path);
  const object = toObject(bytes);
  const fresh = known.filter(({ job, seconds, gpus }) => {
    const before = accounts.get(job);
    return before?.seconds !== seconds || before.gpus !== gpus;
  });
  const drafts = fresh.map(
    (account): DraftOf<'account.recorded'> => ({
      type: 'account.recorded',
      source: 'slurm',
      ...account,
      object: object.digest,
    }),
  );
  if (drafts.length === 0) return [];
  return book.store
    .append(drafts, [object])
    .filter((entry): entry is EntryOf<'account.recorded'> => entry.type === 'account.recorded');
}

/** Seconds by which the clocks of a scheduler and of a session may differ. */
const CLOCK_SECONDS = 60;

/** An account that says less than what ran in the job is of an earlier moment, or lacks the devices. */
function assertPlausible(
  { fold, context }: Book<LedgerStore>,
  { job, seconds, gpus }: Account,
  path: string,
): void {
  const { runner } = context.protocol;
  const declared = runner.adapter === 'openai' ? runner.service.gpus : runner.gpus;
  const worked = [...fold.sessions.all()]
    .filter(({ host }) => host.slurm_job === job)
    .reduce((sum, session) => Math.max(sum, sessionSeconds(session)), 0);
  if (seconds + CLOCK_SECONDS < worked) {
    throw new BoundbookError(
      'ACCOUNT_INVALID',
      `${path} gives the job ${job} ${seconds} s, and a session worked in it for ${Math.round(worked)} s`,
      { hint: 'Ask sacct again when the job is over.', evidence: { job, seconds, worked } },
    );
  }
  if (gpus < declared) {
    throw new BoundbookError(
      'ACCOUNT_INVALID',
      `${path} gives the job ${job} ${gpus} GPUs, and the plan declares ${declared}`,
      {
        hint: 'Where AllocTRES names no gres/gpu, Slurm does not track them (AccountingStorageTRES); then there is no account to record.',
        evidence: { job, gpus, declared },
      },
    );
  }
}
