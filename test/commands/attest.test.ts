import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { command as report } from '../../src/commands/report.js';
import { command as sign } from '../../src/commands/sign.js';
import { command as timestamp } from '../../src/commands/timestamp.js';
import { digestOf, hexOf } from '../../src/core/digest.js';
import { loadAttestations } from '../../src/manifest/attestations.js';
import { readAttestable, statementAbout } from '../../src/report/attestable.js';
import { parseEnvelope } from '../../src/signing/dsse.js';
import { writeSignerKey } from '../../src/signing/key-file.js';
import { formatVerifierKey, generateKey, keyIdText, type SignerKey } from '../../src/signing/keys.js';
import { verifyStatement } from '../../src/signing/statement.js';
import { timestampQuery, verifyTimestamp } from '../../src/signing/timestamp.js';
import { newBook, SLOTS, SlotScript, tempFolder } from '../ledger/support.js';
import { type Authority, makeAuthority } from '../signing/authority.js';
import { errorOf, rejectionOf } from '../signing/support.js';
import { type Answer, reply, startTsa, type TsaServer } from '../signing/tsa-server.js';
import { commandContext } from './context.js';

interface Place {
  readonly root: string;
  readonly manifest: string;
  readonly key: SignerKey;
  readonly keyFile: string;
}

/** A workspace whose run is over and unblinded, and a key beside it. */
async function place(): Promise<Place> {
  const { root, stored, book } = await newBook(SLOTS.map((slot) => new SlotScript(slot).whole(1)));
  const { planned, settled, unresolved } = book.fold.slots.total();
  book.store.append([{ type: 'unblinded', partial: false, planned, settled, unresolved, pending: 0 }]);
  await report.run([], { format: 'json', out: 'report.json' }, commandContext(root));
  const key = generateKey('planner');
  const keyFile = join(tempFolder(), 'planner.key');
  await writeSignerKey(keyFile, key, root);
  return { root, manifest: `manifests/${stored.file}`, key, keyFile };
}

