import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'schema',
  args: '',
  summary: 'print the JSON Schema of a protocol, for editors',
  options: [],
  examples: ['boundbook schema > protocol.schema.json'],
  next: 'put `# yaml-language-server: $schema=protocol.schema.json` into a protocol, and editors complete it',
  run: async () => {
    const { protocolJsonSchema } = await import('../protocol/json-schema.js');
    const schema = protocolJsonSchema();
    return { text: JSON.stringify(schema, null, 2), json: schema };
  },
};
