import type { Protocol } from '../protocol/schema/protocol.js';
import { modelName } from '../slots/model-name.js';
import type { Entry } from './entries/entry.js';

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

interface Pace {
  readonly since: number;
  attempts: number;
}

/** What the entries say of services that changed. Takes a ledger's entries in order. */
export class ServiceTrail {
  readonly changes: DescriptionChange[] = [];
  readonly doubts: CanaryDoubt[] = [];
  readonly #protocol: Protocol;
  /** By model. */
  readonly #paces = new Map<string, Pace>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  take(entry: Entry): void {
    if (entry.type === 'attempt.started') {
      if (entry.kind === 'regrade' || this.#paces.size === 0) return;
      const { arm, training_seed: trainingSeed } = entry.key;
      const pace = this.#paces.get(modelName(this.#protocol, { arm, trainingSeed }));
      if (pace !== undefined) pace.attempts++;
    } else if (entry.type === 'service.described') {
      const { seq, model, service, at, changed, total } = entry;
      if (total > 0) this.changes.push({ seq, model, service, at, changed: changed.slice(0, 3), total });
    } else if (entry.type === 'canary.recorded') {
      const { seq, model, service, at, verdict } = entry;
      if (verdict !== 'differs') this.#paces.set(model, { since: seq, attempts: 0 });
      else {
        const { since, attempts } = this.#paces.get(model) ?? { since: seq, attempts: 0 };
        this.doubts.push({ seq, model, service, at, since, attempts });
      }
    }
  }
}
