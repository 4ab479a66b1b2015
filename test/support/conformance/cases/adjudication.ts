import { attemptId } from '../../../../src/attempts/slot-state.js';
import { RoundMaker, SECRET } from '../../adjudication-round.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { at, type Case, dropReports, slotAt } from '../case.js';

/** P14: rounds of adjudication. Slot 4 is undetermined; it is put twice. */
export const ADJUDICATION: readonly Case[] = [
  inTime(
    'round-in-time',
    'P14: two verdicts under aliases, committed, opened, agreeing; the first settles the slot',
  ),
  inTime(
    'round-that-disagrees',
    'P14: of two copies the verdict that was committed first counts, and the pair is one that does not agree',
    ({ round, entries, first, second }) => {
      entries[2] = round.committed(second, 'infrastructure') as Loose;
      entries[4] = round.openedVerdict(first) as Loose;
      entries[5] = round.openedVerdict(second) as Loose;
      Object.assign(entries[8] as Loose, { agreeing: 0 });
    },
  ),
  inTime(
    'round-abandoned',
    'P14: a round that is never opened is closed with a reason, and changes nothing',
    (round) => {
      round.entries.splice(3);
      round.entries.push({
        ...round.round.closed({ verdicts: 0, pairs: 0, agreeing: 0, abandoned: 'the file is lost' }),
      });
      round.settles = false;
    },
  ),
  inTime('round-with-another-number-of-items_fail', 'P14: one slot waits for a verdict', ({ entries }) => {
    Object.assign(entries[0] as Loose, { items: 2 });
  }),
  inTime('round-within-a-round_fail', 'P14: one round at a time', ({ entries }) => {
    entries.splice(1, 0, { ...structuredClone(entries[0] as Loose), round: 'e'.repeat(32) });
  }),
  inTime(
    'verdict-without-commitment_fail',
    'P14: a verdict is opened that was never committed',
    ({ entries }) => {
      entries.splice(2, 1);
    },
  ),
  inTime('verdict-of-another-round_fail', 'P14: a round that was never opened', ({ entries }) => {
    Object.assign(entries[1] as Loose, { round: 'e'.repeat(32) });
  }),
  inTime(
    'verdict-opened-as-another_fail',
    'P14: another verdict is opened than was committed',
    ({ entries }) => {
      Object.assign(entries[4] as Loose, { verdict: 'infrastructure' });
    },
  ),
  inTime('verdict-opened-with-another-reason_fail', 'P14: the reason is committed, too', ({ entries }) => {
    Object.assign(entries[5] as Loose, { reason: 'on second thoughts' });
  }),
  inTime('verdict-committed-twice_fail', 'P14: one verdict on an alias in a round', ({ entries }) => {
    entries.splice(2, 0, structuredClone(entries[1] as Loose));
  }),
  inTime('verdict-committed-after-the-reveal_fail', 'P14: by then it is known whose it is', ({ entries }) => {
    const [late] = entries.splice(2, 1);
    entries.splice(3, 0, late as Loose);
  }),
  inTime('verdict-not-opened_fail', 'P14: what was committed is opened, whatever it says', ({ entries }) => {
    entries.splice(5, 1);
    Object.assign(entries[7] as Loose, { verdicts: 1, pairs: 0, agreeing: 0 });
  }),
  inTime('verdict-not-applied_fail', 'P14: a verdict that counts is applied', (round) => {
    round.entries.splice(6, 2);
    round.settles = false;
  }),
  inTime(
    'verdict-applied-as-another_fail',
    'P14: the attribution says something else than the verdict',
    (round) => {
      Object.assign(round.entries[6] as Loose, { attribution: 'undetermined' });
      round.entries[7] = { type: 'slot.unresolved', slot: round.slot, reason: 'undetermined' };
      round.settles = false;
    },
  ),
  inTime(
    'verdict-after-its-round_fail',
    'P14: after the first round no verdict comes without one',
    ({ entries }) => {
      const [closed] = entries.splice(8, 1);
      entries.splice(6, 0, closed as Loose);
    },
  ),
  inTime(
    'alias-key-of-another-round_fail',
    'P14: the secret is not the one that was committed to',
    ({ entries }) => {
      Object.assign(entries[3] as Loose, { secret: SECRET.replaceAll('e', 'f') });
    },
  ),
  inTime(
    'alias-of-no-item_fail',
    'P14: no attempt has the alias on which a verdict was committed',
    (round) => {
      const [, , second] = round.entries;
      const stray = 'f'.repeat(16);
      Object.assign(second as Loose, { alias: stray });
      Object.assign(round.entries[5] as Loose, { alias: stray });
    },
  ),
  inTime('alias-of-another-attempt_fail', 'P14: the alias stands for the duplicate', ({ entries }) => {
    Object.assign(entries[4] as Loose, { copy: 1 });
  }),
  inTime(
    'intra-rater-figure-too-good_fail',
    'P14: two verdicts on one item, and they do not agree',
    (round) => {
      round.entries[2] = round.round.committed(round.second, 'infrastructure') as Loose;
      round.entries[5] = round.round.openedVerdict(round.second) as Loose;
    },
  ),
  inTime(
    'unblinded-within-a-round_fail',
    'P14: a complete unblinding waits for the end of the round',
    (round) => {
      round.entries.splice(3);
      round.settles = false;
    },
  ),
  {
    name: 'round-after-unblinding',
    why: 'P14: its verdicts are late, and change nothing',
    edit: (bundle) => {
      dropReports(bundle);
      bundle.insert(bundle.entries.length, ...roundOn(slotAt(bundle, 4), true).entries);
    },
  },
  {
    name: 'round-after-unblinding-not-late_fail',
    why: 'P14: committed and opened after unblinding, and not marked as late',
    edit: (bundle) => {
      dropReports(bundle);
      const { entries } = roundOn(slotAt(bundle, 4), true);
      Object.assign(entries[6] as Loose, { late: false });
      bundle.insert(bundle.entries.length, ...entries);
    },
  },
];

