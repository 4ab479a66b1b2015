import type { Region } from './region.js';

/**
 * The regular files of a bundle, wherever it lies. Only paths that a bundle can hold are among them; what else was met is
 * listed, and never opened.
 */
export interface BundleFiles {
  readonly form: 'folder' | 'tar';
  /** What the bundle is called here. */
  readonly name: string;
  /** By path, in no particular order. */
  readonly sizes: ReadonlyMap<string, number>;
  /** What lies there that no bundle holds. */
  readonly strangers: readonly Stranger[];
  /** Opens a file of {@link sizes}. It stays open until {@link close}. @throws {BoundbookError} FILE_UNREADABLE and the like. */
  open(path: string): Region;
  close(): void;
}

export interface Stranger {
  readonly path: string;
  /** What is wrong with it. */
  readonly what: string;
}

/** How many names of a folder or members of a tar are looked at: a bundle has a few, and one for each checkpoint. */
export const MAX_NAMES = 100_000;
/** How many strangers are kept. */
const MAX_STRANGERS = 1000;

/** Gathers the files of a bundle: each path once, no two that differ in case only. */
export class FileList {
  readonly sizes = new Map<string, number>();
  readonly strangers: Stranger[] = [];
  readonly #folded = new Map<string, string>();
  #names = 0;

  /** Counts one name; false when there are too many. */
  count(): boolean {
    this.#names++;
    // Said however many strangers came before.
    if (this.#names === MAX_NAMES + 1) {
      this.strangers.push({
        path: '',
        what: `there are more than ${MAX_NAMES} names: the others were not looked at`,
      });
    }
    return this.#names <= MAX_NAMES;
  }

  /** Takes up a file; false when its path is taken. */
  add(path: string, size: number): boolean {
    const other = this.#folded.get(path.toLowerCase());
    if (other !== undefined) {
      this.stranger(path, other === path ? 'the path occurs twice' : `it differs from ${other} in case only`);
      return false;
    }
    this.#folded.set(path.toLowerCase(), path);
    this.sizes.set(path, size);
    return true;
  }

  stranger(path: string, what: string): void {
    if (this.strangers.length < MAX_STRANGERS) this.strangers.push({ path: path.slice(0, 1000), what });
  }
}
