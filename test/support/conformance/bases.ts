import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import { canonicalText } from '../../../src/core/canonical-json.js';
import { digestOf, hexOf } from '../../../src/core/digest.js';
import { amendPlan } from '../../../src/ledger/amendment.js';
import { openOrCreateBook } from '../../../src/ledger/book.js';
import { prepareCarry } from '../../../src/ledger/predecessor.js';
import { resolveTaskSets } from '../../../src/protocol/tasks.js';
import { exposureOf } from '../../../src/report/exposure.js';
import { LooseBundle } from '../loose-bundle.js';
import { LIVES, type Life, makeSmallBook, PROTOCOL, type SmallBookOptions } from '../small-book.js';
import { dropReports } from './case.js';

const NAMED: Life = [
  {
    failure: { cause: 'http_status', phase: 'body', http_status: 400, exception: 'EnvironmentDead' },
    body: '{"error":{"type":"EnvironmentDead"}}',
  },
];

/** Sound books from which cases are made. */
const BOOKS = {
  /** Eleven slots, every kind of life, unblinded, with its report. */
  full: {},
  /** Six slots lived, five pending; outcomes are blinded. */
  blinded: { lives: LIVES.slice(0, 6), unblind: false },
  /** The same, unblinded in part. */
  partial: { lives: LIVES.slice(0, 6) },
  /** All outcomes shown from the start. */
  open: { protocol: (text) => text.replace('blinding: masked', 'blinding: none'), unblind: false },
  /** A rule that rests on the name of an exception. */
  named: {
    lives: [...LIVES.slice(0, 4), NAMED, ...LIVES.slice(5)],
    protocol: (text) =>
      text.replace(
        '    - { id: malformed',
        '    - { id: dead, when: { exception: EnvironmentDead }, attribute: infrastructure, sufficient: false }\n    - { id: malformed',
      ),
  },
  /** Undetermined slots need a verdict before outcomes are shown; none was given, so it is unblinded in part. */
  judged: {
    unblind: false,
    protocol: (text) => text.replace('  breaker: 10', '  breaker: 10\n  adjudication: required'),
  },
} as const satisfies Record<string, SmallBookOptions>;

export type BaseName = keyof typeof BOOKS | 'no_tasks' | 'no_answers' | 'amended';

/** @param root an empty folder */
export async function makeBase(name: BaseName, root: string): Promise<LooseBundle> {
  if (name === 'amended') return makeAmended(root);
  const redacted = name === 'no_tasks' || name === 'no_answers';
  await makeSmallBook(root, name === 'no_tasks' || name === 'no_answers' ? BOOKS.full : BOOKS[name]);
  const redact = { tasks: name === 'no_tasks', answers: name === 'no_answers', digests: [] };
  const { folder } = await exportBundle(root, undefined, {
    out: 'bundle',
    beforeUnblinding: true,
    ...(redacted ? { redact } : {}),
  });
  const bundle = LooseBundle.read(folder);
  if (redacted) fixCommitments(bundle);
  return bundle;
}

/** Salts are drawn at random; a case is the same bytes each time. */
function fixCommitments({ ledger: { objects } }: LooseBundle): void {
  for (const [hex, content] of objects) {
    if (typeof content !== 'string') continue;
    objects.set(hex, content.replace(/[0-9a-f]{64}$/, hexOf(digestOf(Buffer.from(`salted ${hex}`)))));
  }
}

/** Six slots lived under revision 1; revision 2 gives up the exploratory queue before anything was unblinded, and carries them. */
async function makeAmended(root: string): Promise<LooseBundle> {
  const { now, product } = await makeSmallBook(root, BOOKS.blinded);
  const text = PROTOCOL.replace('revision: 1', 'revision: 2').replace(/^ {2}(wide|tables): .*\n/gm, '');
  writeFileSync(join(root, 'protocol/small.yaml'), text);
  const { stored } = await amendPlan(
    { protocol: 'protocol/small.yaml', reason: 'the hosts are needed', superseded: undefined, declared: {} },
    { root, now, product },
    { exposureOf: (manifest, book) => exposureOf(manifest, book?.fold ?? null), isAlive: () => false },
  );
  const files = new Map(
    ['tasks/all', 'tasks/two'].map((name) => {
      const path = name === 'tasks/all' ? 'tasks/all.jsonl' : 'tasks/two.txt';
      return [name, readFileSync(join(root, path))] as const;
    }),
  );
  const tasks = resolveTaskSets(stored.manifest.protocol, files);
  const book = await openOrCreateBook(root, stored, files, now, () => prepareCarry(root, stored, tasks, now));
  book.close();
  const { folder } = await exportBundle(root, stored.file, { out: 'bundle', beforeUnblinding: true });
  const bundle = LooseBundle.read(folder);
  const opened = bundle.find('ledger.opened');
  const random = String(opened.ledger);
  dropReports(bundle);
  bundle.ledger.entries = bundle.entries.map(
    (entry) => JSON.parse(canonicalText(entry).replaceAll(random, 'b'.repeat(32))) as never,
  );
  return bundle;
}
