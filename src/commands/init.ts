import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'init',
  args: '[folder]',
  summary: 'start a workspace: a commented protocol, an example task file, the folders',
  options: [
    {
      flags: '--runner <name>',
      description: 'which protocol to start from: openai (a server, the default), harbor (agents in trials)',
    },
  ],
  examples: ['boundbook init', 'boundbook init my-study', 'boundbook init my-study --runner harbor'],
  next: 'boundbook check protocol/example.yaml',
  run: async ([folder = '.'], options, context) => {
    const { textOption, usageError } = await import('./options.js');
    const { createWorkspace } = await import('../planning/workspace.js');
    const { STARTERS } = await import('../planning/starter.js');
    const { resolve } = await import('node:path');
    const runner = textOption(options.runner, '--runner') ?? 'openai';
    if (runner !== 'openai' && runner !== 'harbor') {
      throw usageError(
        `--runner takes ${Object.keys(STARTERS).join(' or ')}, not ${JSON.stringify(runner)}`,
        'A protocol for commands of your own: see "Commands" in docs/guide.md.',
      );
    }
    const created = await createWorkspace(resolve(context.root, folder), runner);
    const inside = folder === '.' ? '' : `cd ${folder} && `;
    return {
      text: [
        `Created in ${folder}:`,
        ...created.map((path) => `  ${path}`),
        '',
        `Next: ${inside}boundbook check protocol/example.yaml`,
      ].join('\n'),
      json: { folder, created },
    };
  },
};
