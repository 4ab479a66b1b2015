import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'bind',
  args: '[manifest]',
  summary: 'write a further manifest of a plan with what became available; nothing bound is changed',
  options: [
    { flags: '--resolve <item>', description: 'close this item of the pending list; needs --evidence' },
    { flags: '--evidence <file>', description: 'the file that shows the item done; its digest is bound' },
  ],
  examples: [
    'boundbook bind',
    'boundbook bind obme-final --resolve "precision policy" --evidence docs/precision.pdf',
  ],
  interruptible: true,
  next: 'boundbook verify, when nothing is pending.',
  run: async ([selector], options, { root, signal, now, progress }) => {
    const { BoundbookError } = await import('../core/errors.js');
    const { bindManifest } = await import('../manifest/bind.js');
    const { hashProgress, manifestJson, manifestText } = await import('./manifest-output.js');
    const { textOption } = await import('./options.js');
    const item = textOption(options.resolve, '--resolve');
    const evidence = textOption(options.evidence, '--evidence');
    if ((item === undefined) !== (evidence === undefined)) {
      throw new BoundbookError('USAGE', '--resolve and --evidence go together', {
        hint: 'An item is closed by a file that shows it done: --resolve ITEM --evidence FILE.',
      });
    }
    const resolution = item === undefined || evidence === undefined ? null : { item, evidence };
    const surroundings = { root, signal, now, onProgress: hashProgress(progress) };
    const stored = await bindManifest(selector, surroundings, resolution);
    return { text: manifestText('bound', stored), json: manifestJson(stored) };
  },
};
