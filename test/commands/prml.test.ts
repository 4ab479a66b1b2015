import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { command as audit } from '../../src/commands/audit.js';
import type { CommandResult, OptionValue } from '../../src/commands/command.js';
import { command as exportVerb } from '../../src/commands/export.js';
import { command as report } from '../../src/commands/report.js';
import { digestOf, hexOf, sha256Hex } from '../../src/core/digest.js';
import { formatClaim, hashClaim, readClaim } from '../../src/report/prml/claim.js';
import { claimSource } from '../../src/report/prml/source.js';
import {
  newBook,
  newWorkspace,
  PROTOCOL_VALUE,
  SLOTS,
  SlotScript,
  TASK_FILE,
  TASK_IDS,
} from '../ledger/support.js';
import { put, temporaryFolder } from '../manifest/fixture.js';
import { errorOf, rejectionOf } from '../signing/support.js';
import { commandContext } from './context.js';

const DECISIONS = [
  { id: 'adopt', contrast: 'O-base', comparator: '>=', threshold: 0.25, when_met: 'O', otherwise: 'base' },
  { id: 'strict', contrast: 'O-base', comparator: '>', threshold: 0.5, when_met: 'O', otherwise: 'base' },
  { id: 'worse', contrast: 'O-base', comparator: '<', threshold: 0.5, when_met: 'base', otherwise: 'O' },
];
const CHANGES = { analysis: { ...PROTOCOL_VALUE.analysis, decisions: DECISIONS } };
const PRODUCER = 'example.org';

/** O is right on its first rep, base never: the contrast is 1/2. `open` leaves one of O's eight slots unresolved. */
async function workspace(options: { open?: boolean; unblind?: 'whole' | 'partial' } = {}) {
  const mine = SLOTS.filter((slot) => slot.queue === 'main' && slot.arm === 'O' && slot.rep === 0);
  const scripts = SLOTS.map((slot) => {
    const script = new SlotScript(slot);
    if (options.open === true && slot.id === mine[0]?.id) {
      return script.start().failed('generate', 'time_limit').finished('failure').unresolved();
    }
    return script.whole(slot.arm === 'O' && slot.rep === 0 ? 1 : 0);
  });
  const made = await newBook(scripts, CHANGES);
  put(made.root, 'tasks/two.jsonl', TASK_FILE);
  const unblind = (partial: boolean) => {
    const { planned, settled, unresolved } = made.book.fold.slots.total();
    made.book.store.append([{ type: 'unblinded', partial, planned, settled, unresolved, pending: 0 }]);
  };
  if (options.unblind !== undefined) unblind(options.unblind === 'partial');
  return { ...made, unblind };
}

function claim(
  root: string,
  out: string,
  options: Record<string, OptionValue> = {},
  args: readonly string[] = [],
): Promise<CommandResult> {
  const all = { prml: 'adopt', producer: PRODUCER, out, ...options };
  return exportVerb.run(args, all, commandContext(root));
}

const bytesOf = (root: string, file: string): Buffer => readFileSync(join(root, file));

