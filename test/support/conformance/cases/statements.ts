import { canonicalBytes } from '../../../../src/core/canonical-json.js';
import { digestOf, hexOf } from '../../../../src/core/digest.js';
import { readAttestable, statementAbout } from '../../../../src/report/attestable.js';
import { formatEnvelope, signEnvelope } from '../../../../src/signing/dsse.js';
import { keyIdText, type SignerKey } from '../../../../src/signing/keys.js';
import { PAYLOAD_TYPE, type Statement } from '../../../../src/signing/statement.js';
import type { LooseBundle } from '../../loose-bundle.js';
import type { Case } from '../case.js';
import { IMPOSTOR, LAB, STRANGER, vkey, WITNESSES } from '../keys.js';

/** Signatures over the manifest and the report (DSSE, in-toto), judged by keys that the reader has. */
export const STATEMENTS: readonly Case[] = [
  signed('manifest-signed', 'the manifest is signed by the key that the reader trusts', {}),
  signed('manifest-signed-no-key-given', 'the same without a key: not checked', { keys: [] }),
  signed(
    'manifest-signed-by-an-unknown-key',
    'signed by somebody whom the reader does not know: not checked',
    {
      keys: [vkey(STRANGER)],
    },
  ),
  signed(
    'manifest-signed-by-a-namesake',
    'another key of the same name: its id differs, so nothing is claimed',
    {
      signer: IMPOSTOR,
    },
  ),
  signed(
    'manifest-signature-claims-the-key_fail',
    'a stranger’s signature under the name and id of the trusted key',
    {
      signer: STRANGER,
      envelope: (value) => withKeyId(value, `${LAB.verifier.name}+${keyIdText(LAB.verifier.id)}`),
    },
  ),
  signed('manifest-signed-without-a-key-id', 'the key id is only a hint: every key is tried', {
    envelope: (value) => withKeyId(value, undefined),
  }),
  signed('manifest-payload-changed_fail', 'the payload was changed after signing', {
    envelope: (value) => ({ ...value, payload: changed(value.payload) }),
  }),
  signed('manifest-payload-changed-no-key-given', 'nobody can tell without the key', {
    keys: [],
    envelope: (value) => ({ ...value, payload: changed(value.payload) }),
  }),
  signed(
    'manifest-statement-differs_fail',
    'the trusted key signed that the manifest is of another revision',
    {
      statement: (value) => withPredicate(value, { revision: 2 }),
    },
  ),
  signed('manifest-statement-differs-by-a-stranger', 'what an unknown key says does not matter', {
    signer: STRANGER,
    statement: (value) => withPredicate(value, { revision: 2 }),
  }),
  signed('manifest-statement-of-another-kind_fail', 'the trusted key signed the manifest as a report', {
    statement: reportLike,
  }),
  signed('manifest-statement-with-a-surplus-member_fail', 'a predicate has its members and no others', {
    keys: [],
    statement: (value) => withPredicate(value, { more: 1 }),
  }),
  signed('manifest-statement-with-revision-zero_fail', 'a revision is at least 1', {
    keys: [],
    statement: (value) => withPredicate(value, { revision: 0 }),
  }),
  signed('manifest-statement-not-canonical_fail', 'a statement is canonical JSON', {
    keys: [],
    payload: (bytes) => Buffer.concat([bytes, Buffer.from('\n')]),
  }),
  signed('manifest-subject-renamed', 'the name of the subject is a label', {
    statement: (value) => ({ ...value, subject: [{ ...value.subject[0], name: 'plan' }] }),
  }),
  signed('manifest-subject-without-a-name_fail', 'a subject has a name that is not empty', {
    keys: [],
    statement: (value) => ({ ...value, subject: [{ ...value.subject[0], name: '' }] }),
  }),
  signed(
    'envelope-in-url-safe-base64',
    'DSSE readers take both kinds of base64, and ignore what they do not know',
    {
      envelope: (value) => ({
        ...value,
        payload: urlSafe(value.payload),
        signatures: value.signatures.map(({ keyid, sig }) => ({ keyid, sig: urlSafe(sig), cert: 'x' })),
        note: 'free',
      }),
    },
  ),
  signed('envelope-in-loose-base64_fail', 'base64 that its bytes do not encode to', {
    keys: [],
    envelope: (value) => ({ ...value, payload: `${value.payload}\n` }),
  }),
  signed('envelope-without-signatures_fail', 'an envelope has a signature', {
    keys: [],
    envelope: (value) => ({ ...value, signatures: [] }),
  }),
  signed('envelope-of-another-type_fail', 'the payload is an in-toto statement', {
    keys: [],
    envelope: (value) => ({ ...value, payloadType: 'text/plain' }),
  }),
  signed('envelope-with-a-key-twice_fail', 'an envelope is strict JSON', {
    keys: [],
    bytes: (bytes) => Buffer.from(bytes.toString('utf8').replace('{', '{"payloadType":"x",')),
  }),
  signed('envelope-named-for-another-file_fail', 'the name speaks of another subject', {
    keys: [],
    name: (name) => name.replace(/^[0-9a-f]{16}/, '0'.repeat(16)),
  }),
  signed('envelope-with-a-long-name', 'all digits of the subject, and another label', {
    name: (name, digest) => name.replace(/^[0-9a-f]{16}\.[0-9a-f]{8}/, `${hexOf(digest)}.my_copy-2`),
  }),
  signed(
    'cosigners-key-signs-no-statement',
    'a key of cosigners signs no statements, so its name claims nothing',
    {
      keys: WITNESSES.map(vkey),
      envelope: (value) =>
        withKeyId(
          value,
          vkey(WITNESSES[0] as SignerKey)
            .split('+')
            .slice(0, 2)
            .join('+'),
        ),
    },
  ),
  signed('report-signed', 'the report is signed by the key that the reader trusts', { about: 'report' }),
  signed('report-statement-of-another-ledger_fail', 'the trusted key signed a report of more entries', {
    about: 'report',
    statement: (value) => withPredicate(value, { unblinded: false }),
  }),
  signed('report-changed-after-signing', 'a signature over another report is about no file of the bundle', {
    about: 'report',
    after: (bundle) => {
      for (const path of [...bundle.files.keys()]) if (path.startsWith('report/')) bundle.files.delete(path);
    },
  }),
];

