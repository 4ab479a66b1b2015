import type { LedgerHead } from '../ledger/reader.js';
import type { Unblinding } from '../ledger/unblind.js';
import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'unblind',
  args: '[manifest]',
  summary: 'record that outcomes may be read from now on; once, when every confirmatory slot is closed',
  options: [{ flags: '--partial', description: 'although slots are open; all that follows is exploratory' }],
  examples: ['boundbook unblind', 'boundbook unblind obme-final --json', 'boundbook unblind --partial'],
  next: 'boundbook report',
  run: async ([selector], options, { root, now }) => {
    const { unblindPlan } = await import('../ledger/unblind.js');
    const unblinding = await unblindPlan(root, selector, options.partial === true, now);
    const { entry, before, unjudged, stored, head } = unblinding;
    const json = {
      already_unblinded: before,
      unjudged,
      entry: { ...entry },
      manifest: stored.digest,
      head: { ...head },
    };
    return { text: await unblindText(unblinding, head), json };
  },
};

async function unblindText({ entry, before, unjudged }: Unblinding, head: LedgerHead): Promise<string> {
  const { labelled } = await import('./manifest-output.js');
  const { partial, planned, settled, unresolved, pending } = entry;
  const kind = partial
    ? 'in part: all that follows is exploratory'
    : 'completely: nothing is started in this ledger any more';
  const lines = [
    before
      ? `Outcomes were unblinded before, at ${entry.time} (entry ${entry.seq}); nothing was recorded now.`
      : `Outcomes are unblinded ${kind}.`,
    labelled([
      ['planned', String(planned)],
      ['settled', String(settled)],
      ['unresolved', String(unresolved)],
      ['pending', String(pending)],
      ['ledger', `${head.size} entries`],
      ['leaf', head.leaf ?? ''],
      ['root', head.root],
    ]),
  ];
  if (unjudged > 0) {
    lines.push(
      `${unjudged} unresolved slots were never adjudicated. A verdict from now on is marked late and changes nothing.`,
    );
  }
  lines.push('Next: boundbook report');
  return lines.join('\n');
}
