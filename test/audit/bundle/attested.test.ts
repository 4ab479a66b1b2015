import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditBundle, type BundleAuditOptions } from '../../../src/audit/audit.js';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import type { AuditResult } from '../../../src/audit/result.js';
import { command } from '../../../src/commands/audit.js';
import { command as unblind } from '../../../src/commands/unblind.js';
import { digestOf } from '../../../src/core/digest.js';
import { queryLabel, storeAttestation } from '../../../src/manifest/attestations.js';
import { readAttestable, statementAbout } from '../../../src/report/attestable.js';
import { formatEnvelope } from '../../../src/signing/dsse.js';
import { formatVerifierKey, generateKey, keyIdText } from '../../../src/signing/keys.js';
import { signStatement } from '../../../src/signing/statement.js';
import { timestampQuery } from '../../../src/signing/timestamp.js';
import { commandContext } from '../../commands/context.js';
import { type Trial, trial } from '../../runner/fixture.js';
import { type Authority, makeAuthority } from '../../signing/authority.js';
import { LooseBundle } from '../../support/loose-bundle.js';
import { call, hasPython, NO_PYTHON } from '../../verify/python.js';
import { TestRepository } from '../repository/support.js';

/** A bundle with everything that can prove it: signed, stamped before the run, committed before its results. */

const KEY = generateKey('lab.example');
const NAMESAKE = generateKey('lab.example');
let authority: Authority;
let stranger: Authority;
let plan: Trial;
let bundle: string;

beforeAll(async () => {
  authority = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
  stranger = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
  plan = await trial({ prompts: { right: 'right a', wrong: 'wrong b' } });
  await sign(plan);
  await stamp(plan);
  await plan.run({ workers: 1, key: KEY });
  bundle = await handOver(plan);
}, 120_000);

afterAll(() => {
  authority.remove();
  stranger.remove();
});

async function sign({ root, stored }: Trial): Promise<void> {
  const statement = statementAbout(readAttestable(readFileSync(stored.path), stored.file));
  const envelope = formatEnvelope(signStatement(statement, [KEY]));
  await storeAttestation(root, keyIdText(KEY.verifier.id), 'envelope', envelope);
}

async function stamp({ root, stored }: Trial): Promise<void> {
  const query = await timestampQuery(digestOf(readFileSync(stored.path)));
  await storeAttestation(root, queryLabel(query), 'query', query);
  await storeAttestation(root, queryLabel(query), 'response', authority.answer(query));
}

/** Unblinds and exports. */
async function handOver({ root }: Trial): Promise<string> {
  await unblind.run([], {}, commandContext(root));
  return (await exportBundle(root, undefined, { out: 'bundle' })).folder;
}

const trusted = (): BundleAuditOptions => ({
  keys: [KEY.verifier],
  authority: { roots: authority.root, chain: authority.intermediate },
});

const manifest = (): Buffer => readFileSync(plan.stored.path);
const report = (): Buffer => readFileSync(join(bundle, 'report/report.json'));

function repository(...steps: readonly Readonly<Record<string, Uint8Array>>[]): BundleAuditOptions {
  const made = new TestRepository();
  for (const step of steps) made.commit(step);
  return { repository: { folder: made.folder, results: null } };
}

function codes({ findings }: AuditResult): string[] {
  return findings.map(({ code }) => code);
}

