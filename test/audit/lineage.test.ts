import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { Findings } from '../../src/audit/finding.js';
import { checkLineage } from '../../src/audit/lineage.js';
import type { Digest } from '../../src/core/digest.js';
import { bindManifest } from '../../src/manifest/bind.js';
import { descentFaults, successionFaults } from '../../src/manifest/descent.js';
import { freezeProtocol } from '../../src/manifest/freeze.js';
import type { Manifest } from '../../src/manifest/manifest.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import { PROTOCOL, put, putModel, workplace } from '../manifest/fixture.js';

let parent: StoredManifest;
let child: StoredManifest;
let closed: StoredManifest;

beforeAll(async () => {
  const { root, surroundings } = workplace(PROTOCOL.replace('pending: []', 'pending: [smoke run]'));
  rmSync(join(root, 'models/M-7'), { recursive: true });
  parent = await freezeProtocol('protocol/tiny.yaml', surroundings);
  putModel(root, 'M-7', 2);
  child = await bindManifest(undefined, surroundings);
  put(root, 'smoke.txt', 'done\n');
  const resolution = { item: 'smoke run', evidence: 'smoke.txt' };
  closed = await bindManifest(undefined, surroundings, resolution);
});

function faultsOf(edit: Partial<Manifest>, of = child, from = parent): string[] {
  return descentFaults({ ...of.manifest, ...edit }, from.manifest).map(({ where }) => where);
}

describe('what was bound further', () => {
  it('follows from its parent', () => {
    expect(faultsOf({})).toEqual([]);
    expect(faultsOf({}, closed, child)).toEqual([]);
    const findings = new Findings();
    expect(checkLineage(closed, [child, parent], findings)).toEqual([]);
    expect(findings.total).toBe(0);
  });

  it('does not with another plan, binding, evidence, or place in the sequence', () => {
    const { protocol, bindings, plan } = child.manifest;
    expect(faultsOf({ protocol: { ...protocol, blinding: 'none' } })).toEqual(['/protocol']);
    expect(
      faultsOf({ protocol_source: { ...child.manifest.protocol_source, raw_digest: digest('a') } }),
    ).toEqual(['/protocol_source']);
    expect(faultsOf({ supersedes: digest('b'), reason: 'why' })).toEqual(['/supersedes', '/reason']);
    expect(faultsOf({ plan: { count: 1, digest: plan?.digest ?? digest('c') } })).toEqual(['/plan']);
    expect(faultsOf({ bindings: bindings.slice(1) })).toEqual(['/bindings']);
    expect(faultsOf({ bindings: bindings.map((one, i) => (i === 0 ? { ...one, size: 1 } : one)) })).toEqual([
      '/bindings',
    ]);
    const evidence = { path: 'smoke.txt', size: 5, digest: digest('d') };
    const grandchild = { ...closed, manifest: { ...closed.manifest, sequence: 9 } };
    expect(faultsOf({ pending_items: [{ item: 'smoke run', evidence }] }, grandchild, closed)).toEqual([
      '/pending_items',
    ]);
    expect(faultsOf({ sequence: 1 })).toEqual(['/sequence']);
    expect(faultsOf({ created: '2026-09-27T11:00:00.000Z' })).toEqual(['/created']);
  });

  it('is found in every place of a lineage, and what is not at hand is named', () => {
    const forged = { ...child, manifest: { ...child.manifest, created: '2026-09-27T13:00:00.000Z' } };
    const findings = new Findings();
    expect(checkLineage(closed, [forged], findings)).toEqual([parent.digest]);
    expect(findings.list(true)).toMatchObject([
      { code: 'LINEAGE_BROKEN', clause: 'P10', where: { pointer: '/created' } },
    ]);
  });
});

describe('an amended plan', () => {
  const exposure = { slots_run: 5, settled: 4, unblinded: true, bounds: {}, declared: null };
  const amended = (edit: Partial<Manifest>): Manifest => ({
    ...parent.manifest,
    ...{ sequence: 7, revision: 2, supersedes: closed.digest, reason: 'fewer seeds', exposure },
    ...edit,
    created: '2026-09-28T00:00:00.000Z',
  });
  const faults = (edit: Partial<Manifest>, before: Partial<Manifest> = {}): string[] =>
    successionFaults(amended(edit), { ...closed.manifest, ...before }).map(({ where }) => where);

  it('follows the plan that it supersedes', () => {
    expect(faults({})).toEqual([]);
    expect(faults({ name: 'other' })).toEqual(['/name']);
    expect(faults({ revision: 1 })).toEqual(['/revision']);
  });

  it('was never exposed less than the plan before', () => {
    expect(faults({}, { exposure })).toEqual([]);
    expect(faults({}, { exposure: { ...exposure, slots_run: 6, settled: 5 } })).toEqual([
      '/exposure/slots_run',
      '/exposure/settled',
    ]);
    expect(faults({ exposure: { ...exposure, unblinded: false } }, { exposure })).toEqual([
      '/exposure/unblinded',
    ]);
  });
});

function digest(digit: string): Digest {
  return `sha256:${digit.repeat(64)}`;
}
