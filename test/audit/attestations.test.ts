import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AuditOptions, audit } from '../../src/audit/audit.js';
import { renderAudit } from '../../src/audit/render.js';
import { toJson } from '../../src/audit/result.js';
import { canonicalText } from '../../src/core/canonical-json.js';
import { type Digest, digestOf } from '../../src/core/digest.js';
import { openBook, openOrCreateBook } from '../../src/ledger/book.js';
import { writeCheckpoint } from '../../src/ledger/checkpoints.js';
import { readNotes } from '../../src/ledger/note-files.js';
import {
  attestationName,
  loadAttestations,
  queryLabel,
  storeAttestation,
  unnamedTokens,
} from '../../src/manifest/attestations.js';
import { readAttestable, statementAbout } from '../../src/report/attestable.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { formatEnvelope, parseEnvelope } from '../../src/signing/dsse.js';
import { formatVerifierKey, generateKey, keyIdText, type SignerKey } from '../../src/signing/keys.js';
import { type Statement, signStatement } from '../../src/signing/statement.js';
import { timestampQuery } from '../../src/signing/timestamp.js';
import { type Trial, trial } from '../runner/fixture.js';
import { type Authority, makeAuthority } from '../signing/authority.js';
import { Insider } from './insider.js';

const planner = generateKey('planner');
let authority: Authority;
let other: Authority;
beforeAll(() => {
  authority = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
  other = makeAuthority(['rsa:2048']);
});
afterAll(() => {
  authority.remove();
  other.remove();
});

/** How a workspace came about. */
interface Story {
  /** Before the run. */
  readonly stampPlan?: boolean;
  /** In a checkpoint before the first attempt. */
  readonly nameTokens?: boolean;
  readonly now?: () => string;
}

interface Told {
  readonly plan: Trial;
  readonly root: string;
  readonly manifest: Buffer;
  readonly report: { readonly name: string; readonly bytes: Buffer };
  readonly trust: AuditOptions;
}

async function tell(story: Story = {}): Promise<Told> {
  const now = story.now ?? (() => new Date().toISOString());
  const plan = await trial({ prompts: { a: 'right a', b: 'wrong b' } });
  const { root, stored } = plan;
  const manifest = readFileSync(stored.path);
  if (story.stampPlan === true) await stamp(root, digestOf(manifest));
  const files = new Map([['tasks/all', readFileSync(join(root, 'tasks/all.jsonl'))]]);
  const book = await openOrCreateBook(root, stored, files, now);
  const tokens = story.nameTokens === true ? unnamedTokens(await loadAttestations(root), new Set()) : [];
  await writeCheckpoint(book, { key: planner, tokens });
  book.close();
  await plan.run({ now });
  const bytes = await finish(plan, now);
  const between = authority.intermediate;
  return {
    plan,
    root,
    manifest,
    report: { name: 'report.json', bytes },
    trust: { keys: [planner.verifier], authority: { roots: authority.root, chain: between } },
  };
}

/** The last checkpoint, and the report as it is written. */
async function finish({ root, stored }: Trial, now: () => string): Promise<Buffer> {
  const book = await openBook(root, stored, 'write', now);
  try {
    await writeCheckpoint(book, { key: planner, tokens: [] });
    return Buffer.from(renderReport(buildReport(bookInput(book)), 'json'));
  } finally {
    book.close();
  }
}

async function stamp(root: string, digest: Digest, by = authority, bare = false): Promise<string> {
  const query = await timestampQuery(digest);
  const response = by.answer(query);
  await storeAttestation(root, queryLabel(query), 'query', query);
  const bytes = bare ? by.token(response) : response;
  return (await storeAttestation(root, queryLabel(query), 'response', bytes)).file;
}

async function sign(root: string, bytes: Buffer, name: string, key: SignerKey = planner): Promise<string> {
  return signed(root, statementAbout(readAttestable(bytes, name)), key);
}

async function signed(root: string, statement: Statement, key: SignerKey): Promise<string> {
  const envelope = formatEnvelope(signStatement(statement, [key]));
  return (await storeAttestation(root, keyIdText(key.verifier.id), 'envelope', envelope)).file;
}

/** Puts other bytes into a file of the folder. */
function alter(root: string, file: string, change: (bytes: Buffer) => Buffer): void {
  const path = join(root, 'attestations', file);
  const bytes = readFileSync(path);
  chmodSync(path, 0o644);
  writeFileSync(path, change(Buffer.from(bytes)));
}

async function newestNote(plan: Trial): Promise<Buffer> {
  return (await readNotes(plan.ledger)).at(-1)?.bytes ?? Buffer.of();
}

