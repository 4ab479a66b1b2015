import type { EntryOf } from '../ledger/entries/entry.js';
import { readSacct } from '../ledger/slurm.js';
import type { Findings } from './finding.js';
import type { ObjectShelf } from './objects.js';

/** Reads a scheduler's words again, and compares (P21). */
export function checkAccount(
  { seq, job, seconds, gpus, object }: EntryOf<'account.recorded'>,
  shelf: ObjectShelf,
  findings: Findings,
): void {
  const bytes = shelf.read(object, { seq, pointer: '/object' });
  if (bytes === null) return;
  const said = readSacct(bytes)?.find((account) => account.job === job);
  if (said?.seconds === seconds && said.gpus === gpus) return;
  const words = said === undefined ? 'does not name it' : `says ${said.seconds} s with ${said.gpus} GPUs`;
  findings.add({
    code: 'ACCOUNT_DIFFERS',
    where: { seq },
    message: `the job ${job} is recorded with ${seconds} s and ${gpus} GPUs, and the scheduler's account ${words}`,
  });
}
