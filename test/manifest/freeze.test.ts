import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { canonicalText } from '../../src/core/canonical-json.js';
import { digestOf } from '../../src/core/digest.js';
import { bindManifest } from '../../src/manifest/bind.js';
import { freezeProtocol } from '../../src/manifest/freeze.js';
import { hashTree } from '../../src/manifest/hash.js';
import { withWorkspaceLock } from '../../src/manifest/lock.js';
import { parseManifest } from '../../src/manifest/manifest.js';
import { loadManifest } from '../../src/manifest/select.js';
import { treeOf } from '../../src/manifest/tree.js';
import { readWorkspace } from '../../src/manifest/workspace.js';
import {
  amendPlainly,
  PROTOCOL,
  put,
  putModel,
  SLOTS,
  TASKS,
  temporaryFolder,
  workplace,
} from './fixture.js';

const PATH = 'protocol/tiny.yaml';

function manifestFiles(root: string): string[] {
  return readdirSync(join(root, 'manifests')).filter((file) => file !== '.lock');
}

describe('freeze', () => {
  it('binds all that is there and writes a manifest that is its own identity', async () => {
    const { root, surroundings } = workplace();
    const stored = await freezeProtocol(PATH, surroundings);
    const { manifest, digest, file, path } = stored;

    expect(path).toBe(join(root, 'manifests', file));
    expect(file).toBe(`tiny.r1.${digest.slice(7, 19)}.json`);
    expect(execFileSync('sha256sum', [path], { encoding: 'utf8' }).slice(0, 64)).toBe(digest.slice(7));
    expect(statSync(path).mode & 0o777).toBe(0o444);
    expect(readFileSync(path, 'utf8')).toBe(canonicalText(manifest));
    expect(manifestFiles(root)).toEqual([file]);

    expect(manifest).toMatchObject({
      format: 'boundbook/manifest/1',
      tool: { name: 'boundbook', version: '0.1.0', dependencies: { zod: '4.6.7' } },
      created: '2026-09-27T12:00:00.000Z',
      name: 'tiny',
      revision: 1,
      title: 'Two models, four tasks',
      sequence: 1,
      previous: null,
      due: '2026-12-31',
      protocol_source: { raw_digest: digestOf(PROTOCOL), parser: { name: 'js-yaml', version: '5.5.0' } },
      pending: [],
      execution_ready: true,
      parent: null,
      supersedes: null,
      reason: null,
      exposure: null,
    });
    expect(manifest.plan?.count).toBe(SLOTS);
    expect(manifest.bindings.map(({ name, kind, path }) => [name, kind, path])).toEqual([
      ['report-schema/default', 'file', 'runner-report.json'],
      ['runner/boundbook', 'tree', 'dist'],
      ['runner/entry', 'tree', 'runner'],
      ['tasks/all4', 'file', 'tasks/all.jsonl'],
      ['tasks/two', 'file', 'tasks/two.txt'],
      ['tokenizer/M@42', 'file', 'models/M-42/tokenizer.json'],
      ['tokenizer/M@7', 'file', 'models/M-7/tokenizer.json'],
      ['weights/M@42', 'tree', 'models/M-42'],
      ['weights/M@7', 'tree', 'models/M-7'],
      ['weights/base', 'tree', 'models/base'],
    ]);
    const tasks = manifest.bindings.find(({ name }) => name === 'tasks/all4');
    expect(tasks).toMatchObject({ size: TASKS.length, digest: digestOf(TASKS) });
    const weights = manifest.bindings.find(({ name }) => name === 'weights/M@7');
    expect(weights).toMatchObject({
      ...(await hashTree(join(root, 'models/M-7'), 'weights')),
      ignored: 'git-metadata/1',
    });
  });

  it('lists what is pending: declared items first, then bindings (P1)', async () => {
    const { root, surroundings } = workplace(
      PROTOCOL.replace('pending: []', 'pending: [smoke run, precision policy]'),
    );
    rmSync(join(root, 'models/M-7'), { recursive: true });
    rmSync(join(root, 'tasks/two.txt'));
    const { manifest } = await freezeProtocol(PATH, surroundings);
    expect(manifest.pending).toEqual([
      'smoke run',
      'precision policy',
      'binding tasks/two',
      'binding tokenizer/M@7',
      'binding weights/M@7',
    ]);
    expect(manifest).toMatchObject({ execution_ready: false, plan: null });
  });

  it('refuses what is there and can not be bound, all of it at once, and writes nothing', async () => {
    const { root, surroundings } = workplace();
    put(root, 'models/base/model.safetensors', '');
    put(root, 'models/M-7/tokenizer.json', '');
    rmSync(join(root, 'tasks/two.txt'));
    mkdirSync(join(root, 'tasks/two.txt'));
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
      faults: [
        { where: 'tasks/two.txt', message: 'is a folder; a file is expected' },
        { where: 'models/M-7/tokenizer.json', message: 'has zero bytes' },
        { where: 'models/M-7/tokenizer.json', message: 'has zero bytes' },
        { where: 'models/base/model.safetensors', message: 'has zero bytes' },
      ],
    });
    expect((await readWorkspace(root)).manifests).toEqual([]);
  });

  it('refuses task files that do not hold what the protocol declares', async () => {
    const { root, surroundings } = workplace();
    put(root, 'tasks/all.jsonl', TASKS.slice(0, TASKS.lastIndexOf('{')));
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({ code: 'TASKS_INVALID' });
  });

  it('refuses the same protocol twice and names the manifest', async () => {
    const { surroundings } = workplace();
    const { file } = await freezeProtocol(PATH, surroundings);
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({
      code: 'MANIFEST_EXISTS',
      message: `tiny revision 1 is frozen already: ${file}`,
      hint: expect.stringContaining(`boundbook verify ${file}`),
    });
  });

  it('refuses another protocol under the same revision, and every other revision: that is an amendment', async () => {
    const { root, surroundings } = workplace();
    const first = await freezeProtocol(PATH, surroundings);
    put(root, PATH, PROTOCOL.replace('reps: 2', 'reps: 3'));
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({
      code: 'MANIFEST_EXISTS',
      message: `tiny revision 1 is frozen already, with another protocol: ${first.file}`,
    });
    put(root, PATH, PROTOCOL.replace('reps: 2', 'reps: 3').replace('revision: 1', 'revision: 2'));
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({
      code: 'MANIFEST_EXISTS',
      message: `tiny is frozen in revision 1 already: ${first.file}`,
      hint: expect.stringContaining('boundbook amend') as string,
    });
    const second = await amendPlainly(PATH, surroundings);
    expect(second.manifest).toMatchObject({ revision: 2, sequence: 2, previous: first.digest });
    put(root, PATH, PROTOCOL);
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({ code: 'MANIFEST_EXISTS' });
  });

  it('counts how often earlier plans used the same task lists (F-171)', async () => {
    const { root, surroundings } = workplace();
    const first = await freezeProtocol(PATH, surroundings);
    expect(first.manifest.task_use.map(({ binding, plans }) => [binding, plans])).toEqual([
      ['tasks/all4', 0],
      ['tasks/two', 0],
    ]);
    put(root, 'protocol/other.yaml', PROTOCOL.replace('name: tiny', 'name: other'));
    rmSync(join(root, 'models/base'), { recursive: true });
    const other = await freezeProtocol('protocol/other.yaml', surroundings);
    expect(other.manifest.task_use.map(({ plans }) => plans)).toEqual([1, 1]);
    putModel(root, 'base', 3);
    const bound = await bindManifest('other', surroundings);
    // Its own parent is no second look.
    expect(bound.manifest.task_use.map(({ plans }) => plans)).toEqual([1, 1]);
  });

  it('refuses two bindings of one name', async () => {
    const { surroundings } = workplace(PROTOCOL.replace('sources: { entry', 'sources: { boundbook'));
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
      faults: [{ where: 'runner/boundbook' }],
    });
  });
});

