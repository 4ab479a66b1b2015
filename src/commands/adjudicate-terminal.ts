import { createInterface, type Interface } from 'node:readline/promises';
import type { Closing } from '../adjudication/closing.js';
import { type EvidencePiece, searchEvidence } from '../adjudication/evidence.js';
import type { AdjudicationRound } from '../adjudication/round.js';
import type { Attribution } from '../attempts/rules.js';
import { BoundbookError } from '../core/errors.js';
import type { CommandContext, CommandResult } from './command.js';
import { printable } from './render-error.js';

/** Lines of one piece of evidence that are printed unless all are asked for. */
const HEAD_LINES = 40;
const TAIL_LINES = 60;

const KEYS: Readonly<Record<string, Attribution>> = { i: 'infrastructure', m: 'model', c: 'undetermined' };
const HELP = 'i infrastructure · m model · c cannot tell · s skip · w whole evidence · /TEXT search · q quit';

/** Whether a person can be asked: both ends are a terminal. */
export function canAsk({ json, terminal }: CommandContext): boolean {
  return terminal && !json && process.stdin.isTTY === true;
}

type Answer = 'judged' | 'skipped' | 'quit';

/** One item after the other, until all are judged, or the person stops. Every verdict is durable before the next item. */
export async function ask(round: AdjudicationRound, { signal }: CommandContext): Promise<CommandResult> {
  const stop = new AbortController();
  const terminal = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  const dialogue = new Dialogue(terminal, AbortSignal.any([signal, stop.signal]));
  terminal.on('SIGINT', () => stop.abort());
  terminal.on('close', () => stop.abort());
  try {
    for (const { alias, judged } of round.questions()) {
      if (!judged && (await askOne(round, alias, dialogue)) === 'quit') return await ended(round, 0);
    }
    const { questions, judged } = round.progress();
    if (judged < questions || !(await dialogue.confirm('Open all verdicts and apply them now? [y/N] ')))
      return await ended(round, 0);
    const closing = round.close();
    return { text: await closingText(closing), json: { closed: { ...closing } } };
  } catch (error) {
    if (!stop.signal.aborted && !signal.aborted) throw error;
    return await ended(round, 5);
  } finally {
    terminal.close();
  }
}

async function ended(round: AdjudicationRound, exitCode: 0 | 5): Promise<CommandResult> {
  const progress = round.progress();
  const { questions, judged } = progress;
  const next = judged === questions ? 'boundbook adjudicate --close' : 'boundbook adjudicate goes on';
  const text = `${judged} of ${questions} questions have a verdict.\nNext: ${next}`;
  const json = { ...progress };
  return exitCode === 0 ? { text, json } : { text, json, exitCode };
}

async function askOne(round: AdjudicationRound, alias: string, dialogue: Dialogue): Promise<Answer> {
  const evidence = round.evidence(alias);
  const { judged, questions } = round.progress();
  dialogue.say(`\nitem ${alias} (${judged} of ${questions} judged)\n`);
  dialogue.say(evidenceText(evidence, HEAD_LINES));
  for (;;) {
    const said = (await dialogue.question(`\n${HELP}\n> `)).trim();
    if (said.startsWith('/')) {
      const hits = searchEvidence(evidence, said.slice(1));
      dialogue.say(
        hits.map(({ piece, line, text }) => printable(`${piece}:${line}: ${text}`)).join('\n') || 'no hit',
      );
      continue;
    }
    switch (said.toLowerCase()) {
      case 'q':
        return 'quit';
      case 's':
        return 'skipped';
      case 'w':
        dialogue.say(evidenceText(evidence, null));
        continue;
      default:
    }
    const verdict = Object.hasOwn(KEYS, said.toLowerCase()) ? KEYS[said.toLowerCase()] : undefined;
    if (verdict === undefined) continue;
    if (await judge(round, alias, verdict, dialogue)) return 'judged';
  }
}

/** @returns false when the person thought better of it */
async function judge(
  round: AdjudicationRound,
  alias: string,
  verdict: Attribution,
  dialogue: Dialogue,
): Promise<boolean> {
  for (;;) {
    const reason = await dialogue.question('Reason, in three words or more (empty: back): ');
    if (reason.trim() === '') return false;
    try {
      await round.judge(alias, verdict, reason);
      dialogue.say('Committed.');
      return true;
    } catch (error) {
      if (!(error instanceof BoundbookError) || error.code !== 'USAGE') throw error;
      dialogue.say(error.message);
    }
  }
}

class Dialogue {
  readonly #terminal: Interface;
  readonly #signal: AbortSignal;

  constructor(terminal: Interface, signal: AbortSignal) {
    this.#terminal = terminal;
    this.#signal = signal;
  }

  say(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  question(text: string): Promise<string> {
    return this.#terminal.question(text, { signal: this.#signal });
  }

  async confirm(text: string): Promise<boolean> {
    return /^y(es)?$/i.test((await this.question(text)).trim());
  }
}

/** @param head lines of each piece that are shown at its begin; null for all */
export function evidenceText(pieces: readonly EvidencePiece[], head: number | null): string {
  return pieces
    .map(({ name, text }) => {
      const lines = printable(text).split('\n');
      const left = lines.length - HEAD_LINES - TAIL_LINES;
      const shown =
        head === null || left <= 0
          ? lines
          : [...lines.slice(0, head), `(${left} lines left out; w shows them)`, ...lines.slice(-TAIL_LINES)];
      return [`── ${printable(name)}`, ...shown].join('\n');
    })
    .join('\n');
}

export async function closingText({
  round,
  verdicts,
  applied,
  pairs,
  agreeing,
  late,
}: Closing): Promise<string> {
  const { labelled } = await import('./manifest-output.js');
  const rows: (readonly [string, string])[] = [
    ['round', round],
    ['verdicts', `${verdicts} opened`],
    ['applied', late ? `${applied}, late: they change nothing` : String(applied)],
    ['intra-rater', await agreementText(pairs, agreeing)],
  ];
  return `${labelled(rows)}\nNext: boundbook run --limit 0, then boundbook unblind`;
}

/** The intra-rater figure in words. */
export async function agreementText(pairs: number, agreeing: number): Promise<string> {
  if (pairs === 0) return 'no item was judged twice';
  const { wilsonInterval } = await import('../analysis/wilson.js');
  const { low, high } = wilsonInterval(agreeing, pairs, 0.95);
  return `${agreeing} of ${pairs} pairs agree (95 % interval ${low.toFixed(2)} to ${high.toFixed(2)})`;
}
