import type { EvidencePiece, Hit } from '../adjudication/evidence.js';
import type { AdjudicationRound, RoundOptions } from '../adjudication/round.js';
import type { JsonObject } from '../core/json.js';
import type { CommandContext, CommandDefinition, CommandResult, OptionValue } from './command.js';

/** What can be asked for, and the flags that go with it. */
const MODES = {
  plain: ['duplicates', 'revise'],
  item: ['verdict', 'reason', 'search'],
  list: ['duplicates', 'revise'],
  serve: ['port', 'duplicates', 'revise'],
  close: [],
  abandon: [],
} as const;

export const command: CommandDefinition = {
  name: 'adjudicate',
  args: '[manifest]',
  summary:
    'say who was at fault in failures that no rule could attribute, without sight of arms and outcomes',
  options: [
    {
      flags: '--list',
      description: 'the aliases of the round, which it opens when none is open, and which have a verdict',
    },
    { flags: '--item <alias>', description: 'show one item; with --verdict and --reason: judge it' },
    { flags: '--verdict <verdict>', description: 'with --item: infrastructure, model or cannot-tell' },
    {
      flags: '--reason <text>',
      description: 'with --verdict: what in the evidence decides, in three words or more',
    },
    { flags: '--search <text>', description: 'with --item: the lines of its evidence that hold a text' },
    {
      flags: '--duplicates <fraction>',
      description: 'share of the items of a new round that are put twice (default: 0.2)',
    },
    { flags: '--revise', description: 'a new round asks again what an adjudicator judged before' },
    { flags: '--close', description: 'open all verdicts of the round and apply them' },
    { flags: '--abandon <reason>', description: 'give the round up; its verdicts are never opened' },
    { flags: '--serve', description: 'a web page on this host instead of the terminal' },
    { flags: '--port <n>', description: 'with --serve: the port (default: any that is free)' },
  ],
  examples: [
    'boundbook adjudicate',
    'boundbook adjudicate --list',
    'boundbook adjudicate --item 411b544da50ec1b6 --search timeout',
    'boundbook adjudicate --item 411b544da50ec1b6 --verdict infrastructure --reason "the node lost its disk"',
    'boundbook adjudicate --serve',
    'boundbook adjudicate --close',
  ],
  interruptible: true,
  next: '`boundbook adjudicate --close` applies the verdicts; `boundbook run` makes replacements that they earn.',
  run: async ([selector], options, context) => {
    const { modeOf, textOption } = await import('./options.js');
    const mode = modeOf(options, MODES);
    if (mode === 'abandon') {
      return abandon(selector, textOption(options.abandon, '--abandon') ?? '', context);
    }
    const { AdjudicationRound } = await import('../adjudication/round.js');
    const asked = { ...(await roundOptions(options)), resume: mode === 'item' || mode === 'close' };
    const round = await AdjudicationRound.open(context.root, selector, asked, context.now);
    if (round === null) return NOTHING;
    try {
      if (mode === 'close') return await close(round);
      if (mode === 'list') return list(round);
      if (mode === 'item') return await item(round, options);
      if (mode === 'serve') {
        return await (await import('./adjudicate-serve.js')).serve(round, options.port, context);
      }
      const { canAsk, ask } = await import('./adjudicate-terminal.js');
      return canAsk(context) ? await ask(round, context) : next(round);
    } finally {
      round.end();
    }
  },
};

const NOTHING: CommandResult = { text: 'No slot waits for a verdict.', json: { round: null, questions: [] } };

async function roundOptions(options: Readonly<Record<string, OptionValue>>): Promise<RoundOptions> {
  const revises = options.revise === true;
  if (options.duplicates === undefined) return { revises };
  const { usageError } = await import('./options.js');
  const text = typeof options.duplicates === 'string' ? options.duplicates : '';
  const share = /^(0|1|0?\.[0-9]+|1\.0+|0\.0+)$/.test(text) ? Number(text) : Number.NaN;
  if (!(share >= 0 && share <= 1)) {
    throw usageError(
      `--duplicates takes a share from 0 to 1, not ${JSON.stringify(text)}`,
      'A fifth of the items is --duplicates 0.2.',
    );
  }
  return { revises, duplicates: share };
}

