import type { Violation } from '../attempts/violation.js';
import type { EntryOf } from './entries/entry.js';
import type { SessionBook } from './sessions.js';

/** What a scheduler gave to a job (P21). */
export interface Account {
  readonly job: string;
  readonly seconds: number;
  readonly gpus: number;
}

/** The accounts of a ledger, the latest for each job. */
export class AccountBook {
  readonly #accounts = new Map<string, Account>();

  get(job: string): Account | undefined {
    return this.#accounts.get(job);
  }

  /** A job of which no session was a part says nothing about this ledger. */
  take({ job, seconds, gpus }: EntryOf<'account.recorded'>, sessions: SessionBook): Violation | null {
    const known = [...sessions.all()].some(({ host }) => host.slurm_job === job);
    if (!known) return { clause: 'P21', message: `no session ran in the Slurm job ${job}` };
    this.#accounts.set(job, { job, seconds, gpus });
    return null;
  }

  snapshot(): readonly Account[] {
    return [...this.#accounts.values()];
  }

  restore(accounts: readonly Account[]): void {
    for (const account of accounts) this.#accounts.set(account.job, account);
  }
}
