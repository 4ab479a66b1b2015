import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'freeze',
  args: '<protocol>',
  summary: 'write the manifest of a plan: the protocol and everything that can be bound by now',
  options: [],
  examples: ['boundbook freeze protocol/demo.yaml', 'boundbook freeze protocol/demo.yaml --json'],
  interruptible: true,
  next: 'boundbook bind, when what was missing is there; then boundbook verify.',
  run: async ([protocol = ''], _options, { root, signal, now, progress }) => {
    const { freezeProtocol } = await import('../manifest/freeze.js');
    const { hashProgress, manifestJson, manifestText } = await import('./manifest-output.js');
    const stored = await freezeProtocol(protocol, { root, signal, now, onProgress: hashProgress(progress) });
    return { text: manifestText('frozen', stored), json: manifestJson(stored) };
  },
};
