import type { AttemptKind } from '../attempts/slot-state.js';
import type { Violation } from '../attempts/violation.js';
import type { Digest } from '../core/digest.js';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { modelName } from '../slots/model-name.js';
import type { SlotKey } from '../slots/slot.js';
import type { EntryOf } from './entries/entry.js';
import type { ServiceRecord, Session } from './sessions.js';

/** An entry that later ones of its model are held against. */
export interface ServiceMark {
  readonly seq: number;
  readonly object: Digest;
}

/** One member for each field of {@link ServiceMarks}; by model. */
export interface ServiceMarksSnapshot {
  readonly descriptions: readonly (readonly [string, ServiceMark])[];
  readonly canaries: readonly (readonly [string, ServiceMark])[];
}

type Service = OpenaiRunner['service'];

/**
 * What services say of themselves and how they answer fixed prompts: which entry is held against which, and what may not
 * be started. Whether the objects say so is for the audit.
 */
export class ServiceMarks {
  readonly #descriptions = new Map<string, ServiceMark>();
  readonly #canaries = new Map<string, ServiceMark>();

  snapshot(): ServiceMarksSnapshot {
    return { descriptions: [...this.#descriptions], canaries: [...this.#canaries] };
  }

  restore({ descriptions, canaries }: ServiceMarksSnapshot): void {
    for (const [model, mark] of descriptions) this.#descriptions.set(model, mark);
    for (const [model, mark] of canaries) this.#canaries.set(model, mark);
  }

  /** The first description of a model's service in the ledger. */
  description(model: string): ServiceMark | null {
    return this.#descriptions.get(model) ?? null;
  }

  /** The canary that all others of the model are held against. */
  canary(model: string): ServiceMark | null {
    return this.#canaries.get(model) ?? null;
  }

  /** Takes a service that is up. */
  up({ seq, model, effective }: EntryOf<'service.started' | 'service.attached'>): void {
    if (effective !== null && !this.#descriptions.has(model)) {
      this.#descriptions.set(model, { seq, object: effective });
    }
  }

  describe(
    { model, at, effective, compared_with, changed, total }: EntryOf<'service.described'>,
    record: ServiceRecord,
  ): Violation | null {
    const own = record.up;
    if (own === null || own.object === null) return forbid('the service never said anything of itself');
    const due = at === 'end' ? own.seq : (this.#descriptions.get(model)?.seq ?? own.seq);
    if (at === 'start' && due === own.seq) return forbid('it is the first of its model');
    if (compared_with !== due) return forbid(`it is held against entry ${compared_with}, due is ${due}`);
    if (at === 'start' && effective !== own.object)
      return forbid('it is not what the service said at its start');
    return total < changed.length || (total > changed.length && changed.length < 50)
      ? forbid(`${changed.length} of ${total} differences are listed`)
      : null;
  }

  recordCanary(entry: EntryOf<'canary.recorded'>, record: ServiceRecord, service: Service): Violation | null {
    const { seq, model, at, answers, compared_with, verdict } = entry;
    if (service.canary === undefined) return forbid('the plan declares no canary');
    if (record.canaries[at] !== null) return forbid(`the canary at its ${at} was recorded before`);
    const reference = this.#canaries.get(model) ?? null;
    if (compared_with !== (reference?.seq ?? null)) {
      return forbid(`it is held against entry ${compared_with}, the reference is ${reference?.seq ?? null}`);
    }
    if ((verdict === 'reference') !== (reference === null))
      return forbid('the first canary of a model is the reference, and no other');
    if (at === 'end' && record.canaries.start === null) return forbid('there was none at its start');
    record.canaries[at] = verdict;
    if (reference === null) this.#canaries.set(model, { seq, object: answers });
    return null;
  }
}

/** Nothing generates under a service that did not answer its canary, or answered it otherwise. */
export function canaryFault(
  { kind, key }: { readonly kind: AttemptKind; readonly key: Pick<SlotKey, 'arm' | 'trainingSeed'> },
  session: Session | undefined,
  protocol: Protocol,
): Violation | null {
  const { runner } = protocol;
  if (kind === 'regrade' || runner.adapter !== 'openai' || runner.service.canary === undefined) return null;
  const model = modelName(protocol, key);
  let latest: ServiceRecord | null = null;
  for (const record of session?.services.values() ?? []) {
    if (record.model === model && record.up !== null) latest = record;
  }
  const verdict = latest?.canaries.start ?? null;
  if (verdict === 'reference' || verdict === 'same') return null;
  return forbid(
    verdict === null
      ? `no service of ${model} had answered the canary`
      : `the service of ${model} answered the canary otherwise than before`,
  );
}

function forbid(message: string): Violation {
  return { clause: 'P10', message };
}
