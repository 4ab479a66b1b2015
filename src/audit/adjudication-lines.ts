import type { ClosedRound } from '../ledger/adjudications.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { Manifest } from '../manifest/manifest.js';

/** P14: what rounds of adjudication show. No verdict is named: counts alone (law 8). */
export function adjudicationChecked(fold: LedgerFold): readonly string[] {
  const { closed } = fold.adjudications;
  const opened = closed.filter(({ abandoned }) => abandoned === null);
  if (opened.length === 0) return [];
  const verdicts = sum(opened, ({ verdicts }) => verdicts);
  return [
    `${verdicts} verdicts of ${opened.length} rounds of adjudication against what was committed to under aliases; aliases and duplicates from the revealed secrets`,
  ];
}

/** @param exposure of the plan's manifest: what was known of outcomes when it was amended */
export function adjudicationRemarks(fold: LedgerFold, exposure: Manifest['exposure']): readonly string[] {
  const { closed, open, outside } = fold.adjudications;
  const lines = closed.map(roundLine);
  if (open !== null) {
    lines.push(
      `the round of adjudication ${open.round} (entry ${open.seq}) is not closed: ${open.judged.length} verdicts are committed and not opened`,
    );
  }
  if (outside > 0) {
    lines.push(
      `${outside} attributions by an adjudicator came without a round: nothing shows that they were given blind`,
    );
  }
  if (closed.length === 0 && open === null && outside === 0) return lines;
  if (fold.context.protocol.blinding === 'none')
    lines.push('adjudicators could see outcomes: the protocol does not blind them');
  if (exposure?.unblinded === true)
    lines.push('adjudicators could have seen outcomes: those of the superseded plan were unblinded before');
  return lines;
}

function roundLine({
  round,
  seq,
  end,
  items,
  committed,
  verdicts,
  pairs,
  agreeing,
  moot,
  abandoned,
  late,
}: ClosedRound): string {
  const name = `round of adjudication ${round} (entries ${seq} to ${end})`;
  if (abandoned !== null) {
    return `${name} was abandoned (${abandoned}): ${committed} committed verdicts can never be opened`;
  }
  const twice =
    pairs === 0 ? 'no item was judged twice' : `${agreeing} of ${pairs} items that were judged twice agree`;
  const parts = [`${verdicts} verdicts on ${items} items`, twice];
  if (moot > 0) parts.push(`${moot} found their slot closed to verdicts`);
  if (late) parts.push('outcomes were unblinded before its end, so that they change nothing');
  return `${name}: ${parts.join('; ')}`;
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
