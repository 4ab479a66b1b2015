import { canonicalText } from '../core/canonical-json.js';
import type { Digest } from '../core/digest.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import type { Entry, EntryOf } from '../ledger/entries/entry.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import {
  type CanaryReading,
  canaryAnswers,
  canaryRequests,
  compareCanaries,
  readCanary,
} from '../runner/canary-reading.js';
import { descriptionChanges } from '../runner/self-description.js';
import { shorten } from './difference.js';
import type { Findings } from './finding.js';
import type { ObjectShelf } from './objects.js';
import type { Unchecked } from './unchecked.js';

export interface ServiceSetting {
  readonly protocol: Protocol;
  readonly shelf: ObjectShelf;
  readonly findings: Findings;
  readonly unchecked: Unchecked;
}

/** Recomputes from the objects what is said of how services described themselves and answered the canary (P10). */
export class ServiceEvidence {
  readonly #setting: ServiceSetting;
  /** Descriptions and canaries by the position of their entry. */
  readonly #objects = new Map<number, Digest>();

  constructor(setting: ServiceSetting) {
    this.#setting = setting;
  }

  check(entry: Entry): void {
    switch (entry.type) {
      case 'service.started':
      case 'service.attached':
        if (entry.effective !== null) this.#objects.set(entry.seq, entry.effective);
        return;
      case 'service.described':
        this.#description(entry);
        return;
      case 'canary.recorded':
        this.#objects.set(entry.seq, entry.answers);
        this.#canary(entry);
        return;
      default:
    }
  }

  #description({ seq, at, effective, compared_with, changed, total }: EntryOf<'service.described'>): void {
    const before = this.#read(this.#objects.get(compared_with), seq, '/compared_with', 'description');
    const after = this.#read(effective, seq, '/effective', 'description');
    if (before === null || after === null) return;
    const due = descriptionChanges(before, after, at);
    if (due.total === total && canonicalText(due.changed) === canonicalText(changed)) return;
    this.#setting.findings.add({
      code: 'DESCRIPTION_DIFFERS',
      where: { seq, pointer: '/changed', object: effective },
      message: `the descriptions differ at ${due.total} places, the entry says ${total}, or names others`,
      evidence: { expected: shorten([...due.changed]), actual: shorten([...changed]) },
    });
  }

  #canary(entry: EntryOf<'canary.recorded'>): void {
    const { seq, answers, compared_with, verdict, largest_logprob_difference: largest, model } = entry;
    const { protocol } = this.#setting;
    const canary = protocol.runner.adapter === 'openai' ? protocol.runner.service.canary : undefined;
    if (canary === undefined) return;
    const own = this.#read(answers, seq, '/answers', 'canary');
    const readings = own === null ? null : this.#readings(own, model, seq, answers);
    if (readings === null || compared_with === null) return;
    const reference = this.#read(this.#objects.get(compared_with), seq, '/compared_with', 'canary');
    if (reference === null) return;
    const before = readingsIn(reference, model);
    if (before === null) return;
    const due = compareCanaries(before, readings, canary.logprob_tolerance);
    if (due.verdict === verdict && due.largest === largest) return;
    this.#setting.findings.add({
      code: 'CANARY_DIFFERS',
      where: { seq, pointer: '/verdict', object: answers },
      message: `the answers say ${due.verdict} (largest difference ${due.largest}), the entry ${verdict} (${largest})`,
      evidence: { expected: { ...due }, actual: { verdict, largest } },
    });
  }

  /** The readings of a canary's answers, when they are of the prompts of the plan and say what is kept beside them. */
  #readings(object: Buffer, model: string, seq: number, digest: Digest): readonly CanaryReading[] | null {
    const { runner } = this.#setting.protocol;
    const canary = runner.adapter === 'openai' ? runner.service.canary : undefined;
    if (runner.adapter !== 'openai' || canary === undefined) return null;
    const bodies = canaryAnswers(object)?.map(({ body = null }) => body) ?? [];
    const readings = readingsIn(object, model);
    const requests = canaryRequests(runner.endpoint, canary, model);
    const due = requests.map((request, i) => ({ request, body: bodies[i] ?? null, ...readings?.[i] }));
    const sound =
      readings?.length === requests.length && canonicalText({ answers: due }) === object.toString('utf8');
    if (sound) return readings;
    this.#setting.findings.add({
      code: 'CANARY_DIFFERS',
      where: { seq, pointer: '/answers', object: digest },
      message: 'the kept answers are not to the prompts of the plan, or not what is said to stand in them',
    });
    return null;
  }

  #read(
    digest: Digest | undefined,
    seq: number,
    pointer: string,
    kind: 'description' | 'canary',
  ): Buffer | null {
    const { shelf, unchecked } = this.#setting;
    if (digest === undefined) return null;
    const bytes = shelf.read(digest, { seq, pointer });
    if (bytes === null && shelf.isRedacted(digest)) unchecked.add(kind);
    return bytes;
  }
}

/** What the bodies in the object of a canary hold; null when one of them is no answer. */
function readingsIn(object: Buffer, model: string): readonly CanaryReading[] | null {
  const readings = canaryAnswers(object)?.map((answer) => readingOf(answer, model));
  return readings?.every((reading) => reading !== null) ? readings : null;
}

function readingOf({ body }: JsonObject, model: string): CanaryReading | null {
  const text: JsonValue = body ?? null;
  const reading = typeof text === 'string' ? readCanary(Buffer.from(text, 'utf8'), model) : '';
  return typeof reading === 'string' ? null : reading;
}
