import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { bindManifest } from '../../src/manifest/bind.js';
import { freezeProtocol } from '../../src/manifest/freeze.js';
import { sequenceGaps } from '../../src/manifest/lineage.js';
import { overduePlans } from '../../src/manifest/overdue.js';
import { loadManifest } from '../../src/manifest/select.js';
import { readWorkspace, type StoredManifest } from '../../src/manifest/workspace.js';
import { amendPlainly, PROTOCOL, put, putModel, type Workplace, workplace } from './fixture.js';

let place: Workplace;
/** tiny r1, bound further once; other r1, due later; tiny r2, which supersedes r1. */
let stored: { first: StoredManifest; bound: StoredManifest; other: StoredManifest; second: StoredManifest };

beforeEach(async () => {
  place = workplace();
  const { root, surroundings } = place;
  rmSync(join(root, 'models/base'), { recursive: true });
  const first = await freezeProtocol('protocol/tiny.yaml', surroundings);
  putModel(root, 'base', 3);
  const bound = await bindManifest('tiny', surroundings);
  const named = (text: string): string =>
    text.replace('name: tiny', 'name: other').replace('2026-12-31', '2027-06-30');
  put(root, 'protocol/other.yaml', named(PROTOCOL));
  const other = await freezeProtocol('protocol/other.yaml', surroundings);
  put(root, 'protocol/tiny.yaml', PROTOCOL.replace('revision: 1', 'revision: 2').replace('Two', '2'));
  const second = await amendPlainly('protocol/tiny.yaml', surroundings);
  stored = { first, bound, other, second };
});

describe('loadManifest', () => {
  it('finds a manifest by path, file name, name, revision and digest', async () => {
    const { root } = place;
    const { first, bound, other, second } = stored;
    const cases: [string, StoredManifest][] = [
      [first.path, first],
      [relative(root, first.path), first],
      [first.file, first],
      ['tiny', second],
      ['tiny.r1', bound],
      ['tiny.r2', second],
      ['other', other],
      [first.digest, first],
      [first.digest.slice(7), first],
      [first.digest.slice(7, 15), first],
      [bound.digest.slice(0, 20), bound],
    ];
    for (const [selector, expected] of cases) {
      expect((await loadManifest(root, selector)).digest, selector).toBe(expected.digest);
    }
  });

  it('says what there is when it finds none or several', async () => {
    const { root } = place;
    const refused = async (selector: string | undefined): Promise<unknown> =>
      loadManifest(root, selector).then(
        () => null,
        (error: unknown) => error,
      );
    expect(await refused('tyni')).toMatchObject({
      code: 'MANIFEST_NOT_FOUND',
      hint: expect.stringContaining('Did you mean "tiny"'),
    });
    expect(await refused('tiny.r9')).toMatchObject({
      code: 'MANIFEST_NOT_FOUND',
      hint: expect.stringContaining(stored.first.file),
    });
    expect(await refused('00000000')).toMatchObject({ code: 'MANIFEST_NOT_FOUND' });
    expect(await refused('manifests/none.json')).toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(await refused('none.r1.0123456789ab.json')).toMatchObject({ code: 'FILE_NOT_FOUND' });
    const several = await refused(undefined);
    expect(several).toMatchObject({
      code: 'MANIFEST_NOT_FOUND',
      message: 'several protocols have manifests here',
    });
    expect(several).toMatchObject({
      evidence: { candidates: Object.values(stored).map(({ file }) => file) },
    });
  });

  it('takes the one protocol of a workspace without being told', async () => {
    rmSync(stored.other.path);
    expect((await loadManifest(place.root)).digest).toBe(stored.second.digest);
    await expect(loadManifest(workplace().root)).rejects.toMatchObject({
      code: 'MANIFEST_NOT_FOUND',
      message: 'this workspace has no manifest',
    });
  });
});

describe('the sequence of a workspace', () => {
  it('has no gaps until a manifest is removed, and then names them', async () => {
    const { manifests } = await readWorkspace(place.root);
    expect(manifests.map(({ digest }) => digest)).toEqual(Object.values(stored).map(({ digest }) => digest));
    expect(sequenceGaps(manifests)).toEqual([]);
    const { first, bound, other, second } = stored;
    expect(sequenceGaps([first, second])).toEqual([
      { where: second.file, message: 'numbers 2 to 3 are missing from the sequence before it' },
    ]);
    expect(sequenceGaps([bound, other])).toEqual([
      { where: bound.file, message: 'number 1 is missing from the sequence before it' },
    ]);
    const foreign = { ...other, manifest: { ...other.manifest, previous: first.digest } };
    expect(sequenceGaps([first, bound, foreign])).toEqual([
      { where: other.file, message: `names ${first.digest} as the manifest before it` },
    ]);
    const twin = { ...other, manifest: { ...other.manifest, sequence: 2 } };
    expect(sequenceGaps([first, bound, twin])).toEqual([
      { where: other.file, message: `has number 2 of the sequence, as ${bound.file} has` },
    ]);
  });

  it('shows plans that are past due and were never reported', () => {
    const all = Object.values(stored);
    const { first, bound, other, second } = stored;
    const names = (today: string, reported: readonly StoredManifest[] = []): unknown =>
      overduePlans(all, today, (one) => reported.includes(one)).map(({ name, revision, due, manifests }) => [
        name,
        revision,
        due,
        manifests.map(({ file }) => file),
      ]);
    expect(names('2026-12-31')).toEqual([]);
    const tiny = ['tiny', 2, '2026-12-31', [second.file]];
    expect(names('2027-01-01')).toEqual([tiny]);
    expect(names('2027-07-01')).toEqual([tiny, ['other', 1, '2027-06-30', [other.file]]]);
    expect(names('2027-01-01', [second])).toEqual([]);
    // A superseded plan is no duty of its own any more, and a report of it is none of its successor.
    expect(names('2027-01-01', [bound])).toEqual([tiny]);
    // Without its successor, a report of any of its manifests is a report of the plan.
    const alone = (reported: readonly StoredManifest[]) =>
      overduePlans([first, bound], '2027-01-01', (one) => reported.includes(one)).map(
        ({ revision }) => revision,
      );
    expect(alone([])).toEqual([1]);
    expect(alone([first])).toEqual([]);
  });

  it('hands the date on to a revision that declares none', () => {
    const { bound, first, second } = stored;
    const late = { ...second, manifest: { ...second.manifest, due: null } };
    const names = (reported: readonly StoredManifest[]) =>
      overduePlans([first, bound, late], '2027-01-01', (one) => reported.includes(one)).map(
        ({ revision, due }) => [revision, due],
      );
    expect(names([])).toEqual([[2, '2026-12-31']]);
    expect(names([bound])).toEqual([]);
  });
});
