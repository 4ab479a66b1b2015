import { canonicalText } from '../../../../src/core/canonical-json.js';
import { type Digest, digestOf, hexOf } from '../../../../src/core/digest.js';
import { type TreeEntry, treeOf } from '../../../../src/manifest/tree.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { at, type Case, copyOf, dropReports } from '../case.js';

/** Law 1: nothing runs unbound. */
export const BINDING: readonly Case[] = [
  {
    name: 'sound',
    why: 'a whole book: settled, failed, replaced, recovered and unresolved slots, unblinded, with its report',
  },
  { name: 'sound-blinded', why: 'a book in mid-run: five slots pending, nothing unblinded', base: 'blinded' },
  { name: 'sound-partial', why: 'unblinded in part, and said so', base: 'partial' },
  { name: 'sound-open', why: 'a protocol that declares that nothing is blinded', base: 'open' },
  {
    name: 'gate-missing_fail',
    why: 'law 1: attempts of a session that never passed the gate',
    edit: (bundle) => remove(bundle, 'gate.passed', 0),
  },
  {
    name: 'gate-after-the-start_fail',
    why: 'law 1: the gate is passed after the first attempt started',
    edit: (bundle) => {
      const gate = bundle.find('gate.passed');
      const start = at(bundle, bundle.find('attempt.started'));
      bundle.entries.splice(at(bundle, gate), 1);
      bundle.entries.splice(start, 0, { ...gate, time: bundle.entries[start - 1]?.time });
    },
  },
  {
    name: 'gate-for-another-manifest_fail',
    why: 'law 1: the gate compared the host with another manifest',
    edit: (bundle) => {
      bundle.find('gate.passed').manifest = `sha256:${'0'.repeat(64)}`;
    },
  },
  {
    name: 'gate-passed-twice_fail',
    why: 'law 1: two sessions under one id',
    edit: (bundle) => {
      const gate = bundle.find('gate.passed');
      bundle.insert(at(bundle, gate) + 1, copyOf(gate));
    },
  },
  {
    name: 'first-entry-is-no-opening_fail',
    why: 'law 1: the ledger does not say what it belongs to',
    edit: (bundle) => remove(bundle, 'ledger.opened', 0),
  },
  {
    name: 'two-manifests-one-ledger_fail',
    why: 'law 1: a second opening, for another manifest',
    edit: (bundle) => {
      const opened = copyOf(bundle.find('ledger.opened'));
      opened.manifest = `sha256:${'1'.repeat(64)}`;
      opened.incarnation = 2;
      opened.restored = {
        size: 500,
        root: '2'.repeat(64),
        leaf: null,
        note: null,
        reason: 'a disk was lost',
      };
      bundle.insert(10, opened);
    },
  },
  {
    name: 'opened-for-another-plan_fail',
    why: 'law 1: the opening names a plan of other slots',
    edit: (bundle) => {
      bundle.find('ledger.opened').plan = { count: 12, digest: `sha256:${'3'.repeat(64)}` };
    },
  },
  {
    name: 'tasks-swapped_fail',
    why: 'law 1: the task file in the ledger is not the bound one',
    edit: (bundle) => {
      const opened = bundle.find('ledger.opened') as unknown as { task_objects: Record<string, Digest> };
      const text = bundle.object(opened.task_objects['tasks/all']).toString('utf8');
      opened.task_objects['tasks/all'] = bundle.keep(text.replace('12', '13'));
    },
  },
  {
    name: 'task-file-not-named_fail',
    why: 'law 1: a bound task file is missing from the opening',
    edit: (bundle) => {
      const opened = bundle.find('ledger.opened') as unknown as { task_objects: Record<string, Digest> };
      delete opened.task_objects['tasks/two'];
    },
  },
  {
    name: 'manifest-edited_fail',
    why: 'the manifest of the bundle was edited and renamed; the ledger names the old one',
    edit: (bundle) => {
      editManifest(bundle, (manifest) => {
        manifest.title = 'A better evaluation';
      });
    },
  },
  {
    name: 'manifest-not-canonical_fail',
    why: 'the manifest holds the same values in other bytes',
    edit: (bundle) => {
      const [path = '', bytes = Buffer.of()] = manifestOf(bundle);
      bundle.files.set(path, Buffer.from(`${bytes.toString('utf8')}\n`));
    },
  },
  {
    name: 'manifest-contradicts-itself_fail',
    why: 'ready although an item is pending, in a manifest that everything else names',
    edit: (bundle) => {
      ownManifest(bundle, (manifest) => {
        manifest.pending_items = [{ item: 'precision policy', evidence: null }];
      });
    },
  },
  owned(
    'manifest-second-without-a-first_fail',
    'the second manifest of a workspace names the one before it',
    (manifest) => {
      manifest.sequence = 2;
    },
  ),
  owned(
    'manifest-first-with-one-before_fail',
    'nothing comes before the first manifest of a workspace',
    (manifest) => {
      manifest.previous = `sha256:${'8'.repeat(64)}`;
    },
  ),
  owned(
    'manifest-second',
    'the second manifest of a workspace, whose first is about another plan',
    (manifest) => {
      manifest.sequence = 2;
      manifest.previous = `sha256:${'8'.repeat(64)}`;
    },
  ),
  owned(
    'manifest-forgets-a-task-use_fail',
    'how often each task list was used is said of every list',
    (manifest) => {
      (manifest.task_use as unknown[]).pop();
    },
  ),
  owned('manifest-binds-a-path-twice_fail', 'a tree has each of its files once', (manifest) => {
    const tree = (manifest.bindings as Loose[]).find(({ kind }) => kind === 'tree');
    if (tree === undefined) throw new Error('no tree is bound');
    const entries = tree.entries as TreeEntry[];
    const doubled = treeOf([...entries, ...entries.slice(-1)]);
    Object.assign(tree, doubled, {
      entries: [...doubled.entries].sort((a, b) => (a.path < b.path ? -1 : 1)),
    });
  }),
  {
    name: 'task-with-half-a-character_fail',
    why: 'half a surrogate pair in a task line, which no request can hold',
    edit: (bundle) => {
      dropReports(bundle);
      const opened = bundle.find('ledger.opened');
      const objects = opened.task_objects as Record<string, string>;
      const lines = bundle.object(objects['tasks/all']).toString('utf8');
      const bytes = Buffer.from(lines.replace('"3+4="', '"3+4=\\ud800"'));
      const digest = bundle.keep(bytes);
      ownManifest(bundle, (manifest) => {
        for (const list of [manifest.bindings, manifest.task_use] as Loose[][]) {
          for (const one of list) {
            if (one.digest !== objects['tasks/all']) continue;
            one.digest = digest;
            if ('size' in one) one.size = bytes.length;
          }
        }
      });
      (bundle.find('ledger.opened').task_objects as Record<string, string>)['tasks/all'] = digest;
    },
  },
  {
    name: 'manifest-not-ready_fail',
    why: 'law 1: an item of the plan was still pending when the ledger was opened',
    edit: (bundle) => {
      ownManifest(bundle, (manifest) => {
        const protocol = manifest.protocol as { pending: string[] };
        protocol.pending = ['precision policy'];
        manifest.pending_items = [{ item: 'precision policy', evidence: null }];
        manifest.pending = ['precision policy'];
        manifest.execution_ready = false;
      });
    },
  },
  {
    name: 'manifest-lost-its-seed_fail',
    why: 'the plan lost a task after the run; its slots are in the ledger',
    edit: (bundle) => {
      ownManifest(bundle, (manifest) => {
        const { queues } = manifest.protocol as { queues: Record<string, { reps: number }> };
        if (queues.main !== undefined) queues.main.reps = 1;
      });
    },
  },
  {
    name: 'owner-rewrites-the-title',
    why: 'the owner rewrites the manifest and everything that names it: consistent in itself, and only a digest that somebody else holds shows it',
    edit: (bundle) => {
      dropReports(bundle);
      ownManifest(bundle, (manifest) => {
        manifest.title = 'What we always meant to evaluate';
        (manifest.protocol as Value).title = manifest.title;
      });
    },
  },
  {
    name: 'created-after-the-run_fail',
    why: 'the plan is younger than its first entry',
    edit: (bundle) => {
      ownManifest(bundle, (manifest) => {
        manifest.created = '2026-12-30T00:00:00.000Z';
      });
    },
  },
];

