/** Where a commit stands to the commits that brought the plan. */
export type Standing =
  /** One of those is its ancestor. */
  | 'after'
  /** It is an ancestor of one of those, and none of those is its ancestor. */
  | 'before'
  /** It brought the plan itself. */
  | 'together'
  /** Neither is in the history of the other. */
  | 'apart';

/** The history of a repository: every commit with its parents. Pure. */
export class CommitGraph {
  readonly #ids: readonly string[];
  readonly #index = new Map<string, number>();
  readonly #parents: readonly (readonly number[])[];

  /** @param list lines `<commit> <parent> …`, every commit before its parents (`git rev-list --topo-order --parents`) */
  constructor(list: string) {
    const rows = list.split('\n').filter((line) => line !== '');
    this.#ids = rows.map((line) => line.split(' ', 1)[0] ?? '');
    for (const [i, id] of this.#ids.entries()) this.#index.set(id, i);
    this.#parents = rows.map((line) =>
      line
        .split(' ')
        .slice(1)
        .flatMap((id) => this.#index.get(id) ?? []),
    );
  }

  /** How each of some commits stands to the commits that brought the plan. */
  standings(commits: readonly string[], plans: readonly string[]): readonly Standing[] {
    const brings = this.#flags(plans);
    const after = this.#descendants(brings);
    const before = this.#ancestors(brings);
    return commits.map((commit) => {
      const i = this.#index.get(commit);
      if (i === undefined) return 'apart';
      if (after[i] === 1) return 'after';
      if (brings[i] === 1) return 'together';
      return before[i] === 1 ? 'before' : 'apart';
    });
  }

  /** The shortest way down from a commit to one of some others, both ends included; null when there is none. */
  pathDown(from: string, to: readonly string[]): readonly string[] | null {
    const start = this.#index.get(from);
    if (start === undefined) return null;
    const ends = this.#flags(to);
    const child = new Map<number, number | null>([[start, null]]);
    const queue = [start];
    for (const i of queue) {
      if (ends[i] === 1 && i !== start) return this.#pathTo(i, child);
      for (const parent of this.#parents[i] ?? []) {
        if (child.has(parent)) continue;
        child.set(parent, i);
        queue.push(parent);
      }
    }
    return null;
  }

  #pathTo(end: number, child: ReadonlyMap<number, number | null>): readonly string[] {
    const path: string[] = [];
    for (let at: number | null = end; at !== null; at = child.get(at) ?? null)
      path.unshift(this.#ids[at] ?? '');
    return path;
  }

  #flags(commits: readonly string[]): Uint8Array {
    const flags = new Uint8Array(this.#ids.length);
    for (const commit of commits) {
      const i = this.#index.get(commit);
      if (i !== undefined) flags[i] = 1;
    }
    return flags;
  }

  /** Parents come after their children, so that one pass from the end reaches every descendant. */
  #descendants(of: Uint8Array): Uint8Array {
    const flags = new Uint8Array(of.length);
    for (let i = of.length - 1; i >= 0; i--) {
      if (this.#parents[i]?.some((parent) => of[parent] === 1 || flags[parent] === 1)) flags[i] = 1;
    }
    return flags;
  }

  #ancestors(of: Uint8Array): Uint8Array {
    const flags = new Uint8Array(of.length);
    for (const [i, parents] of this.#parents.entries()) {
      if (of[i] !== 1 && flags[i] !== 1) continue;
      for (const parent of parents) flags[parent] = 1;
    }
    return flags;
  }
}
