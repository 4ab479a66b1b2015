import { fingerprintsIn } from '../runner/adapters/fingerprint.js';
import { shown } from './difference.js';

/** Systems of a model that are named, and kept in memory. */
const MAX_NAMED = 10;

/** What kept answers say of the systems that gave them (F-59, `system_fingerprint`), by model. */
export class AnsweringSystems {
  /** By model and fingerprint, the position of the first answer. */
  readonly #first = new Map<string, Map<string, number>>();

  take(model: string, seq: number, body: Buffer): void {
    for (const fingerprint of fingerprintsIn(body)) {
      const known = this.#first.get(model) ?? new Map<string, number>();
      this.#first.set(model, known);
      if (!known.has(fingerprint) && known.size < MAX_NAMED) known.set(fingerprint, seq);
    }
  }

  remarks(): readonly string[] {
    return [...this.#first]
      .filter(([, known]) => known.size > 1)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([model, known]) => {
        const named = [...known].map(([fingerprint, seq]) => `${shown(fingerprint)} from entry ${seq} on`);
        return `answers of ${model} are from more than one system (system_fingerprint): ${named.join(', ')}`;
      });
  }
}
