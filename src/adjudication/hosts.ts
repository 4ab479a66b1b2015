import { decodeEntry } from '../ledger/codec.js';
import type { LedgerReader } from '../ledger/reader.js';

const TYPES = ['gate.passed', 'service.attached'].map((type) => Buffer.from(`"type":"${type}"`));
/** Shorter numbers of jobs stand for too many other things. */
const MIN_JOB_DIGITS = 4;

/** Hosts that a ledger names: where services were reached, and the scheduler's jobs in which sessions ran. */
export function hostsIn(reader: Pick<LedgerReader, 'rows'>): readonly string[] {
  const hosts = new Set<string>();
  for (const { body } of reader.rows()) {
    const decoded = TYPES.some((type) => body.includes(type)) ? decodeEntry(body) : null;
    if (decoded?.ok !== true) continue;
    const { entry } = decoded;
    if (entry.type === 'service.attached') for (const name of namesOf(entry.origin)) hosts.add(name);
    if (entry.type === 'gate.passed') {
      const job = entry.host.slurm_job ?? '';
      if (job.length >= MIN_JOB_DIGITS) hosts.add(job);
    }
  }
  return [...hosts];
}

function namesOf(origin: string): readonly string[] {
  if (!URL.canParse(origin)) return [];
  const { hostname } = new URL(origin);
  const first = hostname.split('.')[0] ?? '';
  // The first number of an address is no name.
  return /[a-z]/i.test(first) && first !== 'localhost' ? [hostname, first] : [hostname];
}