describe('boundbook export --prml', () => {
  it('writes what the plan fixed, the same bytes before the run, while blinded and after unblinding', async () => {
    const fresh = await newWorkspace(CHANGES);
    put(fresh.root, 'tasks/two.jsonl', TASK_FILE);
    const before = await claim(fresh.root, 'before.yaml');
    const { root, stored, unblind } = await workspace();
    expect(stored.digest).toBe(fresh.stored.digest);
    await claim(root, 'blinded.yaml');
    unblind(false);
    await claim(root, 'after.yaml');
    const text = bytesOf(fresh.root, 'before.yaml').toString();
    const read = readClaim(Buffer.from(text), 'before.yaml');
    expect(text).toBe(`claim_id: ${read.claim.claim_id}
comparator: '>='
created_at: '2026-11-30T00:00:00Z'
dataset:
  hash: ${sha256Hex(TASK_FILE)}
  id: two
metric: O-base
metric_args:
  decision: adopt
  estimand: estimates the mean difference in reward of one rollout, O minus base, equal weight over 2 training seeds of the one arm against the fixed weights of the other, equal weight over 2 tasks
  judge: integer
  manifest_sha256: ${hexOf(stored.digest)}
  planned_slots: 12
  protocol_sha256: ${sha256Hex('protocol')}
  unresolved_rule: worst-case
producer:
  id: example.org
seed: 0
threshold: 0.25
version: prml/0.1
`);
    expect(before.json).toMatchObject({ claim: { hash: sha256Hex(text) }, observed: null, record: null });
    for (const file of ['blinded.yaml', 'after.yaml']) expect(bytesOf(root, file).toString()).toBe(text);
  });

  it('observes the unfavourable end, and only after unblinding (law 8)', async () => {
    const { root, unblind } = await workspace({ open: true });
    const blinded = await claim(root, 'a.yaml', { linkage: 'start.yaml' });
    expect(blinded.json).toMatchObject({ observed: null, record: { kind: 'start' } });
    expect(blinded.text).toContain('not before unblinding');
    expect(bytesOf(root, 'start.yaml').toString()).not.toContain('result');
    unblind(false);
    // One of eight slots of O is unresolved: [3/8, 1/2].
    const adopt = await claim(root, 'b.yaml', { linkage: 'final.yaml' });
    expect(adopt.json).toMatchObject({ observed: { observed: 0.375, passes: true, label: 'confirmatory' } });
    const worse = await claim(root, 'c.yaml', { prml: 'worse' });
    expect(worse.json).toMatchObject({ observed: { observed: 0.5, passes: false } });
    const final = bytesOf(root, 'final.yaml').toString();
    await report.run([], { format: 'json', out: 'report.json' }, commandContext(root));
    expect(final).toContain(`start_hash: ${digestOf(bytesOf(root, 'start.yaml')).slice(7)}\n`);
    expect(final).toContain(`  digest: ${digestOf(bytesOf(root, 'report.json')).slice(7)}\n`);
    expect(final).toContain('  exit_code: 0\n');
    expect(final).toContain('  observed: 0.375\n');
    expect(final).toContain(`manifest_hash: ${digestOf(bytesOf(root, 'b.yaml')).slice(7)}\n`);
  });

  it('an outcome that was opened in part is exploratory', async () => {
    const { root } = await workspace({ unblind: 'partial' });
    expect((await claim(root, 'a.yaml')).json).toMatchObject({
      observed: { observed: 0.5, passes: true, label: 'exploratory' },
    });
    expect((await claim(root, 's.yaml', { prml: 'strict' })).json).toMatchObject({
      observed: { observed: 0.5, passes: false },
    });
  });

  it('refuses what does not go, and writes nothing then', async () => {
    const { root } = await workspace();
    writeFileSync(join(root, 'taken.yaml'), 'mine');
    const fresh = await newWorkspace(CHANGES);
    put(fresh.root, 'tasks/two.jsonl', TASK_FILE);
    const cases: readonly (readonly [() => Promise<CommandResult>, string])[] = [
      [() => claim(root, 'x.yaml', { prml: 'no such' }), 'USAGE'],
      [() => claim(root, 'x.yaml', { producer: undefined }), 'USAGE'],
      [() => claim(root, 'x.yaml', { prml: undefined }), 'USAGE'],
      [() => claim(root, 'x.yaml', { prml: '' }), 'USAGE'],
      [() => claim(root, 'x.yaml', { tar: 'x.tar' }), 'USAGE'],
      [() => claim(root, 'x.yaml', { redact: 'tasks' }), 'USAGE'],
      [() => claim(root, 'x.yaml', { report: ['r.json'] }), 'USAGE'],
      [() => claim(root, 'taken.yaml'), 'FILE_EXISTS'],
      [() => claim(root, 'x.yaml', { linkage: 'taken.yaml' }), 'FILE_EXISTS'],
      [() => claim(root, 'x.yaml', { producer: 'a\u0000b' }), 'CLAIM_INVALID'],
      [() => claim(root, 'x.yaml', {}, ['nobody']), 'MANIFEST_NOT_FOUND'],
      [() => claim(fresh.root, 'x.yaml', { linkage: 'l.yaml' }), 'CLAIM_UNSUPPORTED'],
    ];
    for (const [run, code] of cases) expect((await rejectionOf(run())).code).toBe(code);
    for (const place of [root, fresh.root]) {
      expect(existsSync(join(place, 'x.yaml'))).toBe(false);
      expect(existsSync(join(place, 'l.yaml'))).toBe(false);
    }
    expect(bytesOf(root, 'taken.yaml').toString()).toBe('mine');
  });
});

