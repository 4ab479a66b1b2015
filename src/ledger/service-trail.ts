import type { Protocol } from '../protocol/schema/protocol.js';
import { modelName } from '../slots/model-name.js';
import type { Entry, EntryOf } from './entries/entry.js';

/** A service that described itself otherwise than before. */
export interface DescriptionChange {
  readonly seq: number;
  readonly model: string;
  readonly service: string;
  readonly at: 'start' | 'end';
  /** JSON pointers, some of them. */
  readonly changed: readonly string[];
  readonly total: number;
}

/** A service that answered the canary otherwise than the reference. */
export interface CanaryDoubt {
  readonly seq: number;
  readonly model: string;
  readonly service: string;
  readonly at: 'start' | 'end';
  /** Position of the last canary of the model that agreed. */
  readonly since: number;
  /** Attempts that generate, of the model, that were started between the two. */
  readonly attempts: number;
}

/** A session that ended because a service was found to be another one while it was in use. */
export interface ServiceSwap {
  readonly seq: number;
  readonly model: string;
  /** Position at which the model's service was last found to be the bound one. */
  readonly since: number;
  /** Attempts that generate, of the model, that were started between the two. */
  readonly attempts: number;
}

interface Pace {
  readonly since: number;
  attempts: number;
}

/**
 * When the services of each model were last found to be the bound one: when they started, or answered the canary of a start
 * as ever.
 * Takes entries in order.
 */
export class CheckTrail {
  readonly #protocol: Protocol;
  /** By model. */
  readonly #paces = new Map<string, Pace>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  last(model: string): Readonly<Pace> | null {
    return this.#paces.get(model) ?? null;
  }

  take(entry: Entry): void {
    switch (entry.type) {
      case 'attempt.started': {
        const pace = entry.kind === 'regrade' ? undefined : this.#paces.get(modelOf(this.#protocol, entry));
        if (pace !== undefined) pace.attempts++;
        return;
      }
      case 'canary.recorded':
        // One at the end of a service says nothing of what was found while it was in use.
        if (entry.verdict === 'differs' || entry.at === 'end') return;
        this.#paces.set(entry.model, { since: entry.seq, attempts: 0 });
        return;
      case 'service.started':
      case 'service.attached':
        this.#paces.set(entry.model, { since: entry.seq, attempts: 0 });
        return;
      default:
    }
  }
}

/** What the entries say of services that changed. Takes a ledger's entries in order. */
export class ServiceTrail {
  readonly changes: DescriptionChange[] = [];
  readonly doubts: CanaryDoubt[] = [];
  readonly swaps: ServiceSwap[] = [];
  readonly #protocol: Protocol;
  /** Since canaries that agreed, by model. */
  readonly #paces = new Map<string, Pace>();
  readonly #checks: CheckTrail;
  /** By session, the model in whose service a change was last seen, or else the one that was last attempted. */
  readonly #suspects = new Map<string, { readonly model: string; readonly isSeen: boolean }>();
  /** Sessions whose canary says what is in doubt. */
  readonly #told = new Set<string>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
    this.#checks = new CheckTrail(protocol);
  }

  take(entry: Entry): void {
    this.#checks.take(entry);
    switch (entry.type) {
      case 'attempt.started':
        this.#attempt(entry);
        return;
      case 'service.described':
        this.#description(entry);
        return;
      case 'canary.recorded':
        this.#canary(entry);
        return;
      case 'run.paused':
        this.#pause(entry);
        return;
      default:
    }
  }

  #attempt(entry: EntryOf<'attempt.started'>): void {
    const { session, kind } = entry;
    if (kind === 'regrade' || this.#protocol.runner.adapter !== 'openai') return;
    const model = modelOf(this.#protocol, entry);
    const pace = this.#paces.get(model);
    if (pace !== undefined) pace.attempts++;
    if (this.#suspects.get(session)?.isSeen !== true) this.#suspects.set(session, { model, isSeen: false });
  }

  #description({ seq, session, model, service, at, changed, total }: EntryOf<'service.described'>): void {
    if (total > 0) this.changes.push({ seq, model, service, at, changed: changed.slice(0, 3), total });
    const isListed = at === 'end' && changed.some((pointer) => pointer.startsWith(LISTED));
    if (isListed) this.#suspects.set(session, { model, isSeen: true });
  }

  #canary({ seq, session, model, service, at, verdict }: EntryOf<'canary.recorded'>): void {
    if (verdict !== 'differs') {
      this.#paces.set(model, { since: seq, attempts: 0 });
      return;
    }
    const { since, attempts } = this.#paces.get(model) ?? { since: seq, attempts: 0 };
    this.doubts.push({ seq, model, service, at, since, attempts });
    this.#told.add(session);
  }

  #pause({ seq, session, reason }: EntryOf<'run.paused'>): void {
    const suspect = this.#suspects.get(session);
    if (reason !== 'service_changed' || suspect === undefined || this.#told.has(session)) return;
    const { since, attempts } = this.#checks.last(suspect.model) ?? { since: seq, attempts: 0 };
    this.swaps.push({ seq, model: suspect.model, since, attempts });
  }
}

/** Where a description holds the list of models. */
const LISTED = '/~1v1~1models';

function modelOf(protocol: Protocol, { key }: EntryOf<'attempt.started'>): string {
  return modelName(protocol, { arm: key.arm, trainingSeed: key.training_seed });
}