describe('bind', () => {
  async function unfinished(): Promise<ReturnType<typeof workplace>> {
    const place = workplace(PROTOCOL.replace('pending: []', 'pending: [smoke run]'));
    renameSync(join(place.root, 'models/M-7'), join(place.root, 'later'));
    renameSync(join(place.root, 'tasks/two.txt'), join(place.root, 'two.later'));
    await freezeProtocol(PATH, place.surroundings);
    return place;
  }

  it('adds what became available, keeps what was bound, and closes items by evidence only', async () => {
    const { root, surroundings } = await unfinished();
    const first = await loadManifest(root);
    const bytes = readFileSync(first.path);
    renameSync(join(root, 'later'), join(root, 'models/M-7'));
    renameSync(join(root, 'two.later'), join(root, 'tasks/two.txt'));

    const second = await bindManifest(undefined, surroundings);
    expect(second.manifest).toMatchObject({
      parent: first.digest,
      previous: first.digest,
      sequence: 2,
      execution_ready: false,
      pending: ['smoke run'],
    });
    expect(second.manifest.plan?.count).toBe(SLOTS);
    expect(second.manifest.bindings).toEqual(expect.arrayContaining([...first.manifest.bindings]));
    expect(readFileSync(first.path)).toEqual(bytes);

    put(root, 'docs/smoke.txt', 'it runs\n');
    const resolution = { item: 'smoke run', evidence: 'docs/smoke.txt' };
    const third = await bindManifest(undefined, surroundings, resolution);
    expect(third.manifest).toMatchObject({
      parent: second.digest,
      sequence: 3,
      execution_ready: true,
      pending: [],
      pending_items: [
        { item: 'smoke run', evidence: { path: 'docs/smoke.txt', size: 8, digest: digestOf('it runs\n') } },
      ],
    });
    await expect(bindManifest(undefined, surroundings, resolution)).rejects.toMatchObject({
      code: 'PENDING_UNKNOWN',
      message: 'the item "smoke run" is closed already',
    });
  });

  it('gives the same bindings and plan as freezing everything at once', async () => {
    const { root, surroundings } = await unfinished();
    renameSync(join(root, 'later'), join(root, 'models/M-7'));
    renameSync(join(root, 'two.later'), join(root, 'tasks/two.txt'));
    const bound = await bindManifest(undefined, surroundings);
    const whole = workplace();
    const frozen = await freezeProtocol(PATH, whole.surroundings);
    expect(bound.manifest.bindings).toEqual(frozen.manifest.bindings);
    expect(bound.manifest.plan).toEqual(frozen.manifest.plan);
  });

  it('refuses when nothing is new, naming what is pending', async () => {
    const { surroundings } = await unfinished();
    await expect(bindManifest(undefined, surroundings)).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
      faults: [
        { where: 'smoke run' },
        { where: 'binding tasks/two' },
        { where: 'binding tokenizer/M@7' },
        { where: 'binding weights/M@7' },
      ],
    });
  });

  it('refuses when a bound file differs by now', async () => {
    const { root, surroundings } = await unfinished();
    renameSync(join(root, 'later'), join(root, 'models/M-7'));
    put(root, 'runner/generate.js', 'console.log(2)\n');
    await expect(bindManifest(undefined, surroundings)).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
      faults: [
        {
          where: 'runner/entry: runner/generate.js',
          message: `the content differs (bound ${digestOf('console.log(1)\n')}, found ${digestOf('console.log(2)\n')})`,
        },
      ],
    });
    expect(manifestFiles(root)).toHaveLength(1);
  });

  it('takes what lies on another host as it was bound', async () => {
    const { root, surroundings } = await unfinished();
    renameSync(join(root, 'later'), join(root, 'models/M-7'));
    rmSync(join(root, 'models/M-42'), { recursive: true });
    const bound = await bindManifest(undefined, surroundings);
    expect(bound.manifest.pending).toEqual(['smoke run', 'binding tasks/two']);
    // Slots are counted from all task files, so these must be together once.
    rmSync(join(root, 'tasks/all.jsonl'));
    renameSync(join(root, 'two.later'), join(root, 'tasks/two.txt'));
    await expect(bindManifest(undefined, surroundings)).rejects.toMatchObject({ code: 'BINDING_REFUSED' });
  });

  it('refuses unknown items, bindings as items, and evidence that is none', async () => {
    const { root, surroundings } = await unfinished();
    put(root, 'empty', '');
    const bind = (item: string, evidence: string) =>
      bindManifest(undefined, surroundings, { item, evidence });
    await expect(bind('smoke test', 'empty')).rejects.toMatchObject({
      code: 'PENDING_UNKNOWN',
      hint: expect.stringContaining('"smoke run"'),
    });
    await expect(bind('binding weights/M@7', 'empty')).rejects.toMatchObject({ code: 'PENDING_UNKNOWN' });
    await expect(bind('smoke run', 'none')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(bind('smoke run', 'empty')).rejects.toMatchObject({ code: 'BINDING_REFUSED' });
    await expect(bind('smoke run', 'models')).rejects.toMatchObject({ code: 'BINDING_REFUSED' });
  });

  it('does not fork: a manifest is bound further once, though two try at the same time', async () => {
    const { root, surroundings } = await unfinished();
    renameSync(join(root, 'later'), join(root, 'models/M-7'));
    const both = await Promise.allSettled([
      bindManifest(undefined, surroundings),
      bindManifest(undefined, surroundings),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(both.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'MANIFEST_EXISTS' },
    });
    expect(manifestFiles(root)).toHaveLength(2);
  });
});