describe('a plan that was stamped, signed, run, stamped again and reported', () => {
  let told: Told;
  beforeAll(async () => {
    told = await tell({ stampPlan: true, nameTokens: true });
    const { root, manifest, report, plan } = told;
    await sign(root, manifest, plan.stored.path);
    await sign(root, report.bytes, report.name);
    await stamp(root, digestOf(await newestNote(plan)));
    await stamp(root, digestOf(report.bytes), authority, true);
  });

  test('everything is proved, in order', async () => {
    const result = await audit(told.root, undefined, { ...told.trust, report: told.report });
    expect(result.findings).toEqual([]);
    const { times } = result;
    expect(times.plan_before_first_attempt).toBe(true);
    const [plan, first, report] = [
      times.plan_no_later_than,
      times.first_attempt_no_earlier_than,
      times.report_no_later_than,
    ].map((time) => Date.parse(time ?? ''));
    expect(plan).toBe(first);
    const [bound] = times.entries_no_later_than;
    expect(bound?.entries).toBe(result.ledger.head.size - 1);
    expect(Date.parse(bound?.time ?? '')).toBeGreaterThanOrEqual(first ?? Number.NaN);
    expect(report).toBeGreaterThanOrEqual(Date.parse(bound?.time ?? ''));
    const text = renderAudit(result);
    for (const line of [
      /^ {2}plan no later than \S+Z: attestations\/\S+\.tsr stamps the manifest$/m,
      /^ {2}first attempt no earlier than \S+Z: entry 1, before it, names the token attestations\/\S+\.tsr$/m,
      /^ {2}entries 0 to \d+ no later than \S+Z: attestations\/\S+\.tsr stamps the checkpoint over them$/m,
      /^ {2}report no later than \S+Z: /m,
      /^ {2}the plan came before the first attempt: entry 1, before it, names a token over the manifest$/m,
      /^ {2}3 time stamps by the given authority$/m,
      /^ {2}the signature of planner\+[0-9a-f]{8} over the manifest\s+\(attestations\//m,
      /^ {2}the signature of planner\+[0-9a-f]{8} over the report report\.json\s+\(attestations\//m,
      /^ {2}whether the certificate of the time-stamping authority was revoked$/m,
      /^ {2}whether models were asked before, outside this ledger/m,
    ]) {
      expect(text).toMatch(line);
    }
  });

  test('the same files give the same bytes (law 10)', async () => {
    const options = { ...told.trust, report: told.report };
    const [a, b] = [await audit(told.root, undefined, options), await audit(told.root, undefined, options)];
    expect(canonicalText(toJson(a))).toBe(canonicalText(toJson(b)));
  });

  test('without keys and authority nothing is claimed, and what is there is named', async () => {
    const result = await audit(told.root, undefined, { report: told.report });
    expect(result.findings).toEqual([]);
    expect(result.times).toEqual({
      plan_no_later_than: null,
      first_attempt_no_earlier_than: null,
      entries_no_later_than: [],
      report_no_later_than: null,
      plan_before_first_attempt: false,
    });
    const unknown = result.notChecked.join('\n');
    expect(unknown).toContain('4 time stamps: no authority was given (--tsa-ca PEM)');
    expect(unknown).toMatch(
      /whether the manifest was signed by "planner\+[0-9a-f]{8}": no such key was given/,
    );
    expect(unknown).toMatch(/whether the report report\.json was signed by "planner/);
    expect(unknown).toContain('no authority was given for the time stamps');
  });

  test('another authority and another key prove nothing, and are no finding', async () => {
    const stranger = generateKey('planner').verifier;
    const result = await audit(told.root, undefined, {
      report: told.report,
      keys: [stranger],
      authority: { roots: other.root, chain: authority.intermediate },
    });
    expect(result.findings).toEqual([]);
    expect(result.times.plan_no_later_than).toBeNull();
    expect(result.times.plan_before_first_attempt).toBe(false);
    const unknown = result.notChecked.join('\n');
    expect(unknown).toMatch(/attestations\/\S+\.tsr: no given authority stands behind it/);
    expect(unknown).toContain('no time stamp over the manifest verifies');
    expect(unknown).toMatch(/whether planner\+[0-9a-f]{8} stands behind manifest or report/);
  });

  test('a ledger key under an origin of its own counts for statements by the same key', async () => {
    const full = `planner/${'0'.repeat(32)}/1`;
    const { parseVerifierKey, verifierKey } = await import('../../src/signing/keys.js');
    const key = parseVerifierKey(formatVerifierKey(verifierKey(full, 'ed25519', planner.verifier.publicKey)));
    const result = await audit(told.root, undefined, { keys: [key] });
    expect(result.checked.join('\n')).toContain('over the manifest');
  });
});

describe('what does not hold', () => {
  test('a token with a flipped bit of its signature, under the authority’s own certificate', async () => {
    const { root, manifest, trust } = await tell();
    const file = await stamp(root, digestOf(manifest));
    alter(root, file, (bytes) => {
      bytes[bytes.length - 10] = (bytes.at(-10) ?? 0) ^ 1;
      return bytes;
    });
    const result = await audit(root, undefined, trust);
    expect(result.findings).toMatchObject([
      { code: 'TIMESTAMP_FALSE', where: { file: `attestations/${file}` } },
    ]);
    expect(result.times.plan_no_later_than).toBeNull();
    // Without an authority nobody can tell.
    expect((await audit(root, undefined)).findings).toEqual([]);
  });

  test('a token of another file, under the name of the manifest', async () => {
    const { root, manifest, trust } = await tell();
    const file = await stamp(root, digestOf('something else'));
    const bytes = readFileSync(join(root, 'attestations', file));
    const forged = attestationName(digestOf(manifest), 'forged', 'response');
    writeFileSync(join(root, 'attestations', forged), bytes);
    const result = await audit(root, undefined, trust);
    expect(result.findings).toMatchObject([
      { code: 'ATTESTATION_INVALID', where: { file: `attestations/${forged}` } },
    ]);
    expect(result.times.plan_no_later_than).toBeNull();
  });

  test('an answer whose nonce is not that of the query beside it', async () => {
    const { root, manifest, trust } = await tell();
    const file = await stamp(root, digestOf(manifest));
    const again = authority.answer(await timestampQuery(digestOf(manifest)));
    alter(root, file, () => again);
    const result = await audit(root, undefined, trust);
    expect(result.findings).toMatchObject([
      { code: 'ATTESTATION_INVALID', where: { file: `attestations/${file}` } },
    ]);
    expect(result.findings[0]?.message).toContain('nonce');
  });

  test('junk in the folder', async () => {
    const { root, manifest, trust } = await tell();
    const stem = digestOf(manifest).slice(7, 23);
    await stamp(root, digestOf(manifest));
    for (const name of [`${stem}.x.tsr`, `${stem}.x.dsse.json`, `${stem}.y.tsq`]) {
      writeFileSync(join(root, 'attestations', name), '<html>');
    }
    const result = await audit(root, undefined, trust);
    expect(result.findings.map(({ code, where }) => [code, where.file])).toEqual(
      [`${stem}.x.dsse.json`, `${stem}.x.tsr`, `${stem}.y.tsq`].map((name) => [
        'ATTESTATION_INVALID',
        `attestations/${name}`,
      ]),
    );
    expect(result.times.plan_no_later_than).not.toBeNull();
  });

  test('a signature that the key it names did not make, and one by nobody known beside it', async () => {
    const { root, manifest, trust, plan } = await tell();
    const file = await sign(root, manifest, plan.stored.path);
    alter(root, file, (bytes) => {
      const envelope = parseEnvelope(bytes);
      const forged = envelope.signatures.map((signature) => ({ ...signature, bytes: Buffer.alloc(64, 7) }));
      const more = [{ keyid: 'stranger+00000000', bytes: Buffer.alloc(64, 1) }];
      return formatEnvelope({ ...envelope, signatures: [...forged, ...more] });
    });
    const result = await audit(root, undefined, trust);
    expect(result.findings).toMatchObject([
      { code: 'SIGNATURE_FALSE', where: { file: `attestations/${file}` } },
    ]);
    expect(result.checked.join()).not.toContain('the signature of');
    expect(result.notChecked.join('\n')).toContain('"stranger+00000000"');
    expect((await audit(root, undefined)).findings).toEqual([]);
  });

  test('a signed statement that the manifest contradicts', async () => {
    const { root, manifest, trust, plan } = await tell();
    const honest = statementAbout(readAttestable(manifest, plan.stored.path));
    const predicate = { ...honest.predicate, sequence: 7 };
    const file = await signed(root, { ...honest, predicate } as Statement, planner);
    expect((await audit(root, undefined, trust)).findings).toMatchObject([
      { code: 'STATEMENT_DIFFERS', where: { file: `attestations/${file}` } },
    ]);
  });

  test('a signature over another version of the report is not one over this', async () => {
    const { root, report, trust } = await tell();
    const earlier = Buffer.from(report.bytes.toString().replace('"sequence":1', '"sequence":2'));
    await sign(root, earlier, 'report.json');
    const result = await audit(root, undefined, { ...trust, report });
    expect(result.findings).toEqual([]);
    expect(result.checked.join()).not.toContain('the signature of');
    expect(result.notChecked.join()).toContain('stands behind manifest or report');
  });

  test('a token that an entry names and the ledger lacks: the same file in the folder stands in for it', async () => {
    const told = await tell({ stampPlan: true, nameTokens: true });
    const [token] = (await told.plan.of('checkpoint'))[0]?.timestamps ?? [];
    expect(token).toBeDefined();
    const Database = (await import('better-sqlite3')).default;
    const db = new Database(join(told.plan.ledger, 'ledger.sqlite'));
    db.exec('DROP TRIGGER IF EXISTS object_delete');
    for (const name of db
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'object'")
      .pluck()
      .all()) {
      db.exec(`DROP TRIGGER ${name}`);
    }
    db.prepare('DELETE FROM object WHERE digest = ?').run(Buffer.from((token ?? '').slice(7), 'hex'));
    db.close();
    const { findings, times } = await audit(told.root, undefined, told.trust);
    expect(findings.map(({ code }) => code).sort()).toEqual(['LEDGER_SCHEMA', 'OBJECT_MISSING']);
    expect(times.first_attempt_no_earlier_than).not.toBeNull();
    rmSync(join(told.root, 'attestations'), { recursive: true });
    const bare = await audit(told.root, undefined, told.trust);
    expect(bare.times.first_attempt_no_earlier_than).toBeNull();
    expect(bare.times.plan_before_first_attempt).toBe(false);
  });
});

describe('order that is not proved', () => {
  test('a plan that was stamped only after the run', async () => {
    const { root, manifest, plan, trust } = await tell();
    await stamp(root, digestOf(await newestNote(plan)));
    await stamp(root, digestOf(manifest));
    const result = await audit(root, undefined, trust);
    expect(result.findings).toEqual([]);
    expect(result.times.plan_no_later_than).not.toBeNull();
    expect(result.times.plan_before_first_attempt).toBe(false);
    expect(result.notChecked.join('\n')).toContain(
      'no entry before the first attempt names a time-stamp token',
    );
  });

  test('no time stamp at all', async () => {
    const { root } = await tell();
    const { notChecked, order } = await audit(root, undefined);
    expect(notChecked.join('\n')).toContain('no time stamp is over the manifest');
    expect(order.join('\n')).not.toContain('no later than');
  });
});

describe('clocks', () => {
  test('entries that are dated before the token that they name', async () => {
    const { plan, trust } = await tell({ stampPlan: true, nameTokens: true });
    const insider = new Insider(plan);
    for (const entry of insider.entries.slice(0, 2)) entry.time = '2026-01-01T00:00:00.000Z';
    insider.rechain();
    const codes = (await audit(insider.root, undefined, trust)).findings.map(({ code }) => code);
    expect(codes).toContain('TIME_CONTRADICTED');
    expect(codes).toContain('TIME_BEFORE_PLAN');
  });

  test('entries that are dated after the stamp on the checkpoint over them', async () => {
    let second = 0;
    const now = () => new Date(Date.UTC(2050, 0, 1, 0, 0, second++)).toISOString();
    const { root, plan, trust } = await tell({ now });
    await stamp(root, digestOf(await newestNote(plan)));
    const { findings } = await audit(root, undefined, trust);
    expect(findings).toMatchObject([{ code: 'TIME_CONTRADICTED' }]);
    expect(findings[0]?.message).toContain('dated 2050-01-01');
    expect((await audit(root, undefined)).findings).toEqual([]);
  });
});

test('a certificate that has expired since still stamps what it stamped', async () => {
  const { root, manifest } = await tell();
  const short = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], 'signer', 8);
  try {
    await stamp(root, digestOf(manifest), short);
    const end = Date.parse(short.ends());
    while (Date.now() <= end + 1000) await new Promise((resolve) => setTimeout(resolve, 100));
    const { verifyTimestamp } = await import('../../src/signing/timestamp.js');
    const [response] = (await loadAttestations(root)).all.filter(({ kind }) => kind === 'response');
    const evidence = {
      response: response?.bytes ?? Buffer.of(),
      digest: digestOf(manifest),
      roots: short.root,
      chain: short.intermediate,
    };
    await expect(verifyTimestamp({ ...evidence, validAt: Math.floor(Date.now() / 1000) })).rejects.toThrow(
      /expired/,
    );
    const result = await audit(root, undefined, {
      authority: { roots: short.root, chain: short.intermediate },
    });
    expect(result.findings).toEqual([]);
    expect(result.times.plan_no_later_than).not.toBeNull();
  } finally {
    short.remove();
    rmSync(join(root, 'attestations'), { recursive: true });
  }
});
