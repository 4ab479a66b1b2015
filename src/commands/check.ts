import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'check',
  args: '<protocol>',
  summary: 'read a protocol strictly, then try to make its plan fail',
  options: [
    {
      flags: '--failures',
      description: 'explain what the attribution rules make of known failures, beside the shipped rules',
    },
  ],
  examples: [
    'boundbook check protocol/demo.yaml',
    'boundbook check protocol/demo.yaml --failures',
    'boundbook check protocol/demo.yaml --json',
  ],
  next: 'boundbook plan shows what will run; boundbook freeze fixes it',
  run: async ([path = ''], options, context) => {
    const [{ loadPlan }, { checkPlan, precisionJson, reachJson }, { checkText }, { checkTemplates }] =
      await Promise.all([
        import('../planning/load.js'),
        import('../planning/check.js'),
        import('../planning/check-text.js'),
        import('../planning/arm-templates.js'),
      ]);
    const { taskFolderRemarks } = await import('../planning/task-folders.js');
    const { failuresJson, failuresText } = await import('../planning/failures.js');
    const { document, sets } = await loadPlan(context.root, path);
    const holds = checkPlan(document, sets);
    const templates = await checkTemplates(context.root, document.protocol);
    const { protocol } = document;
    const folders = await taskFolderRemarks(context.root, protocol, sets);
    const check = { ...holds, remarks: [...holds.remarks, ...templates.remarks, ...folders] };
    return {
      text: [
        ...(options.failures === true ? [failuresText(protocol)] : []),
        checkText(protocol, path, check, templates.arms),
      ].join('\n\n'),
      json: {
        ok: true,
        protocol: {
          path,
          name: protocol.name,
          revision: protocol.revision,
          digest: document.rawDigest,
          parser: document.parser,
        },
        slots: check.counts.total,
        queues: check.counts.queues,
        precision: check.precision.map(precisionJson),
        decisions: check.decisions.map(reachJson),
        sampling_seeds: {
          cells: check.collisions.cells,
          basis: check.collisions.basis,
          repeated: check.collisions.repeated,
          repeated_in_task: check.collisions.repeatedInTask,
        },
        chat_templates: templates.arms.map(({ arm, model, seed, folder, flag, slot, audit }) => ({
          arm,
          model,
          seed,
          file: `${folder}/${audit.file}`,
          template: audit.template,
          enable_thinking: flag,
          reasoning: slot,
        })),
        ...(options.failures === true ? { failures: failuresJson(protocol) } : {}),
        pending: protocol.pending,
        remarks: check.remarks.map(({ about, message }) => ({ about, message })),
      },
    };
  },
};
