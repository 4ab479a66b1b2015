/** A vocabulary of single characters. */
export class CharTokenizer {
  readonly #ids: ReadonlyMap<string, number>;
  readonly #characters: readonly string[];

  /** @throws Error unless the map gives every id from 0 on to exactly one single character. */
  constructor(vocab: Readonly<Record<string, number>>) {
    const entries = Object.entries(vocab);
    const characters: string[] = new Array(entries.length).fill('');
    for (const [character, id] of entries) {
      if ([...character].length !== 1)
        throw new Error(`token ${JSON.stringify(character)} isn't one character`);
      if (characters[id] !== '') throw new Error(`token id ${id} is out of range or taken twice`);
      characters[id] = character;
    }
    this.#ids = new Map(entries);
    this.#characters = characters;
  }

  get size(): number {
    return this.#characters.length;
  }

  /** Token ids of a text, or the first character that isn't in the vocabulary. */
  encode(text: string): { readonly ids: readonly number[] } | { readonly unknown: string } {
    const ids: number[] = [];
    for (const character of text) {
      const id = this.#ids.get(character);
      if (id === undefined) return { unknown: character };
      ids.push(id);
    }
    return { ids };
  }

  /** The character of a token. */
  character(id: number): string {
    const character = this.#characters[id];
    if (character === undefined) throw new Error(`no token ${id}`);
    return character;
  }
}
