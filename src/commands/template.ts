import type { Flag, FlagResult } from '../chat-template/audit.js';
import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'template',
  args: '<folder...>',
  summary: "render models' chat templates with the reasoning flag unset, true and false",
  options: [],
  examples: ['boundbook template models/M', 'boundbook template models/* --json'],
  next: 'boundbook check renders the templates of a plan for the flags that its arms send',
  run: async (folders, _options, context) => {
    const [{ basename, resolve }, { auditTemplate, FLAGS }, { requireTemplate }, { WORDS }, { renderTable }] =
      await Promise.all([
        import('node:path'),
        import('../chat-template/audit.js'),
        import('./template-folder.js'),
        import('../planning/arm-templates.js'),
        import('../planning/table.js'),
      ]);
    const audits = [];
    for (const folder of folders) {
      const source = await requireTemplate(resolve(context.root, folder), folder);
      audits.push({ folder, audit: auditTemplate(source, `${folder}/${source.file}`) });
    }
    const word = (result: FlagResult): string => (result.slot === 'raises' ? 'raises' : WORDS[result.slot]);
    const table = renderTable(
      ['model', 'unset', 'true', 'false', 'switches', 'template'],
      audits.map(({ folder, audit: { flags, switches, template } }) => [
        basename(resolve(context.root, folder)),
        ...FLAGS.map((flag) => word(flags[flag])),
        switches.join(' ') || 'none',
        template.slice(7, 19),
      ]),
    );
    const details = audits.map(({ folder, audit }) =>
      [
        `${folder}/${audit.file}, after the user's message:`,
        ...FLAGS.map((flag) => `  ${flag.padEnd(5)}  ${tailOf(audit.flags[flag])}`),
        ...audit.warnings.map((warning) => `  warning: ${warning}`),
      ].join('\n'),
    );
    return {
      text: [table, ...details].join('\n\n'),
      json: {
        models: audits.map(({ folder, audit: { file, template, flags, switches, warnings } }) => ({
          folder,
          file,
          template,
          enable_thinking: Object.fromEntries(FLAGS.map((flag: Flag) => [flag, resultJson(flags[flag])])),
          switches: [...switches],
          warnings: [...warnings],
        })),
      },
    };
  },
};

function tailOf(result: FlagResult): string {
  return result.slot === 'raises' ? `raises: ${result.problem}` : JSON.stringify(result.tail);
}

function resultJson(result: FlagResult) {
  return result.slot === 'raises'
    ? { reasoning: 'raises', problem: result.problem }
    : { reasoning: result.slot, prompt: result.prompt, tail: result.tail };
}