type Value = Record<string, unknown>;

function remove(bundle: LooseBundle, type: string, n: number): void {
  const entry = bundle.entries.filter((one) => one.type === type)[n];
  bundle.remove((one) => one === entry);
}

function owned(name: string, why: string, edit: (manifest: Value) => void): Case {
  return {
    name,
    why,
    edit: (bundle) => {
      dropReports(bundle);
      ownManifest(bundle, edit);
    },
  };
}

function manifestOf(bundle: LooseBundle): readonly [string, Buffer] {
  const found = [...bundle.files].find(([path]) => path.startsWith('manifests/'));
  if (found === undefined) throw new Error('no manifest');
  return found;
}

function editManifest(bundle: LooseBundle, edit: (manifest: Value) => void): Digest {
  const [path, bytes] = manifestOf(bundle);
  const manifest = JSON.parse(bytes.toString('utf8')) as Value;
  edit(manifest);
  return bundle.replaceManifest(path.slice('manifests/'.length), manifest);
}

/** Edits the manifest and everything that names it, as its owner could. */
function ownManifest(bundle: LooseBundle, edit: (manifest: Value) => void): void {
  const before = bundle.manifest;
  const digest = editManifest(bundle, edit);
  const [, bytes] = manifestOf(bundle);
  bundle.ledger.objects.delete(hexOf(before as Digest));
  bundle.ledger.objects.set(hexOf(digestOf(bytes)), bytes);
  bundle.manifest = digest;
  bundle.ledger.entries = bundle.entries.map(
    (entry) => JSON.parse(canonicalText(entry).replaceAll(before, digest)) as never,
  );
}
