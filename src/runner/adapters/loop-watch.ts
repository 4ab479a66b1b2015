import type { LoopStop } from '../../protocol/schema/conditions.js';

/** White space that ends a word: what graders trim. */
const SPACES = /[\t-\r ]/;
const HIGH_SURROGATE = /[\ud800-\udbff]$/;

/**
 * The declared stop rule (B10): it fires as soon as one n-gram of units stands `repeats` times within the last `window`
 * units, overlaps included. A unit counts when it is complete: a word when white space follows it, a character (code
 * point) when both its halves are there. So what it says depends on the text alone, not on the pieces that it comes in.
 * Each unit costs one n-gram.
 */
export class LoopWatch {
  readonly #rule: LoopStop;
  /** The last `window` units, as a ring. */
  readonly #units: string[] = [];
  readonly #counts = new Map<string, number>();
  #seen = 0;
  /** The unit that is not complete. */
  #rest = '';
  #fired = false;

  constructor(rule: LoopStop) {
    this.#rule = rule;
  }

  /** Takes further text. @returns whether the rule has fired */
  feed(text: string): boolean {
    if (this.#fired || text === '') return this.#fired;
    if (this.#rule.unit === 'words') this.#feedWords(text);
    else this.#feedCharacters(text);
    return this.#fired;
  }

  #feedWords(text: string): void {
    const parts = text.split(SPACES);
    for (const [i, part] of parts.entries()) {
      this.#rest += part;
      if (i === parts.length - 1) return;
      if (this.#rest !== '') this.#take(this.#rest);
      this.#rest = '';
    }
  }

  #feedCharacters(text: string): void {
    const whole = this.#rest + text;
    const half = HIGH_SURROGATE.exec(whole);
    this.#rest = half === null ? '' : half[0];
    for (const character of half === null ? whole : whole.slice(0, -1)) this.#take(character);
  }

  #take(unit: string): void {
    const { length, repeats, window } = this.#rule;
    if (this.#seen >= window) this.#forget();
    this.#units[this.#seen % window] = unit;
    this.#seen++;
    if (this.#seen < length) return;
    const gram = this.#gram(this.#seen - length);
    const count = (this.#counts.get(gram) ?? 0) + 1;
    this.#counts.set(gram, count);
    if (count >= repeats) this.#fired = true;
  }

  /** The oldest unit leaves the window, and with it the n-gram that it begins. */
  #forget(): void {
    const gram = this.#gram(this.#seen - this.#rule.window);
    const count = (this.#counts.get(gram) ?? 0) - 1;
    if (count > 0) this.#counts.set(gram, count);
    else this.#counts.delete(gram);
  }

  /** The n-gram that begins at a position. Words hold no white space, so that it tells n-grams apart. */
  #gram(start: number): string {
    const { length, unit, window } = this.#rule;
    let gram = '';
    for (let i = start; i < start + length; i++)
      gram += (unit === 'words' ? ' ' : '') + this.#units[i % window];
    return gram;
  }
}
