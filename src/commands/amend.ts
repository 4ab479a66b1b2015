import type { JsonObject } from '../core/json.js';
import type { Amendment } from '../ledger/amendment.js';
import type { CommandDefinition, OptionValue } from './command.js';

export const command: CommandDefinition = {
  name: 'amend',
  args: '<protocol>',
  summary: 'write a new revision of a frozen plan, with its reason and what was known of outcomes by then',
  options: [
    {
      flags: '--reason <text>',
      description: 'why the plan is changed; every report shows it',
      required: true,
    },
    {
      flags: '--supersedes <manifest>',
      description: "the plan that is amended (default: the protocol's own name)",
    },
    { flags: '--declare <text>', description: 'what else was known of outcomes, in words' },
    { flags: '--declare-unblinded', description: 'outcomes were seen, although the ledger does not show it' },
    { flags: '--declare-slots-run <n>', description: 'more slots were run than the ledger shows' },
    { flags: '--declare-settled <n>', description: 'more slots were settled than the ledger shows' },
  ],
  examples: [
    'boundbook amend protocol/obme-final.yaml --reason "two training seeds: the third node was lost"',
    'boundbook amend protocol/demo.yaml --reason "another threshold" --declare "a colleague saw scores of arm M"',
  ],
  interruptible: true,
  next: 'boundbook bind, when something is missing; boundbook run goes on with what was closed before.',
  run: async ([protocol = ''], options, { root, signal, now, progress }) => {
    const { amendPlan } = await import('../ledger/amendment.js');
    const { exposureOf } = await import('../report/exposure.js');
    const { fateOf } = await import('../runner/process-identity.js');
    const { hashProgress, manifestJson } = await import('./manifest-output.js');
    const { textOption } = await import('./options.js');
    const amendment = await amendPlan(
      {
        protocol,
        reason: textOption(options.reason, '--reason') ?? '',
        superseded: textOption(options.supersedes, '--supersedes'),
        declared: await declaredExposure(options),
      },
      { root, signal, now, onProgress: hashProgress(progress) },
      {
        exposureOf: (superseded, book) => exposureOf(superseded, book?.fold ?? null),
        isAlive: (process) => fateOf(process) === 'alive',
      },
    );
    const json = { ...manifestJson(amendment.stored), amendment: amendmentJson(amendment) };
    return { text: await amendmentText(amendment), json };
  },
};

async function declaredExposure(options: Readonly<Record<string, OptionValue>>) {
  const { integerOption, textOption } = await import('./options.js');
  const range = { min: 0, max: Number.MAX_SAFE_INTEGER };
  const slotsRun = integerOption(options.declareSlotsRun, '--declare-slots-run', range);
  const settled = integerOption(options.declareSettled, '--declare-settled', range);
  const words = textOption(options.declare, '--declare');
  return {
    ...(slotsRun === undefined ? {} : { slots_run: slotsRun }),
    ...(settled === undefined ? {} : { settled }),
    ...(options.declareUnblinded === true ? { unblinded: true } : {}),
    ...(words === undefined ? {} : { declared: words }),
  };
}

function amendmentJson({ stored, superseded, exposure, entry, carry }: Amendment): JsonObject {
  return {
    supersedes: superseded.digest,
    superseded: `manifests/${superseded.file}`,
    reason: stored.manifest.reason,
    exposure: { ...exposure, bounds: { ...exposure.bounds } },
    entry: entry === null ? null : { ...entry },
    closed_slots:
      carry === null
        ? null
        : {
            carried: carry.carried.length,
            again: carry.again,
            because: Object.fromEntries(carry.because),
            dropped: carry.dropped,
          },
  };
}

async function amendmentText(amendment: Amendment): Promise<string> {
  const { labelled, manifestText } = await import('./manifest-output.js');
  const { visible } = await import('../core/visible.js');
  const { stored, superseded, exposure, entry } = amendment;
  const { slots_run, settled, unblinded, declared } = exposure;
  return [
    manifestText('amended', stored),
    labelled([
      ['supersedes', `manifests/${superseded.file}`],
      ['reason', visible(stored.manifest.reason ?? '')],
      [
        'known then',
        `${slots_run} slots had run, ${settled} were settled; outcomes were ${unblinded ? '' : 'not '}open`,
      ],
      ...(declared === null ? [] : ([['declared', visible(declared)]] as const)),
      ['old ledger', entry === null ? 'none: the plan never ran' : `sealed by entry ${entry.seq}`],
      ...carryRows(amendment),
    ]),
    ...(unblinded
      ? ['Outcomes were open: this revision is post hoc, and everything in its reports is exploratory.']
      : []),
  ].join('\n\n');
}

function carryRows({ carry }: Amendment): [string, string][] {
  if (carry === null) return [];
  const { carried, again, because, dropped } = carry;
  const reasons = [...because].map(([name, count]) => `${name} (${count})`).join(', ');
  return [
    ['closed slots', `${carried.length} are carried, ${again} are executed again, ${dropped} are given up`],
    ...(again === 0 ? [] : ([['again for', reasons]] as [string, string][])),
  ];
}
