/** How many tasks' requests and candidates' grades are kept, since reps and equal answers meet them again. */
export const REMEMBERED = 16_384;

/** Remembers what was computed for a key, up to a number of keys; then it begins anew. Only for pure functions. */
export class Memo<K, T> {
  readonly #limit: number;
  readonly #values = new Map<K, T>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: K, compute: () => T): T {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    if (this.#values.size >= this.#limit) this.#values.clear();
    const value = compute();
    this.#values.set(key, value);
    return value;
  }
}
