import type { DraftOf, EntryDraft } from '../ledger/entries/entry.js';
import { toObject } from '../ledger/objects.js';
import { CheckTrail } from '../ledger/service-trail.js';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { OPERATORS_WORD } from '../protocol/schema/services.js';
import type { CanaryTaken } from './canary.js';
import { type CanaryReading, canaryAnswers, compareCanaries } from './canary-reading.js';
import type { Journal } from './journal.js';
import type { Exit } from './process-group.js';
import { descriptionChanges } from './self-description.js';
import type { Served } from './served.js';

export type StopReason = DraftOf<'service.stopped'>['reason'];
export type CanaryDraft = DraftOf<'canary.recorded'>;

/** A start of a service, as its entries name it. */
export interface ServiceName {
  readonly session: string;
  readonly service: string;
  readonly model: string;
}

/** Writes down what services do, each entry held against those that are there when it is committed. */
export class ServiceRecorder {
  readonly #journal: Journal;
  readonly #protocol: Protocol;
  readonly #runner: OpenaiRunner;

  constructor(journal: Journal, protocol: Protocol, runner: OpenaiRunner) {
    this.#journal = journal;
    this.#protocol = protocol;
    this.#runner = runner;
  }

  /** @returns the places at which it describes itself otherwise than the first service of its model did */
  async up(name: ServiceName, service: Served, start: number): Promise<readonly string[]> {
    const effective = toObject(service.effective);
    const { result } = await this.#journal.decide(() => {
      const first = this.#journal.fold.services.description(name.model);
      const seconds = service.readySeconds;
      const draft: EntryDraft =
        'address' in service.origin
          ? {
              type: 'service.attached',
              ...name,
              origin: service.origin.address,
              accepted: OPERATORS_WORD,
              effective: effective.digest,
              seconds,
            }
          : {
              type: 'service.started',
              ...name,
              ...service.origin,
              start,
              effective: effective.digest,
              seconds,
            };
      if (first === null) return { drafts: [draft], objects: [effective], result: [] };
      const changes = descriptionChanges(this.#journal.object(first.object), service.effective, 'start');
      const described: EntryDraft = {
        type: 'service.described',
        ...name,
        at: 'start',
        effective: effective.digest,
        compared_with: first.seq,
        ...listed(changes),
      };
      return { drafts: [draft, described], objects: [effective], result: changes.changed };
    });
    return result;
  }

  /** @returns the places at which it describes itself otherwise than at its own start */
  async atEnd(name: ServiceName, service: Served, description: Buffer): Promise<readonly string[]> {
    const own = this.#journal.fold.sessions.get(name.session)?.services.get(name.service)?.up;
    if (own === undefined || own === null) return [];
    const changes = descriptionChanges(service.effective, description, 'end');
    const effective = toObject(description);
    await this.#journal.append(
      [
        {
          type: 'service.described',
          ...name,
          at: 'end',
          effective: effective.digest,
          compared_with: own.seq,
          ...listed(changes),
        },
      ],
      [effective],
    );
    return changes.changed;
  }

  /** When this start of a service was last found to be the bound one, and how many attempts of its model began since. */
  lastCheck({ session, service, model }: ServiceName): { readonly since: number; readonly attempts: number } {
    const up = this.#journal.fold.sessions.get(session)?.services.get(service)?.up?.seq;
    const trail = new CheckTrail(this.#protocol);
    if (up !== undefined) for (const entry of this.#journal.entriesFrom(up)) trail.take(entry);
    return trail.last(model) ?? { since: up ?? 0, attempts: 0 };
  }

  async canary(
    name: ServiceName,
    at: CanaryDraft['at'],
    taken: Extract<CanaryTaken, { ok: true }>,
  ): Promise<CanaryDraft> {
    const answers = toObject(taken.bytes);
    const tolerance = this.#runner.service.canary?.logprob_tolerance ?? 0;
    const { result } = await this.#journal.decide(() => {
      const reference = this.#journal.fold.services.canary(name.model);
      const before = reference === null ? null : canaryAnswers(this.#journal.object(reference.object));
      const compared =
        reference === null
          ? null
          : compareCanaries((before ?? []) as unknown as readonly CanaryReading[], taken.answers, tolerance);
      const draft: CanaryDraft = {
        type: 'canary.recorded',
        ...name,
        at,
        answers: answers.digest,
        compared_with: reference?.seq ?? null,
        verdict: compared?.verdict ?? 'reference',
        largest_logprob_difference: compared?.largest ?? null,
      };
      return { drafts: [draft], objects: [answers], result: draft };
    });
    return result;
  }

  async down(
    name: ServiceName,
    reason: StopReason,
    seconds: number,
    { exit_status, signal }: Exit,
  ): Promise<void> {
    const { gpus } = this.#runner.service;
    await this.#journal.append([
      { type: 'service.stopped', ...name, reason, exit_status, signal, seconds, gpus },
    ]);
  }
}

function listed({ changed, total }: { readonly changed: readonly string[]; readonly total: number }) {
  return { changed: [...changed], total };
}
