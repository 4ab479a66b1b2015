import { BoundbookError, type Fault } from '../core/errors.js';

const MAX_LISTED = 50;

/** Collects faults of task files; the first are kept, all are counted. */
export class TaskFaults {
  readonly #listed: Fault[] = [];
  #total = 0;

  get total(): number {
    return this.#total;
  }

  /** @param line 1-based, when the fault lies in one line */
  add(file: string, line: number | null, message: string, hint: string): void {
    this.#total++;
    if (this.#listed.length >= MAX_LISTED) return;
    const place = line === null ? { where: file } : { where: `${file}:${line}`, line };
    this.#listed.push({ ...place, message, hint });
  }

  /** The faults that are kept. */
  get listed(): readonly Fault[] {
    return this.#listed;
  }

  /** @throws {BoundbookError} TASKS_INVALID when there is a fault. */
  throwIfAny(): void {
    if (this.#total === 0) return;
    const more = this.#total > MAX_LISTED ? `; the first ${MAX_LISTED} are listed` : '';
    const message = `the task files have ${this.#total === 1 ? 'a fault' : `${this.#total} faults`}${more}`;
    throw new BoundbookError('TASKS_INVALID', message, {
      hint: 'Labels and rosters are bound as they are: restore the file, or correct what the protocol declares.',
      evidence: { total: this.#total },
      faults: this.#listed,
    });
  }
}
