import type { Digest } from '../../../../src/core/digest.js';
import type { LooseBundle } from '../../loose-bundle.js';
import { type Case, dropReports, resultOf, slotAt, stageOf } from '../case.js';

type Edit = (bundle: LooseBundle) => void;

/**
 * Streamed answers. Slot 0 stopped in a loop, slot 1 was answered wrong, slots 2 and 3 were cut after a token, slot 4 ended
 * without a finish reason, slot 6 was answered right.
 */
export const STREAMS: readonly Case[] = [
  {
    name: 'streamed',
    why: 'streamed answers: whole, cut after a token, ended without a finish reason, stopped in a loop',
    base: 'streamed',
  },
  streamed(
    'streamed-candidate-of-another-text_fail',
    'P11: the candidate is not what the kept stream says',
    (bundle) => {
      const text = bundle.keep('7');
      const stage = stageOf(bundle, slotAt(bundle, 1), 'generate');
      resultOf(stage).candidate = text;
    },
  ),
  streamed(
    'streamed-cut-settled-as-candidate_fail',
    'P13: a stream that ends without a finish reason is no candidate',
    (bundle) => editStream(bundle, 1, (text) => text.slice(0, text.indexOf('"finish_reason":"stop"'))),
  ),
  streamed('streamed-usage-forged_fail', 'P21: fewer tokens than the last chunk says', (bundle) => {
    stageOf(bundle, slotAt(bundle, 1), 'generate').usage = { prompt_tokens: 9, completion_tokens: 1 };
  }),
  streamed(
    'streamed-usage-where-none-came_fail',
    'P21: a cost of a generation that the stop rule ended, of which no server spoke',
    (bundle) => {
      stageOf(bundle, slotAt(bundle, 0), 'generate').usage = { prompt_tokens: 9, completion_tokens: 4 };
    },
  ),
  streamed(
    'streamed-complete-called-lost_fail',
    'P13: the stream under a lost connection was complete: its slot had an answer, and was replaced',
    (bundle) => {
      const whole = stageOf(bundle, slotAt(bundle, 1), 'generate').objects as { response: Digest };
      const stage = stageOf(bundle, slotAt(bundle, 2), 'generate');
      stage.objects = { response: whole.response };
    },
  ),
  streamed(
    'streamed-token-hidden_fail',
    'P13: the kept stream has a token, and the signals say that none came',
    (bundle) => {
      const stage = stageOf(bundle, slotAt(bundle, 4), 'generate');
      (resultOf(stage).signals as Record<string, unknown>).first_token = false;
      delete stage.first_token_seconds;
    },
  ),
  streamed(
    'streamed-token-not-spoken-of_fail',
    'P13: of a streamed answer it is said whether a token came',
    (bundle) => {
      const stage = stageOf(bundle, slotAt(bundle, 4), 'generate');
      delete (resultOf(stage).signals as Record<string, unknown>).first_token;
      delete stage.first_token_seconds;
    },
  ),
  streamed(
    'streamed-other-cause_fail',
    'P13: the stream was cut; the signals call it malformed',
    (bundle) => {
      const stage = stageOf(bundle, slotAt(bundle, 4), 'generate');
      (resultOf(stage).signals as Record<string, unknown>).cause = 'body_malformed';
    },
  ),
  streamed('streamed-first-token-before-any_fail', 'a time of a first token where none came', (bundle) => {
    stageOf(bundle, slotAt(bundle, 3), 'generate', 1).first_token_seconds = 0.5;
  }),
  streamed('streamed-first-token-after-the-end_fail', 'the first token came later than the end', (bundle) => {
    stageOf(bundle, slotAt(bundle, 1), 'generate').first_token_seconds = 2;
  }),
  streamed('streamed-request-asks-for-no-stream_fail', 'P17: the plan wants streamed answers', (bundle) => {
    const slot = slotAt(bundle, 1);
    const start = bundle.of(slot).find(({ type }) => type === 'attempt.started');
    const text = bundle.object(start?.request as Digest).toString('utf8');
    const plain = text.replace('"stream":true,"stream_options":{"include_usage":true}', '"stream":false');
    if (start !== undefined) start.request = bundle.keep(plain);
  }),
  {
    name: 'token-where-nothing-is-streamed_fail',
    why: 'a signal that an answer as a whole cannot give',
    edit: (bundle) => {
      dropReports(bundle);
      const stage = stageOf(bundle, slotAt(bundle, 4), 'generate');
      (resultOf(stage).signals as Record<string, unknown>).first_token = false;
    },
  },
  {
    name: 'first-token-where-nothing-is-streamed_fail',
    why: 'an answer as a whole has no first token',
    edit: (bundle) => {
      dropReports(bundle);
      stageOf(bundle, slotAt(bundle, 0), 'generate').first_token_seconds = 0.5;
    },
  },
  streamed('loop-stop-that-came-late_fail', 'B10: the stop rule fired earlier in the kept stream', (bundle) =>
    editStream(bundle, 0, (text) => {
      const events = text.trimEnd().split('\n\n');
      return `${[...events, events.at(-1)].join('\n\n')}\n\n`;
    }),
  ),
  streamed(
    'loop-stop-that-never-fired_fail',
    'B10: the rule does not fire in what was kept, so that nobody but the operator ended it',
    (bundle) =>
      editStream(bundle, 0, (text) => `${text.trimEnd().split('\n\n').slice(0, -1).join('\n\n')}\n\n`),
  ),
  streamed(
    'loop-stop-in-the-middle-of-an-event_fail',
    'B10: a stop is at the end of the event at which the rule fired',
    (bundle) => editStream(bundle, 0, (text) => text.slice(0, -1)),
  ),
  streamed(
    'loop-stop-called-stop_fail',
    'B10: the finish reason of a generation that the rule ended',
    (bundle) => {
      stageOf(bundle, slotAt(bundle, 0), 'generate').finish_reason = 'stop';
    },
  ),
  streamed('loop-stop-ignored_fail', 'B10: a whole stream in which the rule fired', (bundle) =>
    editStream(
      bundle,
      0,
      (text) =>
        `${text}${text.split('\n\n')[0]?.replace('"finish_reason":null', '"finish_reason":"stop"')}\n\n`,
    ),
  ),
  streamed(
    'loop-stop-called-a-failure_fail',
    'P13: the rule fired, so that there was a candidate; a failure buys another try',
    (bundle) => {
      const looped = stageOf(bundle, slotAt(bundle, 0), 'generate').objects as { response: Digest };
      stageOf(bundle, slotAt(bundle, 2), 'generate').objects = { response: looped.response };
    },
  ),
];

function streamed(name: string, why: string, edit: Edit): Case {
  return {
    name,
    why,
    base: 'streamed',
    edit: (bundle) => {
      dropReports(bundle);
      edit(bundle);
    },
  };
}

/** Other bytes as the kept stream of a slot; what they say of a candidate is put in its place everywhere. */
function editStream(bundle: LooseBundle, n: number, edit: (text: string) => string): void {
  const stage = stageOf(bundle, slotAt(bundle, n), 'generate');
  const { response } = stage.objects as { response: Digest };
  stage.objects = { response: bundle.keep(edit(bundle.object(response).toString('utf8'))) };
}
