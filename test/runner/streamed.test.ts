import { expect, test } from 'vitest';
import type { CommandContext } from '../../src/commands/command.js';
import { command as show } from '../../src/commands/show.js';
import { openBook } from '../../src/ledger/book.js';
import { type Trial, trial } from './fixture.js';
import { replaced, settled, story, twice, undetermined } from './story.js';

/** What a streaming server does, how the slot ends, and whether a token had come when it failed. */
const CASES: Readonly<
  Record<string, { readonly story: readonly string[]; readonly token?: boolean; readonly requests?: number }>
> = {
  right: { story: settled(1) },
  // Pieces of three bytes: they end inside characters, lines and line ends; comments and names are no data
  pieces: { story: settled(0) },
  'no-done': { story: settled(1) },
  // F-65
  'usage-without-choices': { story: settled(1) },
  'role-only': { story: settled(1) },
  reasoning: { story: settled(1) },
  // F-61: the budget went into reasoning; the model's own end
  'reasoning-only': { story: settled(0) },
  length: { story: settled(0) },
  // A pair of surrogates in two chunks
  surrogate: { story: settled(0) },
  // Before the first token as any dead connection; afterwards the text is evidence; neither is a candidate (P13)
  'cut-before': {
    story: twice('body connection_lost 200/- alive', 'connection'),
    token: false,
    requests: 2,
  },
  'cut-after': { story: twice('body connection_lost 200/- alive', 'connection'), token: true, requests: 2 },
  // P13: a complete candidate is not replaced, whatever becomes of its connection
  'cut-when-complete': { story: settled(1) },
  // The connection ends as it should, and the answer does not
  'ends-before': { story: undetermined('body stream_cut 200/- alive'), token: false },
  'ends-after': { story: undetermined('body stream_cut 200/- alive'), token: true },
  'ends-in-a-line': { story: undetermined('body stream_cut 200/- alive'), token: true },
  // F-63
  'error-first': {
    story: twice('body body_error 200/503 alive', 'embedded'),
    token: false,
    requests: 2,
  },
  // After tokens, a busy server is no queue
  'error-after': { story: twice('body body_error 200/429 alive', 'embedded'), token: true, requests: 2 },
  html: { story: undetermined('body body_not_json 200/- alive'), token: false },
  'error-200': { story: twice('body body_error 200/429 alive', 'embedded'), token: false, requests: 2 },
  nobody: { story: undetermined('body body_no_choice 200/- alive'), token: false },
  pings: { story: undetermined('body body_not_json 200/- alive'), token: false },
  // F-57: `stream` was accepted and dropped
  'not-streamed': { story: undetermined('body body_malformed 200/- alive'), token: false },
  // F-55
  two: { story: undetermined('body body_malformed 200/- alive'), token: false },
  'two-choices': { story: undetermined('body body_malformed 200/- alive'), token: true },
  // F-57, F-59: the server says that it took another temperature than it was asked for
  'other-settings': { story: undetermined('body settings_differ 200/- alive'), token: true },
  'same-settings': { story: settled(1) },
  aborted: { story: undetermined('body body_error 200/- alive'), token: true },
  'goes-on': { story: undetermined('body body_malformed 200/- alive'), token: true },
  'no-json': { story: undetermined('body body_malformed 200/- alive'), token: false },
  'not-utf-8': { story: undetermined('body body_malformed 200/- alive'), token: false },
  deep: { story: undetermined('body body_malformed 200/- alive'), token: false },
  'huge-line': { story: undetermined('body body_too_large 200/- alive'), token: false },
  // Before any token, waiting is queue time inside one attempt (DESIGN §9)
  'busy-twice': { story: settled(1), requests: 3 },
  'reset-once': {
    story: replaced('headers connection_lost -/- alive', 'connection', settled(1).slice(1)),
    token: false,
    requests: 2,
  },
  500: { story: twice('headers http_status 500/- alive', 'server'), token: false, requests: 2 },
};

let plan: Trial;

test('every way in which a stream ends, ends in exactly its entries', async () => {
  const modes = Object.keys(CASES);
  plan = await trial({
    prompts: Object.fromEntries(modes.map((mode) => [`t-${mode}`, `${mode} ${mode}`])),
    stream: true,
    limits: 'request_s: 30, queue_wait_s: 30, response_bytes: 1000000',
  });
  const summary = await plan.run({ workers: modes.length });
  expect(summary.reason).toBe('finished');
  for (const [mode, expected] of Object.entries(CASES)) {
    expect(await story(plan, `t-${mode}`), mode).toEqual(expected.story);
    const seen = plan.requests().filter(({ prompt }) => prompt === `${mode} ${mode}`);
    expect(seen.length, mode).toBe(expected.requests ?? 1);
    const stage = await firstStage(mode);
    if (stage?.result.kind === 'failure') {
      expect(stage.result.signals.first_token, mode).toBe(expected.token);
      expect(stage.first_token_seconds !== undefined, mode).toBe(expected.token);
    }
  }
});

