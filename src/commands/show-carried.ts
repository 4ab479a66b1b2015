import type { CarriedFrom } from '../ledger/carried-slots.js';
import type { Found } from '../ledger/lookup.js';
import { MASK } from '../ledger/mask.js';

/** Where a carried slot comes from, as far as it may be shown. */
export interface CarriedShown extends Omit<CarriedFrom, 'closed_by'> {
  readonly closed_by: number | typeof MASK;
}

/** While outcomes are blinded, at which position a slot was settled is not said: it tells what its attempts left before. */
export function carriedShown(
  carried: readonly CarriedFrom[],
  { state, masked }: Extract<Found, { kind: 'slot' }>,
): readonly CarriedShown[] {
  if (!masked || state.phase === 'unresolved') return carried;
  return carried.map((one) => (one.by === 'slot.carried' ? one : { ...one, closed_by: MASK }));
}

/** Where a slot comes from, the latest ledger first, and where its attempts can be seen. */
export function carriedRows(slot: string, carried: readonly CarriedShown[]): [string, string][] {
  const last = carried.at(-1);
  if (last === undefined) return [];
  const { attempts, file } = last;
  return [
    ...carried.map(({ closed_by, ledger, file, manifest }, i): [string, string] => [
      i === 0 ? 'carried' : 'before',
      `from ${closed_by === MASK ? 'a masked entry' : `entry ${closed_by}`} of ledger ${ledger.slice(0, 8)} of ${file ?? `${manifest.slice(0, 19)}…, which is not at hand`}`,
    ]),
    ['attempts', `${attempts} there${file === null ? '' : `: boundbook show ${slot} --manifest ${file}`}`],
  ];
}