function attested(root: string): string[] {
  const folder = join(root, 'attestations');
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

describe('boundbook sign', () => {
  it('signs a manifest and a report in one go; both verify', async () => {
    const { root, manifest, key, keyFile } = await place();
    const { json, text } = await sign.run([manifest, 'report.json'], { key: keyFile }, commandContext(root));
    const { signed, by } = json as { signed: Record<string, string>[]; by: string };
    expect(by).toBe(formatVerifierKey(key.verifier));
    expect(text).toContain(by);
    expect(signed.map(({ file }) => file)).toEqual([manifest, 'report.json']);
    for (const { file = '', digest, envelope = '' } of signed) {
      const bytes = readFileSync(join(root, file));
      expect(digest).toBe(digestOf(bytes));
      expect(envelope).toBe(
        `attestations/${hexOf(digestOf(bytes)).slice(0, 16)}.${keyIdText(key.verifier.id)}.dsse.json`,
      );
      const parsed = parseEnvelope(readFileSync(join(root, envelope)));
      const trust = { keys: [key.verifier], threshold: 1 };
      const { statement } = verifyStatement(parsed, trust, digestOf(bytes));
      expect(statement).toEqual(statementAbout(readAttestable(bytes, file)));
      const other = { keys: [generateKey('planner').verifier], threshold: 1 };
      expect(errorOf(() => verifyStatement(parsed, other, digestOf(bytes))).code).toBe('SIGNATURE_INVALID');
    }
  });

  it('takes a plan by its name where a folder has that name, too', async () => {
    const { root, manifest, keyFile } = await place();
    mkdirSync(join(root, 'tiny'));
    const { json } = await sign.run(['tiny'], { key: keyFile }, commandContext(root));
    expect(json).toMatchObject({ signed: [{ file: manifest }] });
    const query = await timestamp.run(['tiny'], { queryOut: 'plan.tsq' }, commandContext(root));
    expect(query.json).toMatchObject({ file: manifest });
  });

  it('says of a report what it was computed from', async () => {
    const { root, manifest, keyFile } = await place();
    await sign.run(['report.json'], { key: keyFile }, commandContext(root));
    const made = JSON.parse(readFileSync(join(root, 'report.json'), 'utf8')) as {
      ledger: { name: string; entries: number; root: string };
    };
    const [envelope] = (await loadAttestations(root)).all;
    expect(envelope?.kind === 'envelope' && envelope.statement.predicate).toEqual({
      manifest: digestOf(readFileSync(join(root, manifest))),
      ledger: { id: made.ledger.name, size: made.ledger.entries, root: `sha256:${made.ledger.root}` },
      slots: { planned: 18, settled: 18, unresolved: 0, pending: 0 },
      unblinded: true,
    });
  });

  it('takes a manifest by name, signs twice to the same bytes, and with several keys', async () => {
    const { root, keyFile } = await place();
    const first = await sign.run(['tiny'], { key: keyFile }, commandContext(root));
    const again = await sign.run(['tiny'], { key: keyFile }, commandContext(root));
    expect(again.text).toContain('was there before');
    expect(first.text).not.toContain('was there before');
    const second = join(tempFolder(), 'auditor.key');
    await writeSignerKey(second, generateKey('auditor'), root);
    await sign.run(['tiny'], { key: second }, commandContext(root));
    expect(attested(root).length).toBe(2);
  });

  it('signs nothing when one of the files is not fit', async () => {
    const { root, manifest, keyFile } = await place();
    const made = JSON.parse(readFileSync(join(root, 'report.json'), 'utf8')) as Record<string, unknown>;
    const canonical = readFileSync(join(root, 'report.json'), 'utf8');
    const cases: Record<string, readonly [content: string, code: string]> = {
      'pretty.json': [JSON.stringify(made, null, 2), 'REPORT_INVALID'],
      'line.json': [`${canonical}\n`, 'REPORT_INVALID'],
      'less.json': [JSON.stringify({ schema: 'boundbook/report/1' }), 'REPORT_INVALID'],
      'shown.json': [
        canonical.replace('"visibility":"unblinded"', '"visibility":"blinded"'),
        'REPORT_INVALID',
      ],
      'twice.json': [canonical.replace('{', '{"schema":"boundbook/report/1",'), 'REPORT_INVALID'],
      'manifest.json': ['{"format":"boundbook/manifest/1"}', 'MANIFEST_ALTERED'],
      'report.md': ['# Report\n', 'USAGE'],
      'empty.json': ['', 'FILE_EMPTY'],
    };
    for (const [file, [content, code]] of Object.entries(cases)) {
      writeFileSync(join(root, file), content);
      const run = sign.run([manifest, file], { key: keyFile }, commandContext(root));
      expect((await rejectionOf(run)).code, file).toBe(code);
    }
    expect((await rejectionOf(sign.run(['none'], { key: keyFile }, commandContext(root)))).code).toBe(
      'MANIFEST_NOT_FOUND',
    );
    expect(attested(root)).toEqual([]);
  });

  it('takes the key that BOUNDBOOK_KEY names, and none is USAGE', async () => {
    const { root, keyFile } = await place();
    vi.stubEnv('BOUNDBOOK_KEY', keyFile);
    await sign.run(['tiny'], {}, commandContext(root));
    expect(attested(root)).toHaveLength(1);
    vi.unstubAllEnvs();
    vi.stubEnv('BOUNDBOOK_KEY', '');
    expect((await rejectionOf(sign.run(['tiny'], {}, commandContext(root)))).code).toBe('USAGE');
    vi.unstubAllEnvs();
  });

  it('refuses a key in the workspace, an absent one and a cosigner’s', async () => {
    const { root, manifest } = await place();
    const inside = join(root, 'planner.key');
    writeFileSync(inside, 'x', { mode: 0o600 });
    const cosigner = join(tempFolder(), 'witness.key');
    await writeSignerKey(cosigner, generateKey('witness', 'cosignature'), root);
    for (const [key, code] of [
      [inside, 'KEY_EXPOSED'],
      [join(root, 'none.key'), 'FILE_NOT_FOUND'],
      [cosigner, 'KEY_INVALID'],
    ] as const) {
      const error = await rejectionOf(sign.run([manifest], { key }, commandContext(root)));
      expect(error.code, key).toBe(code);
    }
    expect(attested(root)).toEqual([]);
  });
});

describe('boundbook timestamp', () => {
  let authority: Authority;
  let other: Authority;
  const servers: TsaServer[] = [];
  beforeAll(() => {
    authority = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
    other = makeAuthority(['rsa:2048']);
  });
  afterAll(() => {
    authority.remove();
    other.remove();
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close();
  });

  async function tsa(answer: Answer): Promise<string> {
    const server = await startTsa(answer);
    servers.push(server);
    return server.url;
  }

  it.each(['manifest', 'report.json'])(
    'asks an authority about %s and keeps query and token',
    async (which) => {
      const { root, manifest } = await place();
      const file = which === 'manifest' ? manifest : which;
      const url = await tsa((query, response) => reply(response, authority.answer(query)));
      const args = which === 'manifest' ? [] : [file];
      const { json, text } = await timestamp.run(args, { tsa: url }, commandContext(root));
      const digest = digestOf(readFileSync(join(root, file)));
      expect(json).toMatchObject({ file, digest, policy: '1.2.3.4.1', existed: false });
      expect(text).toContain('not verified yet');
      const { all, damaged } = await loadAttestations(root);
      expect(damaged).toEqual([]);
      expect(all.map(({ kind, subject }) => [kind, subject])).toEqual([
        ['query', digest],
        ['response', digest],
      ]);
      const [query, response] = all;
      const verified = await verifyTimestamp({
        response: response?.bytes ?? Buffer.of(),
        query: query?.bytes ?? Buffer.of(),
        digest,
        roots: authority.root,
        chain: authority.intermediate,
      });
      expect(verified.time).toBe((json as { time: string }).time);
    },
  );

  it('writes nothing when the answer is to another query, of another file, a refusal or no token', async () => {
    const { root, manifest } = await place();
    const digest = digestOf(readFileSync(join(root, manifest)));
    const foreign = await timestampQuery(digest);
    const otherFile = await timestampQuery(digestOf('another file'));
    const cases: readonly (readonly [Answer, string, RegExp])[] = [
      [
        (_, response) => reply(response, authority.answer(foreign)),
        'TIMESTAMP_INVALID',
        /its nonce is another/,
      ],
      [(_, response) => reply(response, authority.answer(otherFile)), 'TIMESTAMP_INVALID', /something else/],
      [
        (query, response) => reply(response, authority.answer(query, 'refusing')),
        'TIMESTAMP_INVALID',
        /the authority refused/,
      ],
      [(_, response) => reply(response, Buffer.from('no')), 'TIMESTAMP_INVALID', /in the form of DER/],
      [(_, response) => response.writeHead(500).end(), 'AUTHORITY_FAILED', /status 500/],
    ];
    for (const [answer, code, message] of cases) {
      const url = await tsa(answer);
      const error = await rejectionOf(timestamp.run([], { tsa: url }, commandContext(root)));
      expect(error.code).toBe(code);
      expect(error.message).toMatch(message);
      expect(attested(root)).toEqual([]);
    }
  });

  it('goes without network: query out, response back', async () => {
    const { root, manifest } = await place();
    const context = commandContext(root);
    const { text } = await timestamp.run([], { queryOut: 'plan.tsq' }, context);
    expect(text).toContain(`boundbook timestamp ${manifest} --response ANSWER`);
    const query = readFileSync(join(root, 'plan.tsq'));
    expect(attested(root)).toEqual([expect.stringMatching(/\.tsq$/)]);
    // A second query is outstanding as well; each answer finds its own.
    await timestamp.run([], { queryOut: 'second.tsq' }, context);
    writeFileSync(join(root, 'plan.tsr'), authority.answer(query));
    const { json } = await timestamp.run([manifest], { response: 'plan.tsr' }, context);
    const { token } = json as { token: string };
    const stem = token.replace(/\.tsr$/, '.tsq');
    expect(readFileSync(join(root, stem)).equals(query)).toBe(true);
    const again = await timestamp.run([manifest], { response: 'plan.tsr' }, context);
    expect(again.json).toMatchObject({ existed: true, token });
    // A bare token of the other query.
    writeFileSync(
      join(root, 'second.tsr'),
      authority.token(authority.answer(readFileSync(join(root, 'second.tsq')))),
    );
    await timestamp.run([manifest], { response: 'second.tsr' }, context);
    expect(attested(root).filter((name) => name.endsWith('.tsr')).length).toBe(2);
  });

  it('takes no answer that no query asked for', async () => {
    const { root, manifest } = await place();
    const context = commandContext(root);
    const digest = digestOf(readFileSync(join(root, manifest)));
    writeFileSync(join(root, 'x.tsr'), authority.answer(await timestampQuery(digest)));
    const none = await rejectionOf(timestamp.run([], { response: 'x.tsr' }, context));
    expect(none).toMatchObject({ code: 'TIMESTAMP_INVALID' });
    expect(none.message).toContain('no query was written for this file');
    await timestamp.run([], { queryOut: 'plan.tsq' }, context);
    const nonce = await rejectionOf(timestamp.run([], { response: 'x.tsr' }, context));
    expect(nonce.message).toContain('its nonce is another');
    writeFileSync(join(root, 'y.tsr'), authority.answer(readFileSync(join(root, 'plan.tsq'))));
    const wrongFile = await rejectionOf(timestamp.run(['report.json'], { response: 'y.tsr' }, context));
    expect(wrongFile.code).toBe('TIMESTAMP_INVALID');
    expect(attested(root)).toEqual([expect.stringMatching(/\.tsq$/)]);
  });

  it('needs exactly one way, a new file for the query, and something that can be stamped', async () => {
    const { root } = await place();
    const context = commandContext(root);
    for (const options of [
      {},
      { tsa: 'http://x/', queryOut: 'q' },
      { queryOut: 'q', response: 'r' },
      { tsa: '' },
    ]) {
      expect((await rejectionOf(timestamp.run([], options, context))).code).toBe('USAGE');
    }
    writeFileSync(join(root, 'mine.txt'), 'mine');
    expect((await rejectionOf(timestamp.run([], { queryOut: 'mine.txt' }, context))).code).toBe(
      'FILE_EXISTS',
    );
    expect((await rejectionOf(timestamp.run(['mine.txt'], { queryOut: 'q' }, context))).code).toBe('USAGE');
    expect((await rejectionOf(timestamp.run([], { tsa: 'ftp://x/' }, context))).code).toBe('USAGE');
    expect(attested(root)).toEqual([]);
  });
});
