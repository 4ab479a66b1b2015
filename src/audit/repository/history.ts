import { BoundbookError } from '../../core/errors.js';
import { CommitGraph } from './commit-graph.js';
import { firstLine, type Git } from './git.js';
import { findInTree, type ObjectFormat, objectId, readCommit } from './git-object.js';

/** Every branch and tag, and no replacement of an object, which is nobody's history. */
const EVERYTHING = ['--exclude=refs/replace/*', '--all'] as const;

/** Questions about a repository's history. What speaks for the owner of the repository is proved hash by hash. */

/** A commit whose tree holds a file, and where. */
export interface Holder {
  readonly commit: string;
  /** The path in the tree, bytes as Latin-1. */
  readonly path: string;
}

export interface Repository {
  readonly git: Git;
  readonly format: ObjectFormat;
  /** Whether parts of the history or of the files are missing by design, so that absence proves nothing. */
  readonly incomplete: 'shallow' | 'partial' | null;
}

/**
 * Opens a repository, or the one that a folder lies in.
 *
 * @throws {BoundbookError} GIT_UNAVAILABLE; REPOSITORY_INVALID when there is none that git would read
 */
export async function openRepository(git: Git): Promise<Repository> {
  const { status, stdout, stderr } = await git.run(['rev-parse', '--is-shallow-repository']);
  if (status !== 0) {
    throw new BoundbookError('REPOSITORY_INVALID', `git reads no repository there: ${firstLine(stderr)}`, {
      hint: 'Name a folder of a git repository. One that belongs to another user has to be cloned first.',
      evidence: { status, stderr },
    });
  }
  const format = await git.run(['rev-parse', '--show-object-format']);
  const promises = await git.run([
    'config',
    '--get-regexp',
    '^(extensions\\.partialclone|remote\\..*\\.promisor)$',
  ]);
  const shallow = stdout.toString('latin1').trim() === 'true';
  return {
    git,
    format: format.stdout.toString('latin1').trim() === 'sha256' ? 'sha256' : 'sha1',
    incomplete: shallow ? 'shallow' : promises.status === 0 ? 'partial' : null,
  };
}

/** Those of some files that the repository has, on whatever branch or on none. */
export async function presentIn<T extends { readonly bytes: Uint8Array }>(
  { git, format }: Repository,
  files: readonly T[],
): Promise<readonly T[]> {
  if (files.length === 0) return [];
  const ids = files.map(({ bytes }) => objectId('blob', bytes, format));
  const output = await git.read(['cat-file', '--batch-check'], `${ids.join('\n')}\n`);
  const lines = output.toString('latin1').split('\n');
  return files.filter((_, i) => lines[i]?.startsWith(`${ids[i]} blob `) === true);
}

/** The commits that added a file with exactly these bytes, with one place each, the newest first as git orders them. */
export async function holdersOf(repository: Repository, bytes: Uint8Array): Promise<readonly Holder[]> {
  return onePlaceEach(await placesOf(repository, bytes));
}

/** The first place of each commit. */
export function onePlaceEach(places: readonly Holder[]): readonly Holder[] {
  const holders = new Map<string, Holder>();
  for (const place of places) if (!holders.has(place.commit)) holders.set(place.commit, place);
  return [...holders.values()];
}

/**
 * Every place at which a commit added a file with exactly these bytes, the newest commit first as git orders them.
 *
 * @param further commits whose history is searched beside that of all branches and tags
 */
export async function placesOf(
  { git, format }: Repository,
  bytes: Uint8Array,
  further: readonly string[] = [],
): Promise<readonly Holder[]> {
  const id = objectId('blob', bytes, format);
  const shown = [
    '--raw',
    '--no-abbrev',
    '--no-renames',
    '--no-color',
    '--no-ext-diff',
    '--no-textconv',
    '-z',
  ];
  const quiet = ['--no-show-signature', '--no-notes', '--no-decorate', '--no-mailmap'];
  const log = await git.read([
    ...['log', ...EVERYTHING, '-m', ...shown, ...quiet, '--format=%x01%H', `--find-object=${id}`, ...further],
  ]);
  return log
    .toString('latin1')
    .split('\u0001')
    .slice(1)
    .flatMap((record) => {
      const commit = /^[0-9a-f]+/.exec(record)?.[0] ?? '';
      return addedPaths(record, id).map((path) => ({ commit, path }));
    });
}