describe('boundbook.host.yaml', () => {
  it('says where things lie without changing what they are', async () => {
    const plain = workplace();
    const expected = await freezeProtocol(PATH, plain.surroundings);
    const mapped = workplace();
    const store = temporaryFolder();
    renameSync(join(mapped.root, 'models/M-7'), join(store, 'seven'));
    put(
      mapped.root,
      'boundbook.host.yaml',
      `weights/M@7: ${join(store, 'seven')}\ntokenizer/M@7: ${join(store, 'seven/tokenizer.json')}\n`,
    );
    const stored = await freezeProtocol(PATH, mapped.surroundings);
    expect(stored.digest).toBe(expected.digest);
    expect(readFileSync(stored.path, 'utf8')).not.toContain(store);
  });

  it.each([
    ['weights/M@77: x\n', 'is no binding of any plan in this workspace'],
    ['weights/M@7: ""\n', 'needs a path'],
    ['weights/M@7: [a]\n', 'needs a path'],
    ['weights/M@7: ~/models\n', 'begins with ~, which is not expanded'],
    ['- weights/M@7\n', 'is no mapping from binding names to paths'],
    ['weights/M@7: a\nweights/M@7: b\n', 'twice'],
    ['weights/M@7: &a x\ntokenizer/M@7: *a\n', 'anchor'],
    ['weights/M@7: "\n', ''],
    ['# nothing\n', 'no YAML document'],
  ])('is refused as %j', async (text, message) => {
    const { root, surroundings } = workplace();
    put(root, 'boundbook.host.yaml', text);
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({
      code: 'HOST_MAP_INVALID',
      faults: expect.arrayContaining([
        expect.objectContaining({ message: expect.stringContaining(message) }),
      ]) as unknown,
    });
  });
});

