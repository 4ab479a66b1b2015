import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import { canonicalText } from '../../../src/core/canonical-json.js';
import { amendPlan } from '../../../src/ledger/amendment.js';
import { openBook, openOrCreateBook } from '../../../src/ledger/book.js';
import { CompactRange, leafHash } from '../../../src/ledger/merkle.js';
import { prepareCarry } from '../../../src/ledger/predecessor.js';
import { resolveTaskSets } from '../../../src/protocol/tasks.js';
import { exposureOf } from '../../../src/report/exposure.js';
import { LooseBundle } from '../loose-bundle.js';
import { LIVES, makeSmallBook, PROTOCOL } from '../small-book.js';
import { chainAnew, dropReports } from './case.js';

interface Amended {
  /** Changes of revision 1. */
  readonly first?: (text: string) => string;
  /** What revision 2 changes of that. */
  readonly second: (text: string) => string;
  /** Whether an adjudicator could not tell about the undetermined slot of revision 1. */
  readonly judged?: boolean;
  /** Whether revision 2 is unblinded in part as soon as it is opened, and reported. */
  readonly reported?: boolean;
}

const withoutWide = (text: string): string => text.replace(/^ {2}(wide|tables): .*\n/gm, '');
const withVerdicts = (text: string): string =>
  text.replace('  breaker: 10', '  breaker: 10\n  adjudication: required');

/** Six slots lived under revision 1, nothing was unblinded, and revision 2 carries what was closed. */
const AMENDED = {
  /** Revision 2 gives up the exploratory queue. */
  amended: { second: withoutWide },
  /** Revision 2 gives up every second repetition, closed slots among them. */
  amended_narrower: { second: (text) => text.replace('reps: 2', 'reps: 1') },
  /** The same, and revision 2 is reported. */
  amended_reported: { second: withoutWide, reported: true },
  /** Outcomes were open to everybody when the plan was narrowed. */
  amended_post_hoc: {
    first: (text) => text.replace('blinding: masked', 'blinding: none'),
    second: (text) => text.replace('reps: 2', 'reps: 1').replace('resamples: 100', 'resamples: 200'),
    reported: true,
  },
  /** Revision 2 asks for verdicts on undetermined slots, so that the one without a verdict is executed again. */
  amended_stricter: { second: withVerdicts },
  /** Both ask for verdicts, and the adjudicator could not tell: the slot is carried as it is. */
  amended_judged: {
    first: withVerdicts,
    second: (text) => text.replace('breaker: 10', 'breaker: 20'),
    judged: true,
  },
} as const satisfies Record<string, Amended>;

export type AmendedName = keyof typeof AMENDED;

export function isAmended(name: string): name is AmendedName {
  return Object.hasOwn(AMENDED, name);
}

/** @param root an empty folder */
export async function makeAmended(name: AmendedName, root: string): Promise<LooseBundle> {
  const { first = (text) => text, second, judged = false, reported = false }: Amended = AMENDED[name];
  const lives = { lives: LIVES.slice(0, 6), unblind: false };
  const { now, product, stored: before } = await makeSmallBook(root, { ...lives, protocol: first });
  if (judged) {
    const old = await openBook(root, before, 'write', now);
    const left = [...old.store.entries()].flatMap(({ entry }) =>
      entry.type === 'slot.unresolved' && entry.reason === 'undetermined' ? [entry.slot] : [],
    );
    for (const slot of left) {
      const [started] = [...old.store.entries()].flatMap(({ entry }) =>
        entry.type === 'attempt.started' && entry.slot === slot ? [entry.attempt] : [],
      );
      const verdict = { attribution: 'undetermined', by: 'adjudicator', rule: null, late: false } as const;
      old.store.append([
        {
          type: 'attribution.recorded',
          attempt: started ?? '',
          slot,
          ...verdict,
          reason: 'the answer does not show it',
        },
        { type: 'slot.unresolved', slot, reason: 'undetermined' },
      ]);
    }
    old.close();
  }
  const text = second(first(PROTOCOL)).replace('revision: 1', 'revision: 2');
  writeFileSync(join(root, 'protocol/small.yaml'), text);
  const { stored } = await amendPlan(
    { protocol: 'protocol/small.yaml', reason: 'the hosts are needed', superseded: undefined, declared: {} },
    { root, now, product },
    { exposureOf: (manifest, book) => exposureOf(manifest, book?.fold ?? null), isAlive: () => false },
  );
  const files = new Map(
    ['tasks/all', 'tasks/two'].map((file) => {
      const path = file === 'tasks/all' ? 'tasks/all.jsonl' : 'tasks/two.txt';
      return [file, readFileSync(join(root, path))] as const;
    }),
  );
  const tasks = resolveTaskSets(stored.manifest.protocol, files);
  const book = await openOrCreateBook(root, stored, files, now, () => prepareCarry(root, stored, tasks, now));
  if (reported) {
    const { planned, settled, unresolved } = book.fold.slots.total();
    const pending = planned - settled - unresolved;
    book.store.append([{ type: 'unblinded', partial: true, planned, settled, unresolved, pending }]);
  }
  book.close();
  const { folder } = await exportBundle(root, stored.file, { out: 'bundle', beforeUnblinding: true });
  const bundle = LooseBundle.read(folder);
  const opened = bundle.find('ledger.opened');
  const random = String(opened.ledger);
  const report = bundle.files.get('report/report.json');
  dropReports(bundle);
  bundle.ledger.entries = bundle.entries.map(
    (entry) => JSON.parse(canonicalText(entry).replaceAll(random, 'b'.repeat(32))) as never,
  );
  if (report !== undefined) keepReport(bundle, JSON.parse(report.toString('utf8')) as { ledger: object });
  return bundle;
}

/** The report, of the ledger under its fixed name. */
function keepReport(bundle: LooseBundle, report: { ledger: object }): void {
  chainAnew(bundle.entries);
  const range = new CompactRange();
  let leaf = Buffer.alloc(0);
  for (const entry of bundle.entries) {
    leaf = Buffer.from(leafHash(Buffer.from(canonicalText(entry))));
    range.append(leaf);
  }
  const head = { name: 'b'.repeat(32), leaf: leaf.toString('hex'), root: range.root().toString('hex') };
  const ledger = { ...report.ledger, ...head };
  bundle.files.set('report/report.json', Buffer.from(canonicalText({ ...report, ledger })));
}