/** Aliases only. */
function list(round: AdjudicationRound): CommandResult {
  const questions = round.questions();
  const rows = questions.map(({ alias, judged }) => `${alias}  ${judged ? 'judged' : 'open'}`);
  return {
    text: [headline(round), '', ...rows].join('\n'),
    json: { ...progressJson(round), questions: questions.map((each) => ({ ...each })) },
  };
}

/** The next question, for whoever reads from a pipe. */
async function next(round: AdjudicationRound): Promise<CommandResult> {
  const question = round.questions().find(({ judged }) => !judged);
  if (question !== undefined) return show(round, question.alias, round.evidence(question.alias));
  return {
    text: `${headline(round)}\nEvery item has its verdict.\nNext: boundbook adjudicate --close`,
    json: { ...progressJson(round), item: null },
  };
}

async function item(
  round: AdjudicationRound,
  options: Readonly<Record<string, OptionValue>>,
): Promise<CommandResult> {
  const { textOption, usageError } = await import('./options.js');
  const alias = textOption(options.item, '--item') ?? '';
  const verdict = textOption(options.verdict, '--verdict');
  const reason = textOption(options.reason, '--reason');
  const sought = textOption(options.search, '--search');
  if ((verdict === undefined) !== (reason === undefined))
    throw usageError('--verdict and --reason go together', 'Say what in the evidence decides.');
  if (verdict === undefined || reason === undefined) {
    const evidence = round.evidence(alias);
    if (sought === undefined) return show(round, alias, evidence);
    const { searchEvidence } = await import('../adjudication/evidence.js');
    return showHits(alias, sought, searchEvidence(evidence, sought));
  }
  if (sought !== undefined) throw usageError('--search and --verdict are two things', 'Give one of them.');
  const { verdictOf } = await import('../adjudication/words.js');
  await round.judge(alias, verdictOf(verdict), reason);
  const { questions, judged } = round.progress();
  const left = questions - judged;
  return {
    text: `The verdict on ${alias} is committed.\n${headline(round)}\nNext: boundbook adjudicate${left === 0 ? ' --close' : ''}`,
    json: { ...progressJson(round), committed: alias },
  };
}

async function show(
  round: AdjudicationRound,
  alias: string,
  evidence: readonly EvidencePiece[],
): Promise<CommandResult> {
  const { evidenceText } = await import('./adjudicate-terminal.js');
  const judged = round.questions().some((one) => one.alias === alias && one.judged);
  const hint = judged
    ? 'It has its verdict.'
    : `boundbook adjudicate --item ${alias} --verdict infrastructure|model|cannot-tell --reason TEXT`;
  return {
    text: [headline(round), `item ${alias}`, '', evidenceText(evidence, null), '', hint].join('\n'),
    json: {
      ...progressJson(round),
      item: { alias, judged, evidence: evidence.map((piece) => ({ ...piece })) },
    },
  };
}

async function showHits(alias: string, sought: string, hits: readonly Hit[]): Promise<CommandResult> {
  const { printable } = await import('./render-error.js');
  const rows = hits.map(({ piece, line, text }) => printable(`${piece}:${line}: ${text}`));
  return {
    text: rows.length === 0 ? 'Nothing in the evidence holds it.' : rows.join('\n'),
    json: { alias, search: sought, hits: hits.map((hit) => ({ ...hit })) },
  };
}

async function close(round: AdjudicationRound): Promise<CommandResult> {
  const { closingText } = await import('./adjudicate-terminal.js');
  const closing = round.close();
  return { text: await closingText(closing), json: { closed: { ...closing } } };
}

async function abandon(
  selector: string | undefined,
  reason: string,
  { root, now }: CommandContext,
): Promise<CommandResult> {
  const { abandonRound } = await import('../adjudication/round.js');
  const { round, committed } = await abandonRound(root, selector, reason, now);
  return {
    text: `The round ${round} is given up. ${committed} committed verdicts can never be opened; every audit says so.`,
    json: { abandoned: round, committed },
  };
}

function headline(round: AdjudicationRound): string {
  const { questions, judged, late, blinded } = round.progress();
  return [
    `${judged} of ${questions} questions have a verdict.`,
    ...(late ? ['Outcomes are unblinded: verdicts are late and change nothing.'] : []),
    ...(blinded || late
      ? []
      : ['The protocol does not blind outcomes: every audit says so beside the verdicts.']),
  ].join('\n');
}

function progressJson(round: AdjudicationRound): JsonObject {
  return { ...round.progress() };
}
