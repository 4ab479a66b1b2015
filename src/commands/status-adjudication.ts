import type { AdjudicationStatus } from '../ledger/status.js';

const MAX_ROUNDS = 5;

/** What waits for a verdict, the round under way, and the intra-rater figures of those that have ended. */
export async function adjudicationRows({
  waiting,
  open,
  closed,
}: AdjudicationStatus): Promise<[string, string][]> {
  const { agreementText } = await import('./adjudicate-terminal.js');
  const ended: [string, string][] = [];
  for (const [i, { round, end, verdicts, pairs, agreeing, abandoned }] of closed
    .slice(-MAX_ROUNDS)
    .entries()) {
    const said =
      abandoned === null
        ? `${verdicts} verdicts; intra-rater: ${await agreementText(pairs, agreeing)}`
        : 'given up, its verdicts are never opened';
    ended.push([i === 0 ? 'judged' : '', `round ${round.slice(0, 8)}, closed by entry ${end}: ${said}`]);
  }
  if (open !== null) {
    const { seq, items, judged } = open;
    const text = `open since entry ${seq}: ${judged} of ${items} items judged; boundbook adjudicate goes on`;
    return [...ended, ['round', text]];
  }
  return waiting === 0
    ? ended
    : [...ended, ['verdicts', `${waiting} undetermined slots wait for one: boundbook adjudicate`]];
}
