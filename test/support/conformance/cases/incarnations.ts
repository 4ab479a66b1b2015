import { canonicalText } from '../../../../src/core/canonical-json.js';
import { checkpointDraft } from '../../../../src/ledger/checkpoint-entry.js';
import { CompactRange, leafHash } from '../../../../src/ledger/merkle.js';
import type { LooseBundle } from '../../loose-bundle.js';
import { at, type Case, chainAnew, copyOf, dropReports } from '../case.js';
import { LAB, noteFile, signCheckpoints, vkey } from '../keys.js';

/** How many entries were known outside when the older copy was put back, before the second session. */
const KNOWN = 120;

interface Outside {
  root: string;
  note: string;
}

interface Restored {
  size: number;
  root: string | null;
  leaf: string | null;
  note: string | null;
  reason: string;
}

/** Older copies that were put back: another incarnation, announced by an entry of its own. */
export const INCARNATIONS: readonly Case[] = [
  restored(
    'restored',
    'an older copy was put back, and an entry says so and quotes the last outside checkpoint',
  ),
  restored(
    'restored-and-the-lost-note-kept',
    'the note of what was lost lies in the bundle and is no finding',
    {
      keepNote: true,
    },
  ),
  restored('restored-without-a-note', 'the head beside the ledger was quoted: a leaf, no root and no note', {
    quote: (quoted) => Object.assign(quoted, { note: null, root: null, leaf: '5'.repeat(64) }),
  }),
  restored('restored-unannounced_fail', 'the same note, and no entry says that an older copy was put back', {
    keepNote: true,
    drop: true,
  }),
  restored('restored-from-nowhere_fail', 'neither root nor leaf of what was known outside', {
    quote: (quoted) => Object.assign(quoted, { note: null, root: null, leaf: null }),
  }),
  restored('restored-nothing-lost_fail', 'what was known outside is no longer than the copy', {
    quote: (quoted, seq) => Object.assign(quoted, { note: null, size: seq }),
  }),
  restored('restored-quotes-another-size_fail', 'the quoted note is of another size', {
    quote: (quoted) => Object.assign(quoted, { size: KNOWN + 1 }),
  }),
  restored('restored-quotes-another-root_fail', 'the quoted note is of another root', {
    quote: (quoted) => Object.assign(quoted, { root: '6'.repeat(64) }),
  }),
  restored('restored-quotes-another-ledger_fail', 'the quoted note is a checkpoint of another ledger', {
    quote: (quoted) => Object.assign(quoted, { note: outside('d'.repeat(32), 1).note }),
  }),
  restored('restored-quotes-no-note_fail', 'what is quoted as a note is none', {
    quote: (quoted) => Object.assign(quoted, { note: 'a note\n' }),
  }),
  restored('restored-counts-wrong_fail', 'the incarnation after 1 is 2', { incarnation: 3 }),
  restored('restored-beyond-a-later-note', 'the quoted note is of incarnation 4: this one is 5', {
    incarnation: 5,
    quote: (quoted) => Object.assign(quoted, outside('a'.repeat(32), 4)),
  }),
  restored(
    'restored-below-a-later-note_fail',
    'the quoted note is of incarnation 4: no number is given twice',
    {
      quote: (quoted) => Object.assign(quoted, outside('a'.repeat(32), 4)),
    },
  ),
  restored('restored-as-another-ledger_fail', 'an older copy keeps the name of its ledger', {
    opening: (entry) => Object.assign(entry, { ledger: 'e'.repeat(32) }),
  }),
  restored('restored-for-another-plan_fail', 'an older copy keeps its plan', {
    opening: (entry) => Object.assign(entry, { plan: { ...(entry.plan as object), count: 10 } }),
  }),
  restored(
    'restored-and-signed-as-before_fail',
    'checkpoints after it are signed under the incarnation before',
    {
      after: (bundle) => signCheckpoints(bundle, LAB, { incarnation: 1 }),
    },
  ),
  restored(
    'restored-note-of-the-copy_fail',
    'a note of the first incarnation that is not longer than the copy, and not of it',
    {
      after: (bundle) => {
        bundle.files.set(noteFile(5), Buffer.from(outside('a'.repeat(32), 1, 5).note));
      },
    },
  ),
  restored('restored-note-under-another-size_fail', 'the note of what was lost lies under another size', {
    after: (bundle) => {
      bundle.files.set(noteFile(KNOWN + 1), Buffer.from(outside('a'.repeat(32), 1).note));
    },
  }),
];

interface Change {
  readonly quote?: (quoted: Restored, seq: number) => unknown;
  readonly opening?: (entry: Record<string, unknown>) => unknown;
  readonly incarnation?: number;
  readonly keepNote?: boolean;
  readonly drop?: boolean;
  readonly after?: (bundle: LooseBundle) => void;
}

function restored(name: string, why: string, change: Change = {}): Case {
  return {
    name,
    why,
    keys: [vkey(LAB)],
    edit: (bundle) => {
      dropReports(bundle);
      const first = bundle.find('ledger.opened');
      const lost = outside(String(first.ledger), 1);
      if (change.drop !== true) reopen(bundle, lost, change);
      signCheckpoints(bundle, LAB);
      if (change.keepNote === true) bundle.files.set(noteFile(KNOWN), Buffer.from(lost.note));
      change.after?.(bundle);
    },
  };
}

/** Puts a second opening before the second session. */
function reopen(bundle: LooseBundle, lost: Outside, { quote, opening, incarnation = 2 }: Change): void {
  const [, second] = bundle.entries.filter(({ type }) => type === 'gate.passed');
  if (second === undefined) throw new Error('one session only');
  const seq = at(bundle, second);
  const quoted: Restored = { size: KNOWN, leaf: null, reason: 'the disk died', ...lost };
  quote?.(quoted, seq);
  const entry = { ...copyOf(bundle.find('ledger.opened')), incarnation, restored: quoted };
  opening?.(entry);
  const time = bundle.entries[seq - 1]?.time;
  bundle.entries.splice(seq, 0, { ...entry, time });
  chainAnew(bundle.entries);
}

/** What was known outside: a tree of so many entries, whatever they held. */
function outside(ledger: string, incarnation: number, size = KNOWN): Outside {
  const range = new CompactRange();
  for (let i = 0; i < size; i++) range.append(leafHash(Buffer.from(canonicalText({ lost: i }))));
  const { root, note } = checkpointDraft(range, { ledger, incarnation }, LAB, []);
  return { root, note: note ?? '' };
}
