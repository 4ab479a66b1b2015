import { canonicalText } from '../../src/core/canonical-json.js';
import type { DraftOf, EntryDraft } from '../../src/ledger/entries/entry.js';
import { type LedgerObject, toObject } from '../../src/ledger/objects.js';
import type { OpenaiRunner } from '../../src/protocol/schema/openai-runner.js';
import { OPERATORS_WORD } from '../../src/protocol/schema/services.js';
import {
  type CanaryAnswer,
  canaryBytes,
  canaryRequests,
  compareCanaries,
  readCanary,
} from '../../src/runner/canary-reading.js';
import { describedBytes, descriptionChanges } from '../../src/runner/self-description.js';

/** Appends to a book and tells the position of the first of its entries. */
type Append = (drafts: readonly EntryDraft[], objects: readonly LedgerObject[]) => number;

interface Canary {
  readonly seq: number;
  readonly answers: readonly CanaryAnswer[];
}

/**
 * Services of a small book that describe themselves and answer a canary: of every model in each session, named `M@42#0`.
 * The program is newer in the second session, and `base` answers otherwise at its last end.
 */
export class SmallServices {
  readonly #runner: OpenaiRunner;
  readonly #append: Append;
  readonly #models: readonly string[];
  readonly #first = new Map<string, { readonly seq: number; readonly bytes: Buffer }>();
  readonly #own = new Map<string, { readonly seq: number; readonly bytes: Buffer }>();
  readonly #reference = new Map<string, Canary>();
  #sessions = 0;

  constructor(runner: OpenaiRunner, models: readonly string[], append: Append) {
    this.#runner = runner;
    this.#models = models;
    this.#append = append;
  }

  begin(session: string, pid: number): void {
    const time = ++this.#sessions;
    for (const [i, model] of this.#models.entries()) {
      const bytes = description(model, time, 0);
      const seq = this.#up(session, model, pid + 1 + i, bytes);
      this.#own.set(model, { seq, bytes });
      const first = this.#first.get(model);
      if (first === undefined) this.#first.set(model, { seq, bytes });
      else this.#describe(session, model, 'start', first, bytes);
      this.#canary(session, model, 'start', time * 1e-4);
    }
  }

  end(session: string): void {
    for (const model of this.#models) {
      const own = this.#own.get(model);
      if (own !== undefined)
        this.#describe(session, model, 'end', own, description(model, this.#sessions, 60));
      this.#canary(session, model, 'end', model === 'base' ? 0.5 : 0);
      const stopped: DraftOf<'service.stopped'> = {
        type: 'service.stopped',
        ...nameOf(session, model),
        reason: 'done',
        exit_status: this.#isExternal ? null : 0,
        signal: null,
        seconds: 60,
        gpus: 1,
      };
      this.#append([stopped], []);
    }
  }

  get #isExternal(): boolean {
    return 'external' in this.#runner.service;
  }

  #up(session: string, model: string, pid: number, bytes: Buffer): number {
    const effective = toObject(bytes);
    const { service } = this.#runner;
    const common = { ...nameOf(session, model), effective: effective.digest, seconds: 1.5 };
    const draft: EntryDraft =
      'external' in service
        ? {
            type: 'service.attached',
            ...common,
            origin: originOf(service.external, model),
            accepted: OPERATORS_WORD,
          }
        : { type: 'service.started', ...common, pid, port: 9000 + pid, start: 0 };
    return this.#append([draft], [effective]);
  }

  #describe(
    session: string,
    model: string,
    at: 'start' | 'end',
    before: { readonly seq: number; readonly bytes: Buffer },
    bytes: Buffer,
  ): void {
    const { changed, total } = descriptionChanges(before.bytes, bytes, at);
    const effective = toObject(bytes);
    const draft: EntryDraft = {
      type: 'service.described',
      ...nameOf(session, model),
      at,
      effective: effective.digest,
      compared_with: before.seq,
      changed: [...changed],
      total,
    };
    this.#append([draft], [effective]);
  }

  #canary(session: string, model: string, at: 'start' | 'end', drift: number): void {
    const { canary } = this.#runner.service;
    if (canary === undefined) return;
    const answers = canaryRequests(this.#runner.endpoint, canary, model).map((request, i): CanaryAnswer => {
      const body = canaryBody(model, i, drift);
      const reading = readCanary(Buffer.from(body), model);
      if (typeof reading === 'string') throw new Error(reading);
      return { request, body, ...reading };
    });
    const object = toObject(canaryBytes(answers));
    const reference = this.#reference.get(model);
    const compared =
      reference === undefined ? null : compareCanaries(reference.answers, answers, canary.logprob_tolerance);
    const draft: EntryDraft = {
      type: 'canary.recorded',
      ...nameOf(session, model),
      at,
      answers: object.digest,
      compared_with: reference?.seq ?? null,
      verdict: compared?.verdict ?? 'reference',
      largest_logprob_difference: compared?.largest ?? null,
    };
    const seq = this.#append([draft], [object]);
    if (reference === undefined) this.#reference.set(model, { seq, answers });
  }
}

function nameOf(session: string, model: string) {
  return { session, service: `${model}#0`, model };
}

function originOf({ origin }: { readonly origin: string | Readonly<Record<string, string>> }, model: string) {
  return typeof origin === 'string' ? origin : (origin[model] ?? '');
}

/** What a server of the common kind says of itself; its clock goes on. */
function description(model: string, session: number, seconds: number): Buffer {
  const now = 1_790_000_000 + session * 1000 + seconds;
  const card = {
    id: model,
    object: 'model',
    created: now,
    permission: [{ id: `perm-${now}` }],
    max_model_len: 4096,
  };
  return describedBytes({
    '/v1/models': Buffer.from(canonicalText({ object: 'list', data: [card] })),
    '/version': Buffer.from(canonicalText({ version: `0.10.${session - 1}` })),
    '/props': null,
    '/get_server_info': null,
    '/server_info': Buffer.from(canonicalText({ dtype: 'bfloat16', port: 9000 + session, uptime: seconds })),
  });
}

/** An answer of two tokens: with numbers to the first prompt, with bytes to the others. */
export function canaryBody(model: string, prompt: number, drift: number): string {
  const token = (text: string, logprob: number) => ({
    token: text,
    logprob,
    ...(prompt === 0 ? {} : { bytes: [...Buffer.from(text)] }),
    top_logprobs: [],
  });
  const content = [token('1', -0.25 - drift), token('2', -1.5)];
  const choice = {
    index: 0,
    message: { role: 'assistant', content: '12' },
    logprobs: { content },
    finish_reason: 'length',
    ...(prompt === 0 ? { token_ids: [17, 18] } : {}),
  };
  return JSON.stringify({
    id: 'chatcmpl-canary',
    object: 'chat.completion',
    model,
    choices: [choice],
    ...(prompt === 0 ? { prompt_token_ids: [1, 2, 3] } : {}),
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  });
}