test('the audit, which reads every kept stream again, finds nothing against it', async () => {
  expect(await plan.findings()).toEqual([]);
});

test('the request asks for a stream with its cost, and the stream is kept byte for byte', async () => {
  const book = await openBook(plan.root, plan.stored, 'read');
  const started = (await plan.of('attempt.started')).find(({ key }) => key.task === 't-pieces');
  const request = JSON.parse(book.store.getObject(started?.request ?? 'sha256:').toString()) as object;
  expect(request).toMatchObject({ stream: true, stream_options: { include_usage: true }, n: 1 });
  const stage = await firstStage('pieces');
  expect(stage?.usage).toEqual({ prompt_tokens: 3, completion_tokens: 2 });
  expect(stage?.finish_reason).toBe('stop');
  expect(stage?.first_token_seconds).toBeGreaterThan(0);
  expect(stage?.first_token_seconds).toBeLessThanOrEqual(stage?.seconds ?? 0);
  const kept = book.store.getObject(stage?.objects.response ?? 'sha256:').toString();
  expect(kept).toMatch(/^: ping\n\nevent: message\ndata: \{.*\[DONE\]\r\n\r\n$/s);
  const candidate = stage?.result.kind === 'candidate' ? stage.result.candidate : 'sha256:';
  expect(book.store.getObject(candidate).toString()).toBe('7 ä€😀');
  const paired = await firstStage('surrogate');
  const answer = paired?.result.kind === 'candidate' ? paired.result.candidate : 'sha256:';
  expect(book.store.getObject(answer).toString()).toBe('7 😀');
  book.close();
});

test('a stream that is cut leaves its text as evidence', async () => {
  const book = await openBook(plan.root, plan.stored, 'read');
  const { response } = (await firstStage('cut-after'))?.objects ?? {};
  expect(book.store.getObject(response ?? 'sha256:').toString()).toMatch(
    /"content":"7 is".*"content":" the"/s,
  );
  const cut = await firstStage('huge-line');
  expect(book.store.getObject(cut?.objects.response ?? 'sha256:').length).toBe(1_000_000);
  book.close();
});

test('a server that says nothing, and one that falls silent, meet the time limit', async () => {
  const silent = await trial({
    prompts: { slow: 'slow', stalls: 'stalls' },
    stream: true,
    blinding: 'none',
    limits: 'request_s: 0.5, queue_wait_s: 3, response_bytes: 1000000',
  });
  await silent.run({ workers: 2 });
  expect(await story(silent, 'slow')).toEqual(undetermined('headers time_limit -/- alive'));
  expect(await story(silent, 'stalls')).toEqual(undetermined('body time_limit 200/- alive'));
  const tokens = (await silent.of('stage.finished')).map(({ result }) =>
    result.kind === 'failure' ? result.signals.first_token : null,
  );
  expect(tokens.sort()).toEqual([false, true]);
  const started = (await silent.of('attempt.started')).find(({ key }) => key.task === 'stalls');
  const shown = await show.run([started?.attempt ?? ''], {}, contextOf(silent.root));
  expect(shown.text).toContain(`Attempt ${started?.attempt.slice(0, 8)} had said, when it failed:\n7`);
  expect(shown.json).toMatchObject({ partial_answers: [{ attempt: started?.attempt, text: '7' }] });
  expect(await silent.findings()).toEqual([]);
});

test('what had come is masked with everything else before unblinding (law 8)', async () => {
  const cut = await firstStage('cut-after');
  const { text, json } = await show.run([cut?.attempt ?? ''], {}, contextOf(plan.root));
  expect(text).toContain('Outcomes are masked');
  expect(text).not.toContain('7 is');
  expect(json).toMatchObject({ partial_answers: [] });
});

function contextOf(root: string): CommandContext {
  const { signal } = new AbortController();
  const progress = () => undefined;
  return {
    root,
    json: false,
    terminal: false,
    progress,
    signal,
    force: signal,
    now: () => new Date().toISOString(),
  };
}

async function firstStage(mode: string) {
  const started = (await plan.of('attempt.started')).find(({ key }) => key.task === `t-${mode}`);
  const stages = await plan.of('stage.finished');
  return stages.find(({ attempt, stage }) => attempt === started?.attempt && stage === 'generate');
}