interface Json {
  payload: string;
  payloadType: string;
  signatures: { keyid: string; sig: string }[];
}

interface Signing {
  readonly about?: 'manifest' | 'report';
  readonly signer?: SignerKey;
  readonly keys?: readonly string[];
  readonly statement?: (value: Statement) => unknown;
  readonly payload?: (bytes: Buffer) => Buffer;
  readonly envelope?: (value: Json) => unknown;
  readonly bytes?: (bytes: Buffer) => Buffer;
  readonly name?: (name: string, digest: ReturnType<typeof digestOf>) => string;
  readonly after?: (bundle: LooseBundle) => void;
}

function signed(name: string, why: string, signing: Signing): Case {
  return {
    name,
    why,
    keys: signing.keys ?? [vkey(LAB)],
    edit: (bundle) => {
      attest(bundle, signing);
      signing.after?.(bundle);
    },
  };
}

/** Puts an envelope over the manifest or the report into the bundle. */
function attest(bundle: LooseBundle, signing: Signing): void {
  const { about = 'manifest', signer = LAB } = signing;
  const prefix = about === 'manifest' ? 'manifests/' : 'report/report.json';
  const [path = '', content = Buffer.of()] = [...bundle.files].find(([one]) => one.startsWith(prefix)) ?? [];
  const statement = statementAbout(readAttestable(content, path.split('/')[1] ?? ''));
  const canonical = canonicalBytes(signing.statement?.(statement) ?? statement);
  const payload = signing.payload?.(canonical) ?? canonical;
  const written = formatEnvelope(signEnvelope(PAYLOAD_TYPE, payload, [signer]));
  const envelope = signing.envelope?.(JSON.parse(written.toString('utf8')) as Json);
  const bytes = envelope === undefined ? written : Buffer.from(`${JSON.stringify(envelope)}\n`);
  const digest = digestOf(content);
  const name = `${hexOf(digest).slice(0, 16)}.${keyIdText(signer.verifier.id)}.dsse.json`;
  bundle.files.set(`attestations/${signing.name?.(name, digest) ?? name}`, signing.bytes?.(bytes) ?? bytes);
}

function withKeyId(value: Json, keyid: string | undefined): unknown {
  return { ...value, signatures: value.signatures.map(({ sig }) => ({ keyid, sig })) };
}

function withPredicate(value: Statement, change: object): unknown {
  return { ...value, predicate: { ...value.predicate, ...change } };
}

/** The same subject under the other predicate. */
function reportLike(value: Statement): unknown {
  return {
    ...value,
    predicateType: 'https://boundbook.dev/predicate/report/v1',
    predicate: {
      manifest: `sha256:${'1'.repeat(64)}`,
      ledger: { id: 'a'.repeat(32), size: 1, root: `sha256:${'2'.repeat(64)}` },
      slots: { planned: 1, settled: 1, unresolved: 0, pending: 0 },
      unblinded: true,
    },
  };
}

/** Another revision in what was signed. */
function changed(payload: string): string {
  const text = Buffer.from(payload, 'base64').toString('utf8').replace('"revision":1', '"revision":2');
  return Buffer.from(text).toString('base64');
}

function urlSafe(base64: string): string {
  return Buffer.from(base64, 'base64').toString('base64url');
}
