import type { PutItem } from '../attempts/adjudication.js';
import { step } from '../attempts/machine.js';
import { nextAction } from '../attempts/next-action.js';
import type { SlotRules, SlotState } from '../attempts/slot-state.js';
import { BoundbookError } from '../core/errors.js';
import type { DraftOf, EntryDraft } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import { slotRules } from '../ledger/plan-index.js';
import type { SealedRound } from './round-file.js';

/** What a round ended in. No arm, no outcome (law 8): verdicts are not counted by kind. */
export interface Closing {
  readonly round: string;
  readonly verdicts: number;
  /** Attributions that were recorded. */
  readonly applied: number;
  /** Items judged twice, and how many of them alike: the intra-rater figure. */
  readonly pairs: number;
  readonly agreeing: number;
  /** Whether outcomes were unblinded before, so that the attributions change nothing. */
  readonly late: boolean;
}

/**
 * The entries that open and apply all verdicts of a round.
 *
 * @throws {BoundbookError} ADJUDICATION_REFUSED when no verdict was given.
 */
export function closingDrafts(
  fold: LedgerFold,
  sealed: SealedRound,
  items: readonly PutItem[],
): { readonly drafts: readonly EntryDraft[]; readonly closing: Closing } {
  const { open } = fold.adjudications;
  const { round, secret } = sealed;
  if (open === null || open.round !== round) throw new BoundbookError('INTERNAL', 'the round is not open');
  if (open.judged.length === 0) {
    throw new BoundbookError('ADJUDICATION_REFUSED', 'no verdict was given in this round yet', {
      hint: 'Judge an item, or give the round up with `boundbook adjudicate --abandon REASON`.',
    });
  }
  const late = fold.unblinded !== null;
  const slots = new Map(open.items.map(({ attempt, slot }) => [attempt, slot]));
  const opened = open.judged.map((alias) => openedDraft(sealed, items, slots, alias));
  const judgeable = new Set(
    fold.amended !== null && !late ? [] : [...fold.slots.judgeable(true)].map(({ attempt }) => attempt),
  );
  const applied = firstOfEach(opened)
    .filter(({ attempt }) => judgeable.has(attempt))
    .map((verdict) => attributionDrafts(fold, verdict, late));
  const agreement = agreementOf(opened);
  const counts = { verdicts: opened.length, ...agreement };
  return {
    drafts: [
      { type: 'adjudication.revealed', round, secret },
      ...opened,
      ...applied.flat(),
      { type: 'adjudication.closed', round, ...counts, abandoned: null },
    ],
    closing: { round, ...counts, applied: applied.length, late },
  };
}

type Opened = DraftOf<'verdict.opened'>;

function openedDraft(
  { round, verdicts }: SealedRound,
  items: readonly PutItem[],
  slots: ReadonlyMap<string, string>,
  alias: string,
): Opened {
  const item = items.find((one) => one.alias === alias);
  const slot = slots.get(item?.attempt ?? '');
  const said = verdicts[alias];
  if (item === undefined || slot === undefined || said === undefined)
    throw new BoundbookError('INTERNAL', `no verdict is kept for ${alias}`);
  return { type: 'verdict.opened', round, alias, attempt: item.attempt, slot, copy: item.copy, ...said };
}

/** Of two copies the verdict that was committed first counts. */
function firstOfEach(opened: readonly Opened[]): readonly Opened[] {
  const seen = new Set<string>();
  return opened.filter(({ attempt }) => !seen.has(attempt) && seen.add(attempt));
}

function agreementOf(opened: readonly Opened[]): { readonly pairs: number; readonly agreeing: number } {
  const pairs = opened.flatMap((one, i) => {
    const other = opened.slice(0, i).find(({ attempt }) => attempt === one.attempt);
    return other === undefined ? [] : [other.verdict === one.verdict];
  });
  return { pairs: pairs.length, agreeing: pairs.filter((agrees) => agrees).length };
}

/** The attribution, and what follows from it at once; another attempt is for the next run. */
function attributionDrafts(
  fold: LedgerFold,
  { attempt, slot, verdict, reason }: Opened,
  late: boolean,
): readonly EntryDraft[] {
  const attribution: DraftOf<'attribution.recorded'> = {
    type: 'attribution.recorded',
    attempt,
    slot,
    attribution: verdict,
    by: 'adjudicator',
    rule: null,
    late,
    reason,
  };
  if (late) return [attribution];
  const key = fold.slots.key(slot);
  if (key === null) throw new BoundbookError('INTERNAL', `the slot ${slot} has no key`);
  const rules = slotRules(fold.context.protocol, key);
  return [attribution, ...following(fold.slots.state(slot), attribution, rules)];
}

function following(
  state: SlotState,
  { slot, attempt, attribution }: DraftOf<'attribution.recorded'>,
  rules: SlotRules,
): readonly EntryDraft[] {
  const event = { attempt, attribution, by: 'adjudicator', rule: null, late: false } as const;
  const result = step(state, { type: 'attribution.recorded', ...event }, rules);
  if (!result.ok) throw new BoundbookError('INTERNAL', result.violation.message);
  const due = nextAction(result.state, rules);
  if (due?.do === 'settle') return [{ type: 'slot.settled', slot, value: due.value, basis: due.basis }];
  if (due?.do === 'unresolve') return [{ type: 'slot.unresolved', slot, reason: due.reason }];
  return [];
}
