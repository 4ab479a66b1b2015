import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'init',
  args: '[folder]',
  summary: 'start a workspace: a commented protocol, an example task file, the folders',
  options: [],
  examples: ['boundbook init', 'boundbook init my-study'],
  next: 'boundbook check protocol/example.yaml',
  run: async ([folder = '.'], _options, context) => {
    const { createWorkspace } = await import('../planning/workspace.js');
    const { resolve } = await import('node:path');
    const created = await createWorkspace(resolve(context.root, folder));
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
