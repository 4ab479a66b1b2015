import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { type Case, dropReports } from '../case.js';

const SACCT =
  'JobIDRaw|ElapsedRaw|AllocTRES\n' +
  '812|3600|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1\n' +
  '812.batch|3600|cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1\n' +
  '813|60|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu:h100=3\n';

/** Device time: accounts of a scheduler, and signs of life (P21, B8). */
export const COSTS: readonly Case[] = [
  {
    name: 'account-of-slurm',
    why: "P21: what Slurm says of the session's job, and a sign of life",
    edit: (bundle) => account(bundle, {}),
  },
  {
    name: 'account-raised_fail',
    why: "P21: the recorded seconds are not those of the scheduler's words",
    edit: (bundle) => account(bundle, { seconds: 3601 }),
  },
  {
    name: 'account-with-fewer-devices_fail',
    why: "P21: the recorded devices are not those of the scheduler's words",
    edit: (bundle) => account(bundle, { gpus: 1 }),
  },
  {
    name: 'account-of-a-job-it-does-not-name_fail',
    why: "P21: the scheduler's words do not name the session's job",
    edit: (bundle) => account(bundle, { job: '814' }, '814'),
  },
  {
    name: 'account-of-another-job_fail',
    why: 'P21: no session ran in that job',
    edit: (bundle) => account(bundle, { job: '813', seconds: 60, gpus: 4 }),
  },
  {
    name: 'account-with-another-column_fail',
    why: 'P21: an account that is not in the form that is read says nothing',
    edit: (bundle) => account(bundle, {}, '812', SACCT.replace('JobIDRaw|', 'User|JobIDRaw|')),
  },
  {
    name: 'service-with-fewer-devices_fail',
    why: 'P21: a service says that it held other devices than the plan declares',
    edit: (bundle) => {
      dropReports(bundle);
      const stopped = bundle.find('service.stopped');
      stopped.gpus = Number(stopped.gpus) + 1;
    },
  },
  {
    name: 'alive-after-its-end_fail',
    why: 'B8: a session that ended gives no sign of life',
    edit: (bundle) => {
      dropReports(bundle);
      const { session } = bundle.find('run.paused');
      bundle.insert(bundle.entries.length, { type: 'session.alive', session });
    },
  },
];

/** A first session in a Slurm job, alive, with an account at the end of the ledger. */
function account(bundle: LooseBundle, change: Partial<Loose>, job = '812', words = SACCT): void {
  dropReports(bundle);
  const gate = bundle.find('gate.passed');
  gate.heartbeat_s = 60;
  Object.assign(gate.host as object, { slurm_job: job });
  bundle.insert(bundle.entries.indexOf(gate) + 1, { type: 'session.alive', session: gate.session });
  const object = bundle.keep(words);
  const recorded = { source: 'slurm', job, seconds: 3600, gpus: 2, object, ...change };
  bundle.insert(bundle.entries.length, { type: 'account.recorded', ...recorded });
}
