import { BoundbookError } from '../../core/errors.js';
import type { Findings } from '../finding.js';
import type { CommitGraph, Standing } from './commit-graph.js';
import { Git, type GitOptions } from './git.js';
import {
  commitNamed,
  graphOf,
  type Holder,
  holdersOf,
  onePlaceEach,
  openRepository,
  placesOf,
  presentIn,
  proveHolder,
  provePath,
  type Repository,
} from './history.js';

/**
 * The git check (F-173): does the commit that holds the manifest, byte for byte, come before the one that holds the
 * results? It shows an order inside one history, and no time: dates of commits are what their author sets.
 */

/** A ledger keeps a copy of its manifest among its objects; whoever commits that one commits a run, not the plan. */
const LEDGER_OBJECT = /(^|\/)objects\/[0-9a-f]{2}\/[0-9a-f]{62}$/;

/** How many files beside the results are looked up: each takes a pass through the history. */
const MAX_TRACES = 8;

/** How many commits are listed as evidence. */
const MAX_SHOWN = 20;

/** A file that shows that results were there. */
export interface ResultFile {
  /** How it is called in sentences. */
  readonly label: string;
  readonly bytes: Uint8Array;
}

export interface CommitOrderSetting {
  readonly folder: string;
  readonly manifest: Uint8Array;
  /** The newest first. The first of these that a commit holds stands for the results. */
  readonly results: readonly ResultFile[];
  /** A commit that a person names as that of the results; null: it is looked for. */
  readonly commit: string | null;
}

export interface CommitOrderVerdict {
  readonly order: readonly string[];
  readonly notChecked: readonly string[];
}

/** Commits that hold the results, and the file by which they were found; null where a person named the commit. */
interface Results {
  readonly label: string;
  readonly bytes: Uint8Array | null;
  readonly holders: readonly Holder[];
}

/**
 * @throws {BoundbookError} REPOSITORY_INVALID when the folder is no repository, or has no such commit. Where git is
 * missing or fails, the verdict says so.
 */
export async function auditCommitOrder(
  setting: CommitOrderSetting,
  findings: Findings,
  options: GitOptions = {},
): Promise<CommitOrderVerdict> {
  try {
    const repository = await openRepository(new Git(setting.folder, options));
    return await judge(repository, setting, findings);
  } catch (error) {
    if (!(error instanceof BoundbookError) || error.code !== 'GIT_UNAVAILABLE') throw error;
    return open(error.message);
  }
}

async function judge(
  repository: Repository,
  setting: CommitOrderSetting,
  findings: Findings,
): Promise<CommitOrderVerdict> {
  const results = await resultsOf(repository, setting);
  const commits = (results?.holders ?? []).map(({ commit }) => commit);
  const places = await placesOf(repository, setting.manifest, commits);
  const plans = onePlaceEach(places.filter(({ path }) => !LEDGER_OBJECT.test(path)));
  const ledgers = onePlaceEach(places.filter(({ path }) => LEDGER_OBJECT.test(path)));
  const graph = await graphOf(repository, commits);
  const runs = [ledgersAsResults(ledgers), ...(await tracesOf(repository, setting, results))];
  for (const run of runs) {
    const first = firstOf(graph, run.holders, plans);
    if (first.before === undefined) continue;
    return repository.incomplete === null
      ? withoutOrder(plans, run, first, findings)
      : open(incompleteReason(repository.incomplete, run));
  }
  if (results === null) {
    return open(
      plans.length === 0
        ? 'no commit holds the manifest, and none a report, checkpoint or head'
        : `${holds(plans.at(-1))}; none holds a report, checkpoint or head (--results COMMIT names one)`,
    );
  }
  const standings = graph.standings(
    commits,
    plans.map(({ commit }) => commit),
  );
  const found = (standing: Standing) => results.holders[standings.lastIndexOf(standing)];
  const [before, after] = [found('before'), found('after')];
  if (after !== undefined && before === undefined) {
    const apart = results.holders.filter((_, i) => standings[i] === 'apart');
    return prove(
      repository,
      setting,
      { plans, results, graph, apart, together: firstOf(graph, ledgers, plans).together },
      after,
    );
  }
  if (repository.incomplete !== null) return open(incompleteReason(repository.incomplete, results));
  return withoutOrder(plans, results, { before, together: found('together') }, findings);
}

/** The first of some commits that comes before every commit with the plan, and the first that brings the plan as well. */
function firstOf(
  graph: CommitGraph,
  holders: readonly Holder[],
  plans: readonly Holder[],
): { before: Holder | undefined; together: Holder | undefined } {
  const standings = graph.standings(
    holders.map(({ commit }) => commit),
    plans.map(({ commit }) => commit),
  );
  const found = (standing: Standing) => holders[standings.lastIndexOf(standing)];
  return { before: found('before'), together: found('together') };
}