describe('what a claim is made of', () => {
  async function sourceOf(changes: Record<string, unknown>, decision = 'adopt') {
    const { stored } = await newWorkspace({ ...CHANGES, ...changes });
    return claimSource(stored, TASK_IDS, decision, PRODUCER);
  }

  it('several evaluations have no one seed, and count', async () => {
    const queues = {
      ...PROTOCOL_VALUE.queues,
      main: { ...PROTOCOL_VALUE.queues.main, evaluation_seeds: [0, 1, 2] },
    };
    const { stored } = await newWorkspace(CHANGES);
    const protocol = { ...stored.manifest.protocol, queues } as typeof stored.manifest.protocol;
    const manifest = { ...stored.manifest, protocol };
    const source = claimSource({ digest: stored.digest, manifest }, TASK_IDS, 'adopt', PRODUCER);
    expect(source).toMatchObject({ seed: null, plannedSlots: 36 });
  });

  it('a comparison of several weights names none; of one it names them', async () => {
    expect((await sourceOf({})).model).toBeNull();
    const { stored } = await newWorkspace(CHANGES);
    const { protocol } = stored.manifest;
    const one = {
      ...protocol,
      conditions: { ...protocol.conditions, terse: protocol.conditions.default },
      arms: { O: { model: 'base', condition: 'default' }, base: { model: 'base', condition: 'terse' } },
    } as typeof protocol;
    const weights = {
      kind: 'file',
      name: 'weights/base',
      path: 'x',
      size: 1,
      digest: digestOf('w'),
    } as const;
    const others = stored.manifest.bindings.filter(({ name }) => name !== 'weights/base');
    const manifest = { ...stored.manifest, protocol: one, bindings: [...others, weights] };
    const source = claimSource({ manifest, digest: stored.digest }, TASK_IDS, 'adopt', PRODUCER);
    expect(source).toMatchObject({
      model: { name: 'base', digest: digestOf('w') },
      plannedSlots: 8,
      seed: 0n,
      grader: 'integer',
    });
  });

  it('a union stands for its parts, and what is not bound or does not pair cannot be claimed', async () => {
    const { stored } = await newWorkspace(CHANGES);
    const { protocol } = stored.manifest;
    const with_ = (change: Partial<typeof protocol>) => ({
      digest: stored.digest,
      manifest: { ...stored.manifest, protocol: { ...protocol, ...change } },
    });
    const union = with_({
      task_sets: { ...protocol.task_sets, both: { union_of: ['two', 'two'], count: 4 } },
      queues: { ...protocol.queues, main: { ...protocol.queues.main, tasks: 'both' } as never },
    });
    const ids = new Map([...TASK_IDS, ['both', ['t1', 't2', 't3', 't4']] as const]);
    const digest = digestOf(TASK_FILE);
    expect(claimSource(union, ids, 'adopt', PRODUCER)).toMatchObject({
      tasks: { name: 'both', digest: digestOf(`["${digest}","${digest}"]`) },
      plannedSlots: 24,
    });
    const unbound = { ...with_({}), manifest: { ...stored.manifest, bindings: [] } };
    expect(errorOf(() => claimSource(unbound, TASK_IDS, 'adopt', PRODUCER)).code).toBe('CLAIM_UNSUPPORTED');
    const apart = with_({
      models: { ...protocol.models, base: { training_seeds: [9], weights: 'w-{seed}' } } as never,
    });
    expect(errorOf(() => claimSource(apart, TASK_IDS, 'adopt', PRODUCER)).code).toBe('CLAIM_UNSUPPORTED');
  });
});