describe('a plan that was stamped before it was run', () => {
  it('the bundle proves the order: plan, then first attempt', async () => {
    const result = await auditBundle(bundle, trusted());
    expect(codes(result)).toEqual([]);
    const { times, order } = result;
    expect(times.plan_no_later_than).toMatch(/^20\d\d-.*Z$/);
    expect(times.first_attempt_no_earlier_than).toMatch(/^20\d\d-.*Z$/);
    expect(times.plan_before_first_attempt).toBe(true);
    const text = order.join('\n');
    expect(text).toMatch(/^plan no later than .*Z: attestations\/.*\.tsr stamps the manifest$/m);
    expect(text).toMatch(/^first attempt no earlier than .*Z: entry \d+, before it, names/m);
    expect(text).toMatch(/^the plan came before the first attempt/m);
    expect(result.checked.join('\n')).toMatch(/the signature of lab\.example\+[0-9a-f]{8} over the manifest/);
  });

  it('says the same by the verb, with the certificates and the key as files and text', async () => {
    writeFileSync(join(plan.root, 'root.pem'), authority.root);
    writeFileSync(join(plan.root, 'between.pem'), authority.intermediate);
    const { repository: given } = repository({ 'm.json': manifest() }, { 'r.json': report() });
    const flags = {
      key: [formatVerifierKey(KEY.verifier)],
      tsaCa: 'root.pem',
      tsaChain: 'between.pem',
      repository: given?.folder ?? '',
    };
    const { text, exitCode } = await command.run([bundle], flags, commandContext(plan.root));
    expect(exitCode).toBeUndefined();
    expect(text).toMatch(/plan no later than/);
    expect(text).toMatch(/first attempt no earlier than/);
    expect(text).toMatch(/holds the manifest \(.*\) and comes before commit .*, which holds the report/);
  });

  it('another authority and another key of the same name prove nothing, and are no finding', async () => {
    const result = await auditBundle(bundle, {
      keys: [NAMESAKE.verifier],
      authority: { roots: stranger.root, chain: stranger.intermediate },
    });
    expect(codes(result)).toEqual([]);
    expect(result.times).toMatchObject({
      plan_no_later_than: null,
      first_attempt_no_earlier_than: null,
      plan_before_first_attempt: false,
    });
    const unchecked = result.notChecked.join('\n');
    expect(unchecked).toMatch(/whether the manifest was signed by "lab\.example\+/);
    expect(unchecked).toMatch(/no given authority stands behind it/);
  });

  it('a token with another signature is found', async () => {
    const loose = LooseBundle.read(bundle);
    const [path = '', bytes = Buffer.of()] = [...loose.files].find(([one]) => one.endsWith('.tsr')) ?? [];
    const altered = Buffer.from(bytes);
    altered[altered.length - 10] = (altered.at(-10) ?? 0) ^ 1;
    loose.files.set(path, altered);
    const result = await auditBundle(loose.write(join(plan.root, 'altered')), trusted());
    expect(new Set(codes(result))).toEqual(new Set(['TIMESTAMP_FALSE']));
  });
});

describe('a plan that was stamped after it was run', () => {
  it('nothing says that it came first', async () => {
    const late = await trial({ prompts: { right: 'right a' } });
    await late.run({ workers: 1, key: KEY });
    await stamp(late);
    const result = await auditBundle(await handOver(late), trusted());
    expect(codes(result)).toEqual([]);
    expect(result.times.plan_no_later_than).not.toBeNull();
    expect(result.times).toMatchObject({
      first_attempt_no_earlier_than: null,
      plan_before_first_attempt: false,
    });
    expect(result.notChecked.join('\n')).toMatch(/whether the plan came before the first attempt/);
  }, 60_000);
});

describe('a bundle and a repository', () => {
  it('the commit of the manifest comes before that of the report', async () => {
    const good = repository({ 'm.json': manifest() }, { other: Buffer.from('x') }, { 'r.json': report() });
    const result = await auditBundle(bundle, { ...trusted(), ...good });
    expect(codes(result)).toEqual([]);
    expect(result.order.at(-1)).toMatch(/holds the manifest \(.*\) and comes before commit .*: 2 steps/);
  });

  it('results committed first are found, and so is a manifest on another branch', async () => {
    const turned = repository({ 'r.json': report() }, { 'm.json': manifest() });
    expect(codes(await auditBundle(bundle, { ...trusted(), ...turned }))).toEqual(['COMMIT_ORDER']);
    const made = new TestRepository();
    made.commit({ start: Buffer.from('x') });
    made.git('checkout', '-q', '-b', 'plans');
    made.commit({ 'm.json': manifest() });
    made.git('checkout', '-q', 'main');
    made.commit({ 'r.json': report() });
    const apart = { repository: { folder: made.folder, results: null } };
    expect(codes(await auditBundle(bundle, { ...trusted(), ...apart }))).toEqual(['COMMIT_ORDER']);
  });
});

describe.skipIf(!hasPython)(`the second verifier on signatures (${NO_PYTHON})`, () => {
  interface Run {
    readonly status: number;
    readonly document: {
      readonly verified_checkpoints: number;
      readonly findings: readonly { code: string }[];
      readonly not_checked: readonly string[];
    };
  }

  function verify(folder: string, key = KEY): Run {
    const [answer] = call([['verify', [folder, '--key', formatVerifierKey(key.verifier)]]]);
    return answer?.value as Run;
  }

  it('verifies the envelope and the checkpoints with the key', () => {
    const { status, document } = verify(bundle);
    expect(status).toBe(0);
    expect(document.verified_checkpoints).toBeGreaterThanOrEqual(2);
    expect(document.not_checked.join('\n')).not.toMatch(/a signed statement|a signed checkpoint/);
  });

  it('proves nothing by a namesake’s key', () => {
    const { status, document } = verify(bundle, NAMESAKE);
    expect([status, document.verified_checkpoints]).toEqual([0, 0]);
    expect(document.not_checked.join('\n')).toMatch(/a signed statement/);
  });

  it('finds a payload that was changed after signing', () => {
    const loose = LooseBundle.read(bundle);
    const [path = '', bytes = Buffer.of()] =
      [...loose.files].find(([one]) => one.endsWith('.dsse.json')) ?? [];
    const envelope = JSON.parse(bytes.toString('utf8')) as { payload: string };
    const payload = Buffer.from(envelope.payload, 'base64')
      .toString('utf8')
      .replace('"revision":1', '"revision":2');
    const changed = { ...envelope, payload: Buffer.from(payload).toString('base64') };
    loose.files.set(path, Buffer.from(JSON.stringify(changed)));
    const { status, document } = verify(loose.write(join(plan.root, 'changed')));
    expect(status).toBe(4);
    expect(document.findings.map(({ code }) => code)).toEqual(['SIGNATURE_FALSE']);
  });
});
