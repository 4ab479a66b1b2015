import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeAnyBase64, decodeBase64 } from '../../src/signing/base64.js';
import { privateKeyOf, publicKeyOf, seedOf, signEd25519, verifyEd25519 } from '../../src/signing/ed25519.js';
import { readSignerKey, writeSignerKey } from '../../src/signing/key-file.js';
import { formatSignerKey, generateKey, privatePem, publicPem } from '../../src/signing/keys.js';
import { rejectionOf } from './support.js';

describe('Ed25519 (RFC 8032, 7.1)', () => {
  const vectors = [
    {
      seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      public: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      message: '',
      signature:
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    },
    {
      seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      public: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      message: '72',
      signature:
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    },
    {
      seed: 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
      public: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      message: 'af82',
      signature:
        '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    },
  ].map((vector) => ({
    seed: Buffer.from(vector.seed, 'hex'),
    public: Buffer.from(vector.public, 'hex'),
    message: Buffer.from(vector.message, 'hex'),
    signature: Buffer.from(vector.signature, 'hex'),
  }));

  it.each(vectors)('vector $#', (vector) => {
    const key = privateKeyOf(vector.seed);
    expect(publicKeyOf(key)).toEqual(vector.public);
    expect(seedOf(key)).toEqual(vector.seed);
    expect(signEd25519(key, vector.message)).toEqual(vector.signature);
    expect(verifyEd25519(vector.public, vector.message, vector.signature)).toBe(true);
  });

  it('sizes that do not fit, and other keys, do not verify', () => {
    const [first, second] = vectors;
    if (first === undefined || second === undefined) throw new Error('no vectors');
    expect(verifyEd25519(second.public, first.message, first.signature)).toBe(false);
    expect(verifyEd25519(first.public, second.message, first.signature)).toBe(false);
    expect(verifyEd25519(first.public.subarray(1), first.message, first.signature)).toBe(false);
    expect(verifyEd25519(first.public, first.message, first.signature.subarray(1))).toBe(false);
    expect(verifyEd25519(Buffer.alloc(32, 0xff), first.message, first.signature)).toBe(false);
    // S + L instead of S: the same equation, another signature. RFC 8032 (5.1.7) refuses it.
    const order = (1n << 252n) + 27742317777372353535851937790883648493n;
    const s = BigInt(`0x${Buffer.from(first.signature.subarray(32)).reverse().toString('hex')}`) + order;
    const malleated = Buffer.concat([
      first.signature.subarray(0, 32),
      Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse(),
    ]);
    expect(verifyEd25519(first.public, first.message, malleated)).toBe(false);
  });
});

describe('base64', () => {
  it('takes only what encoding gives back', () => {
    expect(decodeBase64('aGk=')?.toString()).toBe('hi');
    expect(decodeBase64('')?.length).toBe(0);
    for (const bad of ['aGk', 'aGk==', 'aGl=', 'aG k=', 'aGk=\n', '_-8=', '=', 'a']) {
      expect(decodeBase64(bad), bad).toBeUndefined();
    }
  });

  it('takes the URL-safe alphabet too, padded or not, but no mixture', () => {
    const bytes = Buffer.from([0xfb, 0xff, 0xbf, 0xfe]);
    for (const text of ['+/+//g==', '-_-__g==', '-_-__g']) expect(decodeAnyBase64(text)).toEqual(bytes);
    for (const bad of ['+_-__g==', '-/-__g', '+/+//g', '-_-__g=', '-_-__h', '-_-__g===']) {
      expect(decodeAnyBase64(bad), bad).toBeUndefined();
    }
  });
});

describe('PEM for openssl', () => {
  it('openssl verifies what we sign, and we verify what openssl signs', () => {
    const folder = mkdtempSync(join(tmpdir(), 'boundbook-pem-'));
    try {
      const key = generateKey('ledger.example/1');
      const at = (name: string): string => join(folder, name);
      writeFileSync(at('public.pem'), publicPem(key.verifier));
      writeFileSync(at('private.pem'), privatePem(key), { mode: 0o600 });
      writeFileSync(at('text'), 'head\n');
      writeFileSync(at('ours'), signEd25519(key.privateKey, Buffer.from('head\n')));
      const verify = ['pkeyutl', '-verify', '-rawin', '-pubin', '-inkey', at('public.pem')];
      const said = execFileSync('openssl', [...verify, '-in', at('text'), '-sigfile', at('ours')]);
      expect(said.toString()).toContain('Signature Verified Successfully');
      const sign = ['pkeyutl', '-sign', '-rawin', '-inkey', at('private.pem'), '-in', at('text')];
      execFileSync('openssl', [...sign, '-out', at('theirs')]);
      expect(verifyEd25519(key.verifier.publicKey, Buffer.from('head\n'), readFileSync(at('theirs')))).toBe(
        true,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('key files', () => {
  const key = generateKey('ledger.example/1');
  let folder = '';
  let workspace = '';
  let keys = '';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'boundbook-keys-'));
    workspace = join(folder, 'workspace');
    keys = join(folder, 'keys');
    mkdirSync(workspace);
    mkdirSync(keys);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('are written with mode 0600 and read back', async () => {
    const path = join(keys, 'ledger.key');
    await writeSignerKey(path, key, workspace);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8')).toBe(`${formatSignerKey(key)}\n`);
    expect((await readSignerKey(path, workspace)).verifier).toEqual(key.verifier);
    expect((await rejectionOf(writeSignerKey(path, key, workspace))).code).toBe('FILE_EXISTS');
  });

  it('a folder that begins with the name of the workspace is not the workspace', async () => {
    mkdirSync(join(folder, 'workspace-keys'));
    await writeSignerKey(join(folder, 'workspace-keys', 'k'), key, workspace);
    expect(existsSync(join(folder, 'workspace-keys', 'k'))).toBe(true);
  });

  it.each([0o640, 0o604, 0o620, 0o602, 0o660, 0o644, 0o610, 0o601, 0o777])(
    'mode %o is refused',
    async (mode) => {
      const path = join(keys, 'ledger.key');
      await writeSignerKey(path, key, workspace);
      chmodSync(path, mode);
      expect((await rejectionOf(readSignerKey(path, workspace))).code).toBe('KEY_EXPOSED');
    },
  );

  it('a read-only mode is fine', async () => {
    const path = join(keys, 'ledger.key');
    await writeSignerKey(path, key, workspace);
    chmodSync(path, 0o400);
    expect((await readSignerKey(path, workspace)).verifier.name).toBe('ledger.example/1');
  });

  it('the workspace is refused, also behind a link, in both directions', async () => {
    mkdirSync(join(workspace, 'deep'));
    symlinkSync(join(workspace, 'deep'), join(keys, 'link'));
    for (const path of [join(workspace, 'k'), join(workspace, 'deep', 'k'), join(keys, 'link', 'k')]) {
      expect((await rejectionOf(writeSignerKey(path, key, workspace))).code).toBe('KEY_EXPOSED');
      expect(existsSync(path)).toBe(false);
    }
    writeFileSync(join(workspace, 'deep', 'k'), `${formatSignerKey(key)}\n`, { mode: 0o600 });
    symlinkSync(join(workspace, 'deep', 'k'), join(keys, 'k'));
    expect((await rejectionOf(readSignerKey(join(keys, 'k'), workspace))).code).toBe('KEY_EXPOSED');
    symlinkSync(workspace, join(folder, 'elsewhere'));
    const through = join(folder, 'elsewhere');
    expect((await rejectionOf(writeSignerKey(join(workspace, 'k'), key, through))).code).toBe('KEY_EXPOSED');
  });

  it('a git repository around the file is refused: working tree, worktree file, bare', async () => {
    const places = ['tree', 'worktree', 'bare'].map((name) => join(folder, name));
    for (const place of places) mkdirSync(join(place, 'a'), { recursive: true });
    mkdirSync(join(folder, 'tree', '.git'));
    writeFileSync(join(folder, 'worktree', '.git'), 'gitdir: elsewhere\n');
    for (const name of ['HEAD', 'objects', 'refs']) mkdirSync(join(folder, 'bare', name));
    for (const place of places) {
      const error = await rejectionOf(writeSignerKey(join(place, 'a', 'k'), key, workspace));
      expect(error.code).toBe('KEY_EXPOSED');
      expect(error.message).toContain(place);
    }
  });

  it('what is no key file is refused without showing it', async () => {
    const path = join(keys, 'k');
    for (const text of [
      '',
      'nonsense\n',
      formatSignerKey(key),
      `${formatSignerKey(key)}\n\n`,
      'x'.repeat(5000),
    ]) {
      writeFileSync(path, text, { mode: 0o600 });
      const error = await rejectionOf(readSignerKey(path, workspace));
      expect(error.code).toBe('KEY_INVALID');
      expect(JSON.stringify(error.toJson())).not.toContain('PRIVATE+KEY+ledger');
    }
    expect((await rejectionOf(readSignerKey(join(keys, 'none'), workspace))).code).toBe('FILE_NOT_FOUND');
    expect((await rejectionOf(readSignerKey(keys, workspace))).code).toBe('FILE_NOT_REGULAR');
    expect((await rejectionOf(writeSignerKey(join(folder, 'none', 'k'), key, workspace))).code).toBe(
      'FILE_NOT_FOUND',
    );
  });
});