interface Play {
  readonly round: RoundMaker;
  readonly slot: string;
  readonly entries: Loose[];
  /** Aliases of the item and of its duplicate. */
  readonly first: string;
  readonly second: string;
  /** Whether the slot is settled by it. */
  settles: boolean;
}

/** opened, committed ×2, revealed, opened ×2, attribution, settlement, closed; after unblinding nothing is settled. */
function roundOn(slot: string, late: boolean): Play {
  const attempt = attemptId(slot, 1);
  const round = new RoundMaker([{ slot, attempt }], 1);
  const [first, second] = [round.alias(attempt, 0), round.alias(attempt, 1)];
  const basis = { kind: 'model_failure', attempt };
  const entries: Loose[] = [
    { ...round.opened() },
    { ...round.committed(first, 'model') },
    { ...round.committed(second, 'model', 'cut by its own length') },
    { ...round.revealed() },
    { ...round.openedVerdict(first) },
    { ...round.openedVerdict(second) },
    { ...round.applied(first, late) },
    ...(late ? [] : [{ type: 'slot.settled', slot, value: 0, basis }]),
    { ...round.closed({ verdicts: 2, pairs: 1, agreeing: 1 }) },
  ];
  return { round, slot, entries, first, second, settles: !late };
}

function inTime(name: string, why: string, change: (play: Play) => void = () => undefined): Case {
  return {
    name,
    why,
    edit: (bundle: LooseBundle) => {
      dropReports(bundle);
      const play = roundOn(slotAt(bundle, 4), false);
      change(play);
      const unblinded = bundle.find('unblinded');
      bundle.insert(at(bundle, unblinded), ...play.entries);
      if (play.settles)
        Object.assign(unblinded, {
          settled: Number(unblinded.settled) + 1,
          unresolved: Number(unblinded.unresolved) - 1,
        });
    },
  };
}
