import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import { inspectHost } from '../../src/gate/inspect.js';
import { gateError } from '../../src/gate/refusal.js';
import { changedSince } from '../../src/gate/watch.js';
import { freezeProtocol } from '../../src/manifest/freeze.js';
import type { Manifest } from '../../src/manifest/manifest.js';
import {
  PROTOCOL,
  put,
  safetensors,
  temporaryFolder,
  type Workplace,
  workplace,
} from '../manifest/fixture.js';

async function frozen(protocol = PROTOCOL): Promise<Workplace & { manifest: Manifest }> {
  const place = workplace(protocol);
  const { manifest } = await freezeProtocol('protocol/tiny.yaml', place.surroundings);
  return { ...place, manifest };
}

/** `binding path: reason` of every mismatch. */
async function mismatches(place: Workplace & { manifest: Manifest }): Promise<string[]> {
  const { mismatches: found } = await inspectHost(place.manifest, place.surroundings);
  return found.map(({ binding, path, reason }) => `${binding} ${path}: ${reason}`);
}

describe('inspectHost', () => {
  it('passes a host that holds what is bound, and says where everything lies', async () => {
    const { root, manifest, surroundings } = await frozen();
    const { files, bytes, mismatches: found, paths } = await inspectHost(manifest, surroundings);
    expect(found).toEqual([]);
    const sizes = manifest.bindings.map(({ size }) => size);
    expect(bytes).toBe(sizes.reduce((a, b) => a + b));
    expect(files).toBe(manifest.bindings.reduce((n, one) => n + (one.kind === 'tree' ? one.files : 1), 0));
    expect(paths.get('weights/M@7')).toBe(join(root, 'models/M-7'));
    expect(paths.get('tokenizer/M@7')).toBe(join(root, 'models/M-7/tokenizer.json'));
    expect([...paths.keys()]).toEqual(manifest.bindings.map(({ name }) => name));
  });

  it('finds one changed byte though size and time are as they were (F-49)', async () => {
    const place = await frozen();
    const file = join(place.root, 'models/M-7/model.safetensors');
    const bytes = readFileSync(file);
    const expected = digestOf(bytes);
    const { atime, mtime } = statSync(file);
    bytes[bytes.length - 3] = (bytes[bytes.length - 3] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    utimesSync(file, atime, mtime);
    expect((await inspectHost(place.manifest, place.surroundings)).mismatches).toEqual([
      {
        binding: 'weights/M@7',
        path: 'models/M-7/model.safetensors',
        expected,
        actual: digestOf(bytes),
        reason: 'the content differs',
      },
    ]);
  });

  it('finds a model under the name of another', async () => {
    const place = await frozen();
    rmSync(join(place.root, 'models/M-7'), { recursive: true });
    cpSync(join(place.root, 'models/M-42'), join(place.root, 'models/M-7'), { recursive: true });
    expect(await mismatches(place)).toEqual([
      'weights/M@7 models/M-7/model.safetensors: the content differs',
    ]);
  });

  it('finds a swapped tokenizer in both of its bindings', async () => {
    const place = await frozen();
    put(place.root, 'models/M-42/tokenizer.json', '{"model":[]}\n');
    expect(await mismatches(place)).toEqual([
      'tokenizer/M@42 models/M-42/tokenizer.json: the content differs',
      'weights/M@42 models/M-42/tokenizer.json: the content differs',
    ]);
  });

  it('finds another task list and another source of the runner', async () => {
    const place = await frozen();
    appendFileSync(join(place.root, 'tasks/two.txt'), 'd\n');
    appendFileSync(join(place.root, 'runner/grade.js'), '// generous\n');
    put(place.root, 'runner-report.json', '{}');
    expect(await mismatches(place)).toEqual([
      'report-schema/default runner-report.json: the content differs',
      'runner/entry runner/grade.js: the content differs',
      'tasks/two tasks/two.txt: the content differs',
    ]);
  });

  it('finds another program, by its code, its version and its packages', async () => {
    const place = await frozen();
    const { product } = place.surroundings;
    put(product.folder, 'cli.js', '// another program\n');
    const tool = { ...product.tool, version: '0.2.0', dependencies: { zod: '4.6.8' } };
    const surroundings = { ...place.surroundings, product: { ...product, tool } };
    const { mismatches: found } = await inspectHost(place.manifest, surroundings);
    expect(found.map(({ path, expected, actual }) => [path, expected, actual])).toEqual([
      ['package.json', '0.1.0', '0.2.0'],
      ['package.json', '4.6.7', '4.6.8'],
      ['dist/cli.js', digestOf('// the program\n'), digestOf('// another program\n')],
    ]);
    expect(new Set(found.map(({ binding }) => binding))).toEqual(new Set(['runner/boundbook']));
  });

  it('finds missing and surplus files, and things in the place of others', async () => {
    const place = await frozen();
    const { root } = place;
    rmSync(join(root, 'models/base/config.json'));
    put(root, 'models/base/extra.bin', 'x');
    rmSync(join(root, 'models/M-7'), { recursive: true });
    put(root, 'models/M-7', 'a file');
    rmSync(join(root, 'tasks/all.jsonl'));
    mkdirSync(join(root, 'tasks/all.jsonl'));
    rmSync(join(root, 'tasks/two.txt'));
    put(root, 'runner/__pycache__/x.pyc', 'x');
    expect(await mismatches(place)).toEqual([
      'runner/entry runner/__pycache__/x.pyc: is not bound: remove it, and set PYTHONDONTWRITEBYTECODE=1 so that none is written',
      'tasks/all4 tasks/all.jsonl: is a folder; a file is bound',
      'tasks/two tasks/two.txt: does not exist',
      'tokenizer/M@7 models/M-7/tokenizer.json: does not exist',
      'weights/M@7 models/M-7: is no folder; a tree is bound',
      'weights/base models/base/config.json: is missing',
      'weights/base models/base/extra.bin: is not bound',
    ]);
  });

  it('says what kind of damage it is where the rules know', async () => {
    const place = await frozen();
    const { root } = place;
    put(root, 'models/base/model.safetensors', `version https://git-lfs.github.com/spec/v1\noid x\nsize 1\n`);
    put(root, 'models/M-42/model.safetensors', Buffer.alloc(200));
    rmSync(join(root, 'models/M-7/model.safetensors'));
    symlinkSync('../M-42/model.safetensors', join(root, 'models/M-7/model.safetensors'));
    const [pointer, zeros, link] = (await mismatches(place)).toReversed();
    expect(pointer).toMatch(/base.*: the content differs: is a Git LFS pointer, not the file itself$/);
    expect(link).toMatch(/M-42.*: the content differs: has a header of length zero/);
    expect(zeros).toMatch(/M-7.*: is a link that is not followed/);
  });

  it('never throws on what the files are, and lists all of it', async () => {
    const place = await frozen();
    const { root } = place;
    for (const folder of ['models', 'tasks', 'runner']) rmSync(join(root, folder), { recursive: true });
    execFileSync('mkfifo', [join(root, 'models')]);
    rmSync(join(root, 'runner-report.json'));
    rmSync(place.surroundings.product.folder, { recursive: true });
    const { files, mismatches: found } = await inspectHost(place.manifest, place.surroundings);
    expect(files).toBe(0);
    expect(found.map(({ binding }) => binding)).toEqual(place.manifest.bindings.map(({ name }) => name));
    for (const { expected, actual } of found) expect([typeof expected, actual]).toEqual(['string', null]);
  });

  it('refuses what is pending, item by item (law 1)', async () => {
    const place = workplace(PROTOCOL.replace('pending: []', 'pending: [smoke run]'));
    rmSync(join(place.root, 'models/base'), { recursive: true });
    const { manifest } = await freezeProtocol('protocol/tiny.yaml', place.surroundings);
    expect(await mismatches({ ...place, manifest })).toEqual([
      'smoke run : is pending: it was never closed by evidence',
      'binding weights/base : is pending: it was never bound',
    ]);
  });

  it('follows boundbook.host.yaml and says so when nothing is there', async () => {
    const place = await frozen();
    const store = temporaryFolder();
    renameSync(join(place.root, 'models/base'), join(store, 'b'));
    put(place.root, 'boundbook.host.yaml', `weights/base: ${join(store, 'b')}\n`);
    const { paths, mismatches: none } = await inspectHost(place.manifest, place.surroundings);
    expect([paths.get('weights/base'), none]).toEqual([join(store, 'b'), []]);
    put(place.root, 'boundbook.host.yaml', `weights/base: ${join(store, 'c')}\n`);
    expect(await mismatches(place)).toEqual([
      'weights/base models/base: does not exist where boundbook.host.yaml puts it',
    ]);
  });

  it('gives an error that names every mismatch with both digests', async () => {
    const place = await frozen();
    put(place.root, 'models/base/model.safetensors', safetensors({ 'a.weight': 4, 'b.weight': 2 }, 9));
    rmSync(join(place.root, 'tasks/two.txt'));
    const { mismatches: found } = await inspectHost(place.manifest, place.surroundings);
    const error = gateError('manifests/x.json', found);
    expect(error).toMatchObject({ code: 'GATE_REFUSED', exitCode: 3, evidence: { mismatches: found } });
    expect(error.faults.map(({ where }) => where)).toEqual([
      'tasks/two: tasks/two.txt',
      'weights/base: models/base/model.safetensors',
    ]);
    expect(error.faults[1]?.message).toMatch(
      /^the content differs \(expected sha256:\w{64}, found sha256:\w{64}\)$/,
    );
  });
});

describe('changedSince', () => {
  async function watching(): Promise<{ root: string; changes: () => Promise<string[]> }> {
    const place = await frozen();
    const { watched } = await inspectHost(place.manifest, place.surroundings);
    const changes = async (): Promise<string[]> =>
      (await changedSince(watched)).map(({ binding, path, reason }) => `${binding} ${path}: ${reason}`);
    expect(await changes()).toEqual([]);
    return { root: place.root, changes };
  }

  it('sees a byte changed in place though size and modification time are restored (F-33)', async () => {
    const { root, changes } = await watching();
    const file = join(root, 'models/base/model.safetensors');
    const { atime, mtime } = statSync(file);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(7, bytes.length - 4));
    utimesSync(file, atime, mtime);
    const [change, ...others] = await changes();
    expect(others).toEqual([]);
    expect(change).toMatch(
      /^weights\/base models\/base\/model.safetensors: was touched since the gate \(.*change time\)$/,
    );
  });

  it('sees a change through another name of the same file', async () => {
    const { root, changes } = await watching();
    const alias = join(temporaryFolder(), 'alias');
    linkSync(join(root, 'models/base/config.json'), alias);
    appendFileSync(alias, ' ');
    expect(await changes()).toMatchObject([
      expect.stringMatching(/config.json: was touched since the gate \(size/),
    ]);
  });

  it('sees replaced, removed and new files, and links', async () => {
    const { root, changes } = await watching();
    const file = join(root, 'models/base/config.json');
    cpSync(file, `${file}.new`, { preserveTimestamps: true });
    renameSync(`${file}.new`, file);
    rmSync(join(root, 'tasks/two.txt'));
    put(root, 'models/M-7/extra', 'x');
    rmSync(join(root, 'models/M-42'), { recursive: true });
    symlinkSync('M-7', join(root, 'models/M-42'));
    const found = await changes();
    expect(found).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^weights\/base models\/base\/config.json: was touched .*inode/),
        'tasks/two tasks/two.txt: is gone since the gate',
        'weights/M@7 models/M-7/extra: is new since the gate',
        expect.stringMatching(/^weights\/M@42 models\/M-42: is a link that is not followed/),
        'weights/M@42 models/M-42/model.safetensors: is gone since the gate',
      ]),
    );
  });
});