/** The paths at which a record of the log adds an object. */
function addedPaths(record: string, id: string): readonly string[] {
  const entry = new RegExp(`:[0-7]+ [0-7]+ [0-9a-f]+ ${id} [A-Z][0-9]*\0([^\0]+)\0`, 'g');
  return [...record.matchAll(entry)].map((match) => match[1] ?? '');
}

/**
 * The commit that a person names.
 *
 * @throws {BoundbookError} GIT_UNAVAILABLE; REPOSITORY_INVALID when there is none
 */
export async function commitNamed({ git }: Repository, name: string): Promise<string> {
  const { status, stdout } = await git.run([
    ...['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`],
  ]);
  const commit = stdout.toString('latin1').trim();
  if (status === 0 && /^[0-9a-f]{40,64}$/.test(commit)) return commit;
  throw new BoundbookError('REPOSITORY_INVALID', `the repository has no commit ${JSON.stringify(name)}`, {
    hint: 'Name a commit, branch or tag of it with --results.',
  });
}

/** The whole history: everything that a branch or tag leads to, and the history of some further commits. */
export async function graphOf({ git }: Repository, further: readonly string[]): Promise<CommitGraph> {
  const list = await git.text(['rev-list', ...EVERYTHING, '--topo-order', '--parents', ...further]);
  return new CommitGraph(list);
}

/**
 * Follows the hashes along a path of commits, the newest first; each commit is hashed here.
 *
 * @throws {BoundbookError} GIT_UNAVAILABLE when the chain does not hold
 */
export async function provePath(repository: Repository, path: readonly string[]): Promise<void> {
  const contents = await readObjects(repository, 'commit', path);
  for (const [i, content] of contents.entries()) {
    const next = path[i + 1];
    if (next !== undefined && !readCommit(content).parents.includes(next))
      damaged(`${path[i]} has other parents`);
  }
}

/** Follows the hashes from a commit to a file in its tree. @throws {BoundbookError} GIT_UNAVAILABLE */
export async function proveHolder(repository: Repository, holder: Holder, bytes: Uint8Array): Promise<void> {
  const { format } = repository;
  const [commit] = await readObjects(repository, 'commit', [holder.commit]);
  let id = commit === undefined ? '' : readCommit(commit).tree;
  for (const name of holder.path.split('/')) {
    const [tree] = await readObjects(repository, 'tree', [id]);
    id =
      (tree === undefined ? null : findInTree(tree, name, format)) ?? damaged(`${holder.path} is not there`);
  }
  if (id !== objectId('blob', bytes, format)) damaged(`${holder.path} is another file`);
}

/** Objects by name, each of them hashed. */
async function readObjects(
  { git, format }: Repository,
  type: 'commit' | 'tree',
  ids: readonly string[],
): Promise<readonly Buffer[]> {
  const output = await git.read(['cat-file', '--batch'], `${ids.join('\n')}\n`);
  let at = 0;
  return ids.map((id) => {
    const end = output.indexOf(0x0a, at);
    const head = output.toString('latin1', at, end);
    const size = Number(new RegExp(`^${id} ${type} ([0-9]{1,12})$`).exec(head)?.[1] ?? Number.NaN);
    const content = output.subarray(end + 1, end + 1 + size);
    if (end === -1 || content.length !== size) damaged(`the ${type} ${id} cannot be read`);
    if (objectId(type, content, format) !== id) damaged(`the ${type} ${id} has another hash`);
    at = end + 1 + size + 1;
    return content;
  });
}

function damaged(reason: string): never {
  throw new BoundbookError('GIT_UNAVAILABLE', `the repository is damaged: ${reason}`, {
    hint: 'Clone it anew; `git fsck` shows damage.',
  });
}
