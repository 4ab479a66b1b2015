import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'note',
  args: '[manifest]',
  summary: 'record a deviation: what was changed in mid-run, and which slots it touches',
  options: [
    { flags: '--text <text>', description: 'what was changed, and why', required: true },
    {
      flags: '--slots <field=value...>',
      description:
        'the slots it touches: queue=…, arm=…, training_seed=…, evaluation_seed=…, task=…, slot=…; or all',
      required: true,
    },
  ],
  examples: [
    'boundbook note --slots arm=M,training_seed=42 --text "loop stopping was switched on at 14:00"',
    'boundbook note obme-final --slots all --text "the rack lost power for an hour"',
  ],
  next: 'boundbook report and boundbook audit list every note.',
  run: async ([manifest], options, context) => {
    const { openBook } = await import('../ledger/book.js');
    const { noteDeviation } = await import('../ledger/deviations.js');
    const { listOption, textOption } = await import('./options.js');
    const text = textOption(options.text, '--text') ?? '';
    const selector = await selectorOption(listOption(options.slots, '--slots'));
    const { readWorkspace } = await import('../manifest/workspace.js');
    const { assertInForce } = await import('../manifest/succession.js');
    const book = await openBook(context.root, manifest, 'write', context.now);
    try {
      // What a superseded ledger notes from now on reaches no report of the plan in force.
      assertInForce(book.stored, (await readWorkspace(context.root)).manifests);
      const entry = noteDeviation(book, text, selector);
      const head = book.head();
      const { seq, time, slots } = entry;
      const afterUnblinding = book.fold.unblinded !== null;
      const { labelled } = await import('./manifest-output.js');
      const { visible } = await import('../core/visible.js');
      const rows: readonly (readonly [string, string])[] = [
        ['noted', `entry ${seq}, ${time}${afterUnblinding ? ', after outcomes were unblinded' : ''}`],
        ['text', visible(entry.text)],
        ['slots', `${slots.count} of ${book.context.plan.count}`],
        ['digest', slots.digest],
        ['leaf', head.leaf ?? ''],
        ['root', head.root],
      ];
      const json = {
        entry: { ...entry, slots: { ...slots } },
        after_unblinding: afterUnblinding,
        manifest: book.manifestDigest,
        head: { ...head },
      };
      return { text: labelled(rows), json };
    } finally {
      book.close();
    }
  },
};

async function selectorOption(texts: readonly string[]) {
  const { parseFilters } = await import('../slots/selector.js');
  return texts.length === 1 && texts[0] === 'all' ? new Map() : parseFilters(texts, '--slots');
}