describe('boundbook audit --prml', () => {
  async function check(root: string, file: string, args: readonly string[] = []) {
    const result = await audit.run(args, { prml: file }, commandContext(root));
    const json = result.json as {
      schema: string;
      findings: { code: string; message: string; where: { pointer: string | null } }[];
      checked: string[];
      remarks: string[];
      not_checked: string[];
    };
    return { ...result, json, claims: json.findings.filter(({ code }) => code === 'CLAIM_DIFFERS') };
  }

  function altered(root: string, file: string, out: string, from: string | RegExp, to: string): string {
    put(root, out, bytesOf(root, file).toString().replace(from, to));
    return out;
  }

  it('holds a claim against the plan; whether it holds is said after unblinding alone', async () => {
    const { root, unblind } = await workspace({ open: true });
    await claim(root, 'a.yaml');
    const blinded = await check(root, 'a.yaml');
    expect(blinded.claims).toEqual([]);
    expect(blinded.json.checked.join('\n')).toContain('against the plan: O-base >= 0.25');
    expect(blinded.json.not_checked.join('\n')).toContain(
      'whether the claim a.yaml holds: outcomes are not unblinded',
    );
    expect(blinded.text).not.toContain('0.375');
    unblind(false);
    const opened = await check(root, 'a.yaml');
    expect(opened.json.checked.join('\n')).toContain(
      'the claim holds: 0.375 was observed, at the unfavourable end',
    );
    await claim(root, 'w.yaml', { prml: 'worse' });
    expect((await check(root, 'w.yaml')).json.checked.join('\n')).toContain(
      'does not hold: 0.5 was observed',
    );
  });

  it('finds what contradicts the plan', async () => {
    const { root } = await workspace({ unblind: 'whole' });
    await claim(root, 'a.yaml');
    const softer = await check(root, altered(root, 'a.yaml', 'b.yaml', 'threshold: 0.25', 'threshold: 0.1'));
    expect(softer.exitCode).toBe(4);
    expect(softer.claims.map(({ where }) => where.pointer)).toEqual(['/threshold']);
    expect(softer.claims[0]?.message).toBe('b.yaml says 0.1; the plan says 0.25');
    expect(softer.json.checked.join()).not.toContain('was observed');
    const slots = await check(
      root,
      altered(root, 'a.yaml', 'c.yaml', 'planned_slots: 12', 'planned_slots: 6'),
    );
    expect(slots.claims.map(({ where }) => where.pointer)).toEqual(['/metric_args/planned_slots']);
    const other = await check(
      root,
      altered(root, 'a.yaml', 'd.yaml', 'decision: adopt', 'decision: invented'),
    );
    expect(other.claims.map(({ message }) => message)).toEqual([
      'd.yaml claims something that the plan does not decide on',
    ]);
  });

  it('a claim by another tool is found by its figure, and what it leaves open is listed', async () => {
    const { root } = await workspace({ unblind: 'whole' });
    await claim(root, 'a.yaml');
    const { metric_args: _, ...bare } = readClaim(bytesOf(root, 'a.yaml'), 'a.yaml').claim;
    put(root, 'bare.yaml', `# by hand\n${formatClaim(bare).toString()}`);
    const result = await check(root, 'bare.yaml');
    expect(result.claims).toEqual([]);
    expect(result.json.remarks.join('\n')).toContain('bare.yaml is not in its canonical form');
    expect(result.json.not_checked).toContain(
      '/metric_args/planned_slots of the claim bare.yaml: it does not say',
    );
    put(root, 'no.yaml', formatClaim({ ...bare, metric: 'accuracy' }));
    expect((await check(root, 'no.yaml')).claims).toHaveLength(1);
  });

  it('before the first run the plan is enough', async () => {
    const { root, stored } = await newWorkspace(CHANGES);
    put(root, 'tasks/two.jsonl', TASK_FILE);
    await claim(root, 'a.yaml');
    const result = await check(root, 'a.yaml');
    expect(result).toMatchObject({ json: { schema: 'boundbook/claim-check/1', manifest: stored.digest } });
    expect(result.exitCode).toBeUndefined();
    expect(result.json.not_checked.join()).toContain('whether the claim a.yaml holds');
    const softer = await check(root, altered(root, 'a.yaml', 'b.yaml', 'threshold: 0.25', 'threshold: 0.1'));
    expect(softer.exitCode).toBe(4);
    expect(softer.text).toContain('b.yaml says 0.1; the plan says 0.25');
  });

  it('alone a claim is held against its own rules: the public vector', async () => {
    const root = temporaryFolder();
    const vector = `claim_id: 01900000-0000-7000-8000-000000000000
comparator: '>='
created_at: '2026-05-01T12:00:00Z'
dataset:
  hash: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
  id: imagenet-val-2012
metric: accuracy
producer:
  id: studio-11.co
seed: 42
threshold: 0.85
version: prml/0.1
`;
    put(root, 'tv-001.yaml', vector);
    const result = await check(root, 'tv-001.yaml');
    expect(result.text.replace(/\s+/g, ' ')).toContain(
      '1a3466cc08ee7fb60a726ea1c4db6ecf48a9f847b9b7523bfb54b2ffaefee546, of the file',
    );
    expect(result).toMatchObject({ json: { manifest: null, claim: { canonical: true } } });
    expect(result.json.not_checked).toEqual([
      'whether it is about a plan, and holds: there is no manifest here',
    ]);
    expect(hashClaim(readClaim(Buffer.from(vector), 'x').claim)).toBe(sha256Hex(vector));
    put(root, 'bad.yaml', vector.replace('seed: 42', 'seed: yes'));
    const invalid = await rejectionOf(audit.run([], { prml: 'bad.yaml' }, commandContext(root)));
    expect(invalid).toMatchObject({ code: 'CLAIM_INVALID', exitCode: 2 });
    expect((await rejectionOf(audit.run([], { prml: 'none.yaml' }, commandContext(root)))).code).toBe(
      'FILE_NOT_FOUND',
    );
  });
});
