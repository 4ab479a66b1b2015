import { digestOf } from '../../../../src/core/digest.js';
import { at, type Case, dropReports, editReport, slotAt } from '../case.js';

interface Bound {
  lower: { exact: string; value: number };
  upper: { exact: string; value: number };
}
interface Report {
  visibility: unknown;
  blinding: string;
  coverage: { total: Record<string, number>; queues: Record<string, number>[] };
  attempts: Record<string, number>;
  failures: { attempts: number }[];
  ledger: { root: string };
  results: {
    label: string;
    scores: { rows: { planned: number; unresolved: number; bound: Bound }[] };
    contrasts: { bound: Bound; estimate: unknown; sign: string; label: string; complete: boolean }[];
  }[];
}

/** Laws 5, 6, 8, 9 and 10: what a report may say. */
export const RESULTS: readonly Case[] = [
  said('report-drops-unresolved_fail', 'law 5: unresolved slots left the denominator', (report) => {
    for (const row of report.results[0]?.scores.rows ?? []) {
      row.planned -= row.unresolved;
      row.unresolved = 0;
    }
  }),
  said('report-narrows-a-bound_fail', 'law 5: the lower end of a bound was raised', (report) => {
    const bound = report.results[0]?.scores.rows[0]?.bound;
    if (bound !== undefined) bound.lower = { exact: '3/4', value: 0.75 };
  }),
  said(
    'report-gives-a-point_fail',
    'law 6: a point estimate of a comparison with unresolved slots',
    (report) => {
      const contrast = report.results[0]?.contrasts[0];
      if (contrast !== undefined) contrast.estimate = { exact: '1/4', value: 0.25 };
    },
  ),
  said(
    'report-calls-it-complete_fail',
    'law 6: a comparison with unresolved slots called complete',
    (report) => {
      const contrast = report.results[0]?.contrasts[0];
      if (contrast !== undefined) contrast.complete = true;
    },
  ),
  said('report-takes-the-best-end_fail', 'law 6: the sign of a contrast whose bound holds 0', (report) => {
    const contrast = report.results[0]?.contrasts[0];
    if (contrast !== undefined) contrast.sign = 'positive';
  }),
  said('report-promotes-a-queue_fail', 'law 9: an exploratory queue printed as confirmatory', (report) => {
    const wide = report.results[1];
    if (wide !== undefined) wide.label = 'confirmatory';
  }),
  said('report-forgets-attempts_fail', 'P16: fewer replacements than the ledger has', (report) => {
    report.attempts.replacement = 1;
  }),
  said('report-forgets-a-failure_fail', 'P21: a kind of failure is missing from the table', (report) => {
    report.failures.shift();
  }),
  said('report-of-another-ledger_fail', 'law 10: the root is not the one of the ledger', (report) => {
    report.ledger.root = 'e'.repeat(64);
  }),
  said('report-of-other-blinding_fail', 'law 10: masked becomes none', (report) => {
    report.blinding = 'none';
  }),
  {
    name: 'report-before-unblinding_fail',
    why: 'law 8: a report with outcomes, in a bundle of a ledger that was never unblinded',
    edit: (bundle) => {
      bundle.remove(({ type }) => type === 'unblinded');
    },
  },
  {
    name: 'report-is-no-json_fail',
    why: 'law 10: a report in no form that can be rebuilt',
    edit: (bundle) => {
      bundle.files.set('report/report.json', Buffer.from('{"results": [0.75'));
    },
  },
  {
    name: 'unblinded-too-early_fail',
    why: 'P22: a confirmatory slot is pending, and the unblinding is not marked as partial',
    base: 'partial',
    edit: (bundle) => {
      bundle.find('unblinded').partial = false;
    },
  },
  {
    name: 'unblinded-with-wrong-counts_fail',
    why: 'P22: the counts of the unblinding are not those of the ledger',
    edit: (bundle) => {
      bundle.find('unblinded').settled = 10;
    },
  },
  {
    name: 'unblinded-twice_fail',
    why: 'P22: outcomes are unblinded once',
    edit: (bundle) => {
      const unblinded = bundle.find('unblinded');
      bundle.insert(at(bundle, unblinded) + 1, { ...unblinded });
    },
  },
  {
    name: 'deviation-noted',
    why: 'B9: a deviation and the slot that it touches',
    edit: (bundle) => {
      drop(bundle);
      bundle.insert(bundle.entries.length, deviation(bundle, 1));
    },
  },
  {
    name: 'deviation-of-fewer-slots_fail',
    why: 'B9: the selector touches other slots than the note says',
    edit: (bundle) => {
      drop(bundle);
      bundle.insert(bundle.entries.length, { ...deviation(bundle, 1), selector: { queue: ['main'] } });
    },
  },
  {
    name: 'deviation-of-no-slot_fail',
    why: 'B9: no slot of the plan passes the selector',
    edit: (bundle) => {
      drop(bundle);
      bundle.insert(bundle.entries.length, { ...deviation(bundle, 1), selector: { arm: ['Z'] } });
    },
  },
];

function said(name: string, why: string, edit: (report: Report) => void): Case {
  return { name, why, edit: (bundle) => editReport(bundle, edit as (report: never) => void) };
}

type Bundle = Parameters<NonNullable<Case['edit']>>[0];

function drop(bundle: Bundle): void {
  dropReports(bundle);
}

function deviation(bundle: Bundle, count: number) {
  const slot = slotAt(bundle, 0);
  return {
    type: 'deviation.noted',
    text: 'the loop stop was switched off for this slot',
    selector: { slot: [slot] },
    slots: { count, digest: digestOf(Buffer.from(`${slot}\n`)) },
  };
}