/** What else shows that a run was there: the oldest of the files that were not taken for the results. */
async function tracesOf(
  repository: Repository,
  setting: CommitOrderSetting,
  results: Results | null,
): Promise<readonly Results[]> {
  const present = await presentIn(repository, setting.results);
  const further = present.filter(({ bytes }) => bytes !== results?.bytes).slice(-MAX_TRACES);
  return Promise.all(
    further.map(async ({ label, bytes }) => ({ label, bytes, holders: await holdersOf(repository, bytes) })),
  );
}

function ledgersAsResults(holders: readonly Holder[]): Results {
  return { label: 'a ledger of it', bytes: null, holders };
}

/** Path as text: git's paths are bytes. */
function holds(holder: Holder | undefined, what = 'the manifest'): string {
  const { commit = '', path = '' } = holder ?? {};
  const place = path === '' ? '' : ` (${Buffer.from(path, 'latin1').toString('utf8')})`;
  return `commit ${commit} holds ${what}${place}`;
}

async function resultsOf(repository: Repository, setting: CommitOrderSetting): Promise<Results | null> {
  if (setting.commit !== null) {
    const commit = await commitNamed(repository, setting.commit);
    return { label: 'the results, as was said', bytes: null, holders: [{ commit, path: '' }] };
  }
  for (const { label, bytes } of await presentIn(repository, setting.results)) {
    const holders = await holdersOf(repository, bytes);
    if (holders.length > 0) return { label, bytes, holders };
  }
  return null;
}

interface FoundOrder {
  readonly plans: readonly Holder[];
  readonly results: Results;
  readonly graph: CommitGraph;
  /** Commits with the results that have nothing to do with the plan. */
  readonly apart: readonly Holder[];
  /** A commit that brings the manifest together with a ledger of it. */
  readonly together: Holder | undefined;
}

async function prove(
  repository: Repository,
  { manifest }: CommitOrderSetting,
  { plans, results, graph, apart, together }: FoundOrder,
  result: Holder,
): Promise<CommitOrderVerdict> {
  const { label, bytes } = results;
  const path =
    graph.pathDown(
      result.commit,
      plans.map(({ commit }) => commit),
    ) ?? [];
  const plan = plans.find(({ commit }) => commit === path.at(-1));
  if (plan === undefined) throw new BoundbookError('INTERNAL', 'a descendant without a way to its ancestor');
  await provePath(repository, path);
  await proveHolder(repository, plan, manifest);
  if (bytes !== null) await proveHolder(repository, result, bytes);
  const steps = path.length - 1;
  return {
    order: [
      `${holds(plan)} and comes before commit ${result.commit}, which holds ${label}: ${steps} ${steps === 1 ? 'step' : 'steps'}, hash by hash`,
    ],
    notChecked: [
      'when the commits were made: their dates are what their author set, and whoever owns a repository can make it anew',
      ...apart
        .slice(0, MAX_SHOWN)
        .map(
          ({ commit }) =>
            `whether commit ${commit}, which holds ${label} too and no manifest in its history, came later`,
        ),
      ...(together === undefined
        ? []
        : [
            `whether the manifest was committed before the run began: commit ${together.commit} brings it and a ledger of it at once`,
          ]),
      ...(bytes === null ? ['whether the commit that was named as that of the results holds them'] : []),
    ],
  };
}

function incompleteReason(incomplete: 'shallow' | 'partial', { label, holders }: Results): string {
  const lacking = incomplete === 'shallow' ? 'a shallow clone lacks history' : 'a partial clone lacks files';
  return `${lacking}, and what is there shows no commit with the manifest before ${holders.at(-1)?.commit}, which holds ${label}`;
}

/** No commit with the plan comes before one with the results, or one with the results comes first. */
function withoutOrder(
  plans: readonly Holder[],
  { label, holders }: Results,
  { before, together }: { before: Holder | undefined; together: Holder | undefined },
  findings: Findings,
): CommitOrderVerdict {
  const evidence = {
    results: holders.slice(-MAX_SHOWN).map(({ commit }) => commit),
    plans: plans.slice(-MAX_SHOWN).map(({ commit }) => commit),
  };
  const first = holders.at(-1);
  if (before !== undefined) {
    const message = `${holds(before, label)} and comes before every commit with the manifest, the first of them ${plans.at(-1)?.commit}`;
    return contradict(findings, message, evidence);
  }
  if (together !== undefined) {
    return open(
      `commit ${together.commit} brings the manifest and ${label} at once, as a squashed history does: nothing shows which was first`,
    );
  }
  const message =
    plans.length === 0
      ? `${holds(first, label)}; no commit holds the manifest as it is now`
      : `${holds(first, label)}; the manifest is not in its history but in that of ${plans.at(-1)?.commit}`;
  return contradict(findings, message, evidence);
}

function contradict(
  findings: Findings,
  message: string,
  evidence: { results: string[]; plans: string[] },
): CommitOrderVerdict {
  findings.add({ code: 'COMMIT_ORDER', where: {}, message, evidence });
  return { order: [], notChecked: [] };
}

function open(reason: string): CommitOrderVerdict {
  return { order: [], notChecked: [`whether the manifest was committed before the results: ${reason}`] };
}