describe('two at the same time', () => {
  it('get different numbers of one sequence', async () => {
    const { root, surroundings } = workplace();
    const names = ['one', 'two', 'three', 'four', 'five', 'six'];
    for (const name of names)
      put(root, `protocol/${name}.yaml`, PROTOCOL.replace('name: tiny', `name: ${name}`));
    const stored = await Promise.all(
      names.map((name) => freezeProtocol(`protocol/${name}.yaml`, surroundings)),
    );
    const ordered = stored.toSorted((a, b) => a.manifest.sequence - b.manifest.sequence);
    expect(ordered.map(({ manifest }) => manifest.sequence)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(ordered.map(({ manifest }) => manifest.previous)).toEqual([
      null,
      ...ordered.slice(0, -1).map(({ digest }) => digest),
    ]);
  });

  it('freeze one protocol once', async () => {
    const { root, surroundings } = workplace();
    const both = await Promise.allSettled([
      freezeProtocol(PATH, surroundings),
      freezeProtocol(PATH, surroundings),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(manifestFiles(root)).toHaveLength(1);
  });

  it('wait for each other across connections, and a holder that died holds nothing', async () => {
    const { root, surroundings } = workplace();
    mkdirSync(join(root, 'manifests'));
    // A process that takes the lock and is killed while it holds it.
    const holder = `
      const Database = require(${JSON.stringify(createRequire(import.meta.url).resolve('better-sqlite3'))});
      const database = new Database(${JSON.stringify(join(root, 'manifests/.lock'))});
      database.exec('BEGIN EXCLUSIVE');
      process.kill(process.pid, 'SIGKILL');`;
    expect(() => execFileSync(process.execPath, ['-e', holder], { stdio: 'ignore' })).toThrow();
    const other = new Database(join(root, 'manifests/.lock'));
    other.exec('BEGIN EXCLUSIVE');
    let released = false;
    setTimeout(() => {
      released = true;
      other.close();
    }, 150);
    await withWorkspaceLock(root, async () => expect(released).toBe(true));
    await expect(freezeProtocol(PATH, surroundings)).resolves.toMatchObject({ manifest: { sequence: 1 } });
  });
});

describe('what a power cut leaves (F-95)', () => {
  it('a manifest of zero bytes is never "not frozen yet"', async () => {
    const { root, surroundings } = workplace();
    const { path } = await freezeProtocol(PATH, surroundings);
    chmodSync(path, 0o644);
    writeFileSync(path, '');
    const lost = { code: 'FILE_EMPTY', message: expect.stringContaining('its content is lost') as unknown };
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject(lost);
    await expect(loadManifest(root)).rejects.toMatchObject(lost);
    await expect(bindManifest('tiny', surroundings)).rejects.toMatchObject(lost);
    put(root, 'protocol/other.yaml', PROTOCOL.replace('name: tiny', 'name: other'));
    await expect(freezeProtocol('protocol/other.yaml', surroundings)).rejects.toMatchObject(lost);
  });

  it('nor one of zeros or cut short', async () => {
    const { surroundings } = workplace();
    const { path } = await freezeProtocol(PATH, surroundings);
    const bytes = readFileSync(path);
    chmodSync(path, 0o644);
    for (const damaged of [Buffer.alloc(4096), bytes.subarray(0, 1000), bytes.subarray(0, -1)]) {
      writeFileSync(path, damaged);
      await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({ code: 'MANIFEST_ALTERED' });
    }
  });

  it('a temporary file without the final one stops further freezing until somebody looked', async () => {
    const { root, surroundings } = workplace();
    const { file, path } = await freezeProtocol(PATH, surroundings);
    const temporary = `.${file}.0123456789ab.tmp`;
    renameSync(path, join(root, 'manifests', temporary));
    await expect(loadManifest(root)).rejects.toMatchObject({
      code: 'MANIFEST_NOT_FOUND',
      hint: expect.stringContaining(temporary),
    });
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({
      code: 'MANIFEST_INTERRUPTED',
      hint: expect.stringContaining(`rename it to ${file}`),
    });
    // Following the hint brings the plan back.
    renameSync(join(root, 'manifests', temporary), path);
    expect((await loadManifest(root)).file).toBe(file);
  });

  it('a workspace that can not be written is a typed refusal', async () => {
    const { root, surroundings } = workplace();
    put(root, 'manifests', 'a file in the way');
    await expect(freezeProtocol(PATH, surroundings)).rejects.toMatchObject({ code: 'FILE_NOT_REGULAR' });
  });
});

/** The parts of a protocol that are edited below. */
interface Loose {
  attempts: { rules: unknown[] };
  conditions: Record<'default', { prompt: { user: string }; grader: { reward: unknown } }>;
}

describe('a manifest by its bytes', () => {
  it('is refused in every other form', async () => {
    const { surroundings } = workplace();
    const { path, file, manifest } = await freezeProtocol(PATH, surroundings);
    const text = readFileSync(path, 'utf8');
    const value = JSON.parse(text) as Record<string, unknown>;
    const altered = (bytes: string, reason: RegExp): void => {
      expect(() => parseManifest(Buffer.from(bytes), 'copy.json')).toThrow(
        expect.objectContaining({
          code: 'MANIFEST_ALTERED',
          exitCode: 4,
          message: expect.stringMatching(reason),
        }),
      );
    };
    const edited = (change: Record<string, unknown>): string => canonicalText({ ...value, ...change });
    expect(parseManifest(Buffer.from(text), file).manifest).toEqual(manifest);
    altered(`${text}\n`, /canonical form/);
    altered(JSON.stringify(value, null, 1), /canonical form/);
    altered(text.replace('"sequence":1', '"sequence":1.0'), /canonical form/);
    altered(text.replace('"sequence":1', '"sequence":1,"sequence":1'), /occurs twice/);
    altered(`\ufeff${text}`, /byte-order mark/);
    altered(edited({ format: 'boundbook/manifest/2' }), /form of a manifest/);
    altered(edited({ surplus: 1 }), /form of a manifest/);
    // What is computed can't be declared (P20).
    altered(edited({ execution_ready: false }), /contradict/);
    altered(edited({ pending: ['smoke run'] }), /contradict/);
    altered(edited({ pending_items: [{ item: 'x', evidence: null }] }), /contradict/);
    altered(edited({ plan: null }), /contradict/);
    altered(edited({ title: 'another' }), /contradict/);
    altered(edited({ bindings: [] }), /contradict/);
    altered(edited({ bindings: manifest.bindings.toReversed() }), /contradict/);
    altered(edited({ bindings: manifest.bindings.slice(1) }), /contradict/);
    altered(edited({ reason: 'why not' }), /contradict/);
    altered(edited({ sequence: 2 }), /contradict/);
    altered(edited({ previous: digestOf('another') }), /contradict/);
    altered(edited({ task_use: [] }), /contradict/);
    altered(edited({ created: '2026-09-27T12:00:00Z' }), /form of a manifest/);
    // What outcomes are computed with must mean something.
    const replanned = (change: (protocol: Loose) => void): string => {
      const protocol = structuredClone(value.protocol) as Loose;
      change(protocol);
      return edited({ protocol });
    };
    altered(
      replanned(({ attempts }) => {
        const when = { text: '(' };
        attempts.rules = [{ id: 'x', when, attribute: 'model', sufficient: false }];
      }),
      /contradict/,
    );
    altered(
      replanned(({ conditions }) => {
        conditions.default.prompt.user = '{question';
      }),
      /contradict/,
    );
    for (const reward of [
      { min: 1, max: 1 },
      { min: 0.5, max: 1 },
    ]) {
      altered(
        replanned(({ conditions }) => {
          conditions.default.grader.reward = reward;
        }),
        /contradict/,
      );
    }
    const tree = manifest.bindings.find(({ kind }) => kind === 'tree');
    if (tree?.kind !== 'tree') throw new Error('no tree is bound');
    const doubled = { ...tree, ...treeOf([...tree.entries, ...tree.entries]) };
    altered(
      edited({ bindings: manifest.bindings.map((one) => (one === tree ? doubled : one)) }),
      /contradict/,
    );
    const shorter = { ...tree, entries: tree.entries.slice(1) };
    altered(
      edited({ bindings: manifest.bindings.map((one) => (one === tree ? shorter : one)) }),
      /contradict/,
    );
  });

  it('is refused under the name of another', async () => {
    const { surroundings } = workplace();
    const { path } = await freezeProtocol(PATH, surroundings);
    const later = readFileSync(path, 'utf8').replace('2026-09-27T12:00', '2026-09-27T13:00');
    chmodSync(path, 0o644);
    writeFileSync(path, later);
    await expect(loadManifest(surroundings.root)).rejects.toMatchObject({
      code: 'MANIFEST_ALTERED',
      evidence: { digest: digestOf(later) },
    });
  });
});
