import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import type { DraftOf } from '../../src/ledger/entries/entry.js';
import { signedNote } from './notes.js';
import { CONTEXT, foldOf, gateDraft, openedDraft, SlotScript, slotAt } from './support.js';

type Opened = DraftOf<'ledger.opened'>;

const LEAF = 'b'.repeat(64);
const ROOT = Buffer.alloc(32, 7);
const LEDGER = openedDraft().ledger;

function restored(change: Partial<NonNullable<Opened['restored']>> = {}, incarnation = 2): Opened {
  const quoted = { size: 40, root: null, leaf: LEAF, note: null, reason: 'the disk died', ...change };
  return { ...openedDraft(), incarnation, restored: quoted };
}

function noted(size: number, ledger = LEDGER, incarnation = 1): Partial<NonNullable<Opened['restored']>> {
  const origin = `example.org/key/${ledger}/${incarnation}`;
  const note = signedNote({ origin, size: BigInt(size), root: ROOT }).toString('utf8');
  return { size, root: ROOT.toString('hex'), leaf: null, note };
}

/** The clauses that an opening breaks as the fourth entry of a ledger. */
function judge(...openings: readonly Opened[]) {
  return foldOf([new SlotScript(slotAt(0)).start().drafts[0] ?? gateDraft(), ...openings]);
}

describe('an older copy that was put back', () => {
  it('is another incarnation, and what is lost is the difference', () => {
    const { fold, violations } = judge(restored());
    expect(violations).toEqual([]);
    expect(fold.identity).toEqual({ ledger: LEDGER, incarnation: 2 });
    expect(fold.opened?.seq).toBe(0);
    expect(fold.restorations).toEqual([
      {
        seq: 3,
        time: expect.stringMatching(/^2026-11-30/),
        incarnation: 2,
        known: 40,
        lost: 37,
        reason: 'the disk died',
      },
    ]);
    // Nothing of a slot changes by it.
    expect(fold.slots.state(slotAt(0).id).phase).toBe('generating');
  });

  it('may happen again, and its number goes beyond that of a quoted note', () => {
    const { fold, violations } = judge(
      restored(noted(40)),
      restored({ size: 41 }, 3),
      restored(noted(60, LEDGER, 7), 8),
    );
    expect(violations).toEqual([]);
    expect(fold.restorations.map(({ incarnation, lost }) => [incarnation, lost])).toEqual([
      [2, 37],
      [3, 37],
      [8, 55],
    ]);
  });

  it.each([
    ['nothing lost', restored({ size: 3 }), /quotes 3 entries; 3 are here/],
    ['a hash of nothing', restored({ leaf: null }), /neither root nor leaf/],
    ['the same number', restored({}, 1), /it is incarnation 2, not 1/],
    ['a number left out', restored({}, 3), /it is incarnation 2, not 3/],
    ['a number of the note', restored(noted(40, LEDGER, 5), 2), /it is incarnation 6, not 2/],
    ['another ledger', { ...restored(), ledger: '2'.repeat(32) }, /opens another ledger/],
    ['another manifest', { ...restored(), manifest: digestOf('another') }, /opens another ledger/],
    ['other tasks', { ...restored(), task_objects: {} }, /opens another ledger/],
    ['another plan', { ...restored(), plan: { ...CONTEXT.plan, count: 1 } }, /opens another ledger/],
    ['a note of another ledger', restored(noted(40, '3'.repeat(32))), /note is of another ledger/],
    ['a note of another size', restored({ ...noted(39), size: 40 }), /does not say what it quotes/],
    ['a note of another root', restored({ ...noted(40), root: LEAF }), /does not say what it quotes/],
    ['no note', restored({ ...noted(40), note: 'no note' }), /does not say what it quotes/],
    ['an origin that is none', restored({ ...noted(40, 'x') }), /does not say what it quotes/],
  ])('%s: unlawful', (_, opening, message) => {
    const { fold, violations } = judge(opening);
    expect(violations).toEqual([{ seq: 3, clause: 'law 4', message: expect.stringMatching(message) }]);
    expect(fold.identity?.incarnation).toBe(1);
    expect(fold.restorations).toEqual([]);
  });

  it('quotes something', () => {
    const { violations } = judge({ ...openedDraft(), incarnation: 2 });
    expect(violations).toEqual([{ seq: 3, clause: 'law 1', message: 'the ledger was opened before' }]);
  });

  it('is not how a ledger begins', () => {
    for (const [first, message] of [
      [restored(), /was not restored/],
      [{ ...openedDraft(), incarnation: 2 }, /begins as incarnation 1/],
    ] as const) {
      const { violations } = foldOf([first], { bare: true });
      expect(violations).toEqual([{ seq: 0, clause: 'law 1', message: expect.stringMatching(message) }]);
    }
  });
});
