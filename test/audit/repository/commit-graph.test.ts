import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CommitGraph, type Standing } from '../../../src/audit/repository/commit-graph.js';

/** Parents of commit i are among those after it, as in a list with every commit before its parents. */
const histories = fc
  .integer({ min: 1, max: 12 })
  .chain((size) =>
    fc.tuple(
      ...Array.from({ length: size }, (_, i) =>
        i === size - 1
          ? fc.constant<number[]>([])
          : fc.uniqueArray(fc.integer({ min: i + 1, max: size - 1 }), { maxLength: 3 }),
      ),
    ),
  );

function listOf(parents: readonly (readonly number[])[]): string {
  return parents.map((of, i) => [`c${i}`, ...of.map((p) => `c${p}`)].join(' ')).join('\n');
}

/** All strict ancestors, by following parents. */
function ancestors(parents: readonly (readonly number[])[], i: number): ReadonlySet<number> {
  const found = new Set<number>();
  const visit = (at: number): void => {
    for (const parent of parents[at] ?? []) {
      if (found.has(parent)) continue;
      found.add(parent);
      visit(parent);
    }
  };
  visit(i);
  return found;
}

describe('the history of a repository', () => {
  it('tells standings and ways as following the parents does', () => {
    fc.assert(
      fc.property(histories, fc.array(fc.nat(11), { maxLength: 4 }), (parents, wanted) => {
        const plans = [...new Set(wanted.filter((i) => i < parents.length))];
        const graph = new CommitGraph(listOf(parents));
        const all = parents.map((_, i) => i);
        const expected = all.map((i): Standing => {
          if (plans.some((plan) => ancestors(parents, i).has(plan))) return 'after';
          if (plans.includes(i)) return 'together';
          return plans.some((plan) => ancestors(parents, plan).has(i)) ? 'before' : 'apart';
        });
        const names = (list: readonly number[]) => list.map((i) => `c${i}`);
        expect(graph.standings(names(all), names(plans))).toEqual(expected);
        for (const i of all) {
          const path = graph.pathDown(`c${i}`, names(plans));
          expect(path === null).toBe(expected[i] !== 'after');
          if (path === null) continue;
          expect(path[0]).toBe(`c${i}`);
          expect(names(plans)).toContain(path.at(-1));
          for (const [k, commit] of path.slice(0, -1).entries()) {
            const of = parents[Number(commit.slice(1))] ?? [];
            expect(names(of)).toContain(path[k + 1]);
          }
        }
      }),
      { seed: 5, numRuns: 500 },
    );
  });

  it('knows nothing of commits that are not in it', () => {
    const graph = new CommitGraph('a b\nb\n');
    expect(graph.standings(['x', 'a', 'b'], ['b', 'y'])).toEqual(['apart', 'after', 'together']);
    expect(graph.pathDown('x', ['b'])).toBeNull();
    expect(new CommitGraph('').standings(['a'], [])).toEqual(['apart']);
  });
});
