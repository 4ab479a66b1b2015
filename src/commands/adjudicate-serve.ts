import type { AdjudicationRound } from '../adjudication/round.js';
import { AdjudicationServer } from '../adjudication/web/server.js';
import { closingText } from './adjudicate-terminal.js';
import type { CommandContext, CommandResult, OptionValue } from './command.js';
import { integerOption } from './options.js';

/** Shows the page until the round is closed on it, or somebody stops the program. */
export async function serve(
  round: AdjudicationRound,
  port: OptionValue,
  { signal, progress }: CommandContext,
): Promise<CommandResult> {
  const server = new AdjudicationServer(round);
  const address = await server.listen(integerOption(port, '--port', { min: 1024, max: 65535 }) ?? 0);
  progress(
    `Open this address on this host; who has it may judge. Ctrl-C ends it, nothing is lost.\n${address}`,
  );
  try {
    const closing = await Promise.race([server.closed, aborted(signal)]);
    if (closing !== null) return { text: await closingText(closing), json: { closed: { ...closing } } };
    const state = round.progress();
    return {
      text: `${state.judged} of ${state.questions} questions have a verdict.\nNext: boundbook adjudicate --serve goes on`,
      json: { ...state },
    };
  } finally {
    await server.stop();
  }
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}
