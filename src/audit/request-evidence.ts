import { canonicalBytes } from '../core/canonical-json.js';
import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Work } from '../runner/adapters/adapter.js';
import { trialRequest } from '../runner/adapters/harbor.js';
import { buildRequest } from '../runner/adapters/openai-request.js';
import { renderPrompt } from '../runner/prompt.js';
import { slotTuple } from '../slots/slot.js';
import { differences, shorten, shown } from './difference.js';
import type { Findings } from './finding.js';
import { Memo, REMEMBERED } from './memo.js';
import type { ObjectShelf } from './objects.js';
import type { PlannedTask, PlannedWork } from './planned-work.js';
import type { Unchecked } from './unchecked.js';

const MAX_DIFFERENCES = 20;

export interface RequestSetting {
  readonly protocol: Protocol;
  readonly manifest: Digest;
  readonly shelf: ObjectShelf;
  readonly findings: Findings;
  readonly unchecked: Unchecked;
}

/** What of a start its request is judged by. */
export type StartedRequest = Pick<
  EntryOf<'attempt.started'>,
  'seq' | 'slot' | 'attempt' | 'kind' | 'request'
>;

/** Recomputes the requests of attempts from the plan. */
export class RequestCheck {
  readonly #protocol: Protocol;
  readonly #manifest: Digest;
  readonly #shelf: ObjectShelf;
  readonly #findings: Findings;
  readonly #unchecked: Unchecked;
  readonly #requests = new Memo<number, readonly [string, string] | null>(REMEMBERED);

  constructor({ protocol, manifest, shelf, findings, unchecked }: RequestSetting) {
    this.#unchecked = unchecked;
    this.#protocol = protocol;
    this.#manifest = manifest;
    this.#shelf = shelf;
    this.#findings = findings;
  }

  /** Checks the request of a started attempt (P17, P18). */
  check(entry: StartedRequest, work: PlannedWork): void {
    const where = { seq: entry.seq, slot: entry.slot, pointer: '/request' };
    if ((entry.request === null) !== (entry.kind === 'regrade')) {
      const message =
        entry.request === null ? 'an attempt that generates names no request' : 'a regrade sends no request';
      this.#findings.add({ code: 'REQUEST_DIFFERS', where, message });
    }
    if (entry.request === null) return;
    const bytes = this.#shelf.read(entry.request, where);
    const { fields } = work;
    if (fields === null || this.#shelf.isRedacted(entry.request)) this.#unchecked.add('request');
    if (bytes === null || fields === null) return;
    const expected = this.#expectedRequest(entry, { ...work, fields }, bytes);
    if (digestOf(expected) === entry.request) return;
    const place = { ...where, object: entry.request };
    const found = parseOrNull(bytes);
    const wanted = parseOrNull(Buffer.from(expected));
    const lines = found === null || wanted === null ? [] : differences(wanted, found, MAX_DIFFERENCES);
    if (lines.length === 0) {
      this.#findings.add({ code: 'REQUEST_DIFFERS', where: place, message: 'the request has another form' });
    }
    for (const { pointer, expected: due, actual } of lines) {
      this.#findings.add({
        code: 'REQUEST_DIFFERS',
        clause: /\/(seed|sampling_seed)$/.test(pointer) ? 'P18' : 'P17',
        where: { ...place, pointer: `/request${pointer}` },
        message: `the request says ${shown(actual)} at ${pointer}; the plan fixes ${shown(due)}`,
        evidence: { expected: shorten(due), actual: shorten(actual) },
      });
    }
  }

  #expectedRequest(entry: StartedRequest, work: Work & PlannedTask, bytes: Buffer): Buffer | string {
    const { runner } = this.#protocol;
    const { number, condition, model, fields, samplingSeed } = work;
    if (runner.adapter === 'openai') {
      const { endpoint, stream } = runner;
      // The slots of one task differ in nothing but the seed.
      const parts = this.#requests.get(number, () =>
        aroundSeed(buildRequest(endpoint, condition, model, fields, 0, stream).toString('utf8')),
      );
      return parts === null
        ? buildRequest(endpoint, condition, model, fields, samplingSeed, stream)
        : parts[0] + samplingSeed + parts[1];
    }
    if (runner.adapter === 'harbor') {
      return canonicalBytes(trialRequest(runner, this.#manifest, work, entry.attempt, placesIn(bytes)));
    }
    return canonicalBytes({
      boundbook: 1,
      stage: 'generate',
      attempt: entry.attempt,
      slot: { id: entry.slot, tuple: slotTuple(work.slot) },
      model: { ...placesIn(bytes), name: model },
      task: { id: work.slot.task, fields },
      prompt: { ...renderPrompt(condition, fields) },
      decoding: condition.decoding,
      reasoning: condition.reasoning ?? null,
      execution: condition.execution ?? {},
      sampling_seed: samplingSeed,
    });
  }
}

/**
 * The text before and after the seed of a request that was built with seed 0; null when that is not plain. A quote inside
 * a string is escaped, so that the text of a prompt cannot stand for the member.
 */
function aroundSeed(request: string): readonly [string, string] | null {
  const [before, after, more] = request.split('"seed":0,');
  return before === undefined || after === undefined || more !== undefined
    ? null
    : [`${before}"seed":`, `,${after}`];
}

/** Where weights and tokenizer lay on the host that ran it, as the request says: no part of the plan. */
function placesIn(bytes: Buffer): { readonly weights: JsonValue; readonly tokenizer: JsonValue } {
  const request = objectOrNull(parseOrNull(bytes));
  const model = objectOrNull(request?.model ?? null);
  const place = (value: JsonValue | undefined): JsonValue => (typeof value === 'string' ? value : null);
  return { weights: place(model?.weights), tokenizer: place(model?.tokenizer) };
}

function objectOrNull(value: JsonValue): Readonly<Record<string, JsonValue | undefined>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, JsonValue | undefined>>)
    : null;
}

function parseOrNull(bytes: Uint8Array): JsonValue {
  try {
    return parseStrictJson(bytes, 'the object');
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}
