import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reindex } from '../../loose-bundle.js';
import { at, type Case, chainAnew, copyOf, dropReports, entryOf, slotAt } from '../case.js';

/** Law 4: no entry is changed or removed. */
export const APPEND_ONLY: readonly Case[] = [
  {
    name: 'entry-removed_fail',
    why: 'an entry is gone and nothing else was touched',
    asWritten: true,
    edit: (bundle) => {
      chainAnew(bundle.entries);
      bundle.entries.splice(20, 1);
    },
  },
  {
    name: 'entry-edited_fail',
    why: 'a time inside an entry was changed; the next entry names the old leaf',
    asWritten: true,
    edit: (bundle) => {
      chainAnew(bundle.entries);
      entryOf(bundle, slotAt(bundle, 0), 'attempt.finished').seconds = 1;
    },
  },
  {
    name: 'entries-swapped_fail',
    why: 'two entries changed places',
    asWritten: true,
    edit: (bundle) => {
      chainAnew(bundle.entries);
      const [a] = bundle.entries.splice(30, 1);
      if (a !== undefined) bundle.entries.splice(31, 0, a);
    },
  },
  {
    name: 'entry-repeated_fail',
    why: 'an entry stands there twice, chained anew',
    edit: (bundle) => {
      const finished = entryOf(bundle, slotAt(bundle, 0), 'attempt.finished');
      bundle.insert(at(bundle, finished) + 1, copyOf(finished));
    },
  },
  {
    name: 'first-attempt-removed_fail',
    why: 'the failed first attempt is deleted and the tail rewritten: the replacement has nothing that it replaces',
    edit: (bundle) => {
      const slot = slotAt(bundle, 2);
      const { attempt } = entryOf(bundle, slot, 'attempt.started');
      bundle.remove((entry) => entry.attempt === attempt);
    },
  },
  {
    name: 'slot-removed_fail',
    why: 'a settled failure is deleted with all of its entries: the unblinding counts one slot too many',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 1);
      bundle.remove((entry) => entry.slot === slot);
    },
  },
  {
    name: 'slot-removed-and-counted_fail',
    why: 'the same with the counts put right: a complete unblinding needs every confirmatory slot',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 1);
      bundle.remove((entry) => entry.slot === slot);
      const unblinded = bundle.find('unblinded');
      Object.assign(unblinded, { settled: Number(unblinded.settled) - 1, pending: 1 });
    },
  },
  {
    name: 'slot-removed-and-owned-up-to',
    why: 'removed, counted as pending, unblinded in part: nothing shows it but a head held outside, and the slot widens the bound',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 1);
      bundle.remove((entry) => entry.slot === slot);
      const unblinded = bundle.find('unblinded');
      Object.assign(unblinded, { settled: Number(unblinded.settled) - 1, pending: 1, partial: true });
    },
  },
  {
    name: 'tail-cut_fail',
    why: 'the last entries are cut off; the report knows a longer ledger',
    edit: (bundle) => {
      bundle.entries.splice(60);
    },
  },
  {
    name: 'tail-cut-with-its-report',
    why: 'the last entries are cut off and the report with them: only a head that somebody else holds shows it',
    edit: (bundle) => {
      dropReports(bundle);
      bundle.entries.splice(at(bundle, bundle.find('unblinded')));
    },
  },
  {
    name: 'time-runs-back_fail',
    why: 'an entry is older than the one before it',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 3), 'attempt.started').time = '2026-11-30T00:00:15.000Z';
    },
  },
  {
    name: 'time-before-the-plan_fail',
    why: 'the first entries are dated before the plan was frozen',
    edit: (bundle) => {
      for (const entry of bundle.entries.slice(0, 4)) entry.time = '2026-11-29T00:00:00.000Z';
    },
  },
  {
    name: 'time-rewritten_fail',
    why: 'one time is rewritten in the order of the others, and nothing chained anew',
    asWritten: true,
    edit: (bundle) => {
      chainAnew(bundle.entries);
      const entry = entryOf(bundle, slotAt(bundle, 3), 'attempt.started');
      entry.time = String(entry.time).replace('.000Z', '.001Z');
    },
  },
  {
    name: 'time-without-milliseconds_fail',
    why: 'times have one form',
    edit: (bundle) => {
      const entry = bundle.find('unblinded');
      entry.time = String(entry.time).replace('.000Z', 'Z');
    },
  },
  {
    name: 'entry-with-spaces_fail',
    why: 'an entry in other bytes than canonical JSON',
    after: text((line) => line.replace(':', ': ')),
  },
  {
    name: 'entry-with-keys-in-another-order_fail',
    why: 'an entry in other bytes than canonical JSON',
    after: text((line) => {
      const [first = '', ...rest] = Object.entries(JSON.parse(line) as object).map(
        ([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`,
      );
      return `{${[...rest, first].join(',')}}`;
    }),
  },
  {
    name: 'entry-with-a-key-twice_fail',
    why: 'a key twice',
    after: text((line) => line.replace('{', '{"seq":40,')),
  },
  {
    name: 'entry-with-a-long-number_fail',
    why: '2.250 is 2.25 in canonical JSON',
    after: text((line) => line.replace('"seconds":2.25', '"seconds":2.250')),
  },
  {
    name: 'entry-with-a-surplus-member_fail',
    why: 'an entry has the members of its type and no others',
    edit: (bundle) => {
      bundle.find('run.paused').comment = 'all is well';
    },
  },
  {
    name: 'entry-without-a-member_fail',
    why: 'an entry has the members of its type, all of them',
    edit: (bundle) => {
      delete bundle.find('run.paused').detail;
    },
  },
  {
    name: 'entry-of-an-unknown-type_fail',
    why: 'there is no such type',
    edit: (bundle) => bundle.insert(40, { type: 'slot.corrected', slot: slotAt(bundle, 1), value: 1 }),
  },
  {
    name: 'entry-too-large_fail',
    why: 'an entry has at most 60,000 bytes',
    after: text(
      (line) => line.replace('"finish_reason":"stop"', `"finish_reason":"${'x'.repeat(60_000)}"`),
      5,
    ),
  },
  {
    name: 'entry-with-a-prototype-key_fail',
    why: 'no key is __proto__',
    after: text(
      (line) =>
        line
          .replace('"queue_seconds"', '"objects":{"__proto__":"x"},"queue_seconds"')
          .replace('"objects":{},', ''),
      6,
    ),
  },
  {
    name: 'lines-with-carriage-returns_fail',
    why: 'lines end with a line feed alone',
    after: file((bytes) => Buffer.from(bytes.toString('utf8').replaceAll('\n', '\r\n'))),
  },
  {
    name: 'last-line-feed-missing_fail',
    why: 'a torn last line',
    after: file((bytes) => bytes.subarray(0, -1)),
  },
  {
    name: 'empty-line_fail',
    why: 'no line is empty',
    after: file((bytes) => Buffer.concat([bytes, Buffer.from('\n')])),
  },
  {
    name: 'byte-order-mark_fail',
    why: 'UTF-8 without a byte-order mark',
    after: text((line) => `\ufeff${line}`),
  },
  {
    name: 'no-entries_fail',
    why: 'an empty ledger is no ledger',
    after: file(() => Buffer.alloc(0)),
  },
];

/** Changes one line of the entries, the index following. */
function text(change: (line: string) => string, n = 40): (folder: string) => void {
  return file((bytes) => {
    const lines = bytes.toString('utf8').split('\n');
    const line = lines[n] ?? '';
    const changed = change(line);
    if (changed === line) throw new Error(`line ${n} stays: ${line}`);
    lines[n] = changed;
    return Buffer.from(lines.join('\n'));
  });
}

function file(change: (bytes: Buffer) => Buffer): (folder: string) => void {
  return (folder) => {
    const path = join(folder, 'ledger/entries.jsonl');
    writeFileSync(path, change(readFileSync(path)));
    reindex(folder);
  };
}
