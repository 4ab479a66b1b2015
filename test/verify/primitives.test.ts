import { generateKeyPairSync, sign } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bytes, call, hasPython, NO_PYTHON, python, VERIFIER, value } from './python.js';

const VECTORS = join(import.meta.dirname, '../../../shared/vectors');
const hex = (digits: string) => ({ hex: digits });

/** The names of those inputs that a function does not refuse. */
function accepted(
  name: string,
  inputs: readonly (readonly [name: string, args: readonly unknown[]])[],
): string[] {
  const answers = call(inputs.map(([, args]) => [name, args] as const));
  return inputs.filter((_, i) => answers[i]?.refused === undefined).map(([input]) => input);
}

describe.skipIf(!hasPython)(`second verifier: primitives (${NO_PYTHON})`, () => {
  it('is Python 3.9', () => {
    const source = JSON.stringify(VERIFIER);
    const run = python(['-c', `import ast; ast.parse(open(${source}).read(), feature_version=(3, 9))`]);
    expect(run).toMatchObject({ status: 0, stderr: '' });
  });

  describe('Ed25519', () => {
    // RFC 8032, section 7.1: TEST 1, 2, 3 and SHA(abc)
    const RFC8032: readonly (readonly [key: string, message: string, signature: string])[] = [
      [
        'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
        '',
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
      ],
      [
        '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
        '72',
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
      ],
      [
        'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
        'af82',
        '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
      ],
      [
        'ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf',
        'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
        'dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704',
      ],
    ];

    it('verifies the vectors, and none of their single-bit changes', () => {
      const calls = RFC8032.flatMap(([key, message, signature]) => {
        const changed = [0, 100, 255, 256, 300, 511].map((bit) => {
          const data = Buffer.from(signature, 'hex');
          data[bit >> 3] = (data[bit >> 3] ?? 0) ^ (1 << (bit & 7));
          return bytes(data);
        });
        return [hex(signature), ...changed].map(
          (s) => ['verify_ed25519', [hex(key), hex(message), s]] as const,
        );
      });
      const expected = RFC8032.flatMap(() => [true, false, false, false, false, false, false]);
      expect(call(calls).map((answer) => answer.value)).toEqual(expected);
    });

    it('verifies what another implementation signs', () => {
      const calls = Array.from({ length: 8 }, (_, i) => {
        const { publicKey, privateKey } = generateKeyPairSync('ed25519');
        const message = Buffer.from(`message ${i}`);
        const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
        return [
          'verify_ed25519',
          [bytes(raw), bytes(message), bytes(sign(null, message, privateKey))],
        ] as const;
      });
      expect(call(calls).map((answer) => answer.value)).toEqual(calls.map(() => true));
    });

    it('refuses a scalar beyond the group order and encodings beyond the field', () => {
      const [key, message, signature] = RFC8032[1] ?? ['', '', ''];
      const order = (1n << 252n) + 27742317777372353535851937790883648493n;
      const scalar = BigInt(`0x${Buffer.from(signature.slice(64), 'hex').reverse().toString('hex')}`) + order;
      const beyond = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex').reverse().toString('hex');
      // y = p + 1 is the neutral element in an encoding that is not canonical; with R neutral and S = 0 it would verify
      const neutral = `01${'00'.repeat(31)}`;
      const notCanonical = `ee${'ff'.repeat(30)}7f`;
      const answers = call([
        ['verify_ed25519', [hex(key), hex(message), hex(signature.slice(0, 64) + beyond)]],
        ['verify_ed25519', [hex(notCanonical), hex(message), hex(neutral + '00'.repeat(32))]],
        ['verify_ed25519', [hex(`01${'00'.repeat(30)}80`), hex(message), hex(neutral + '00'.repeat(32))]],
        ['verify_ed25519', [hex(key.slice(2)), hex(message), hex(signature)]],
        ['verify_ed25519', [hex(key), hex(message), hex(signature.slice(2))]],
      ]);
      expect(answers.map((answer) => answer.value)).toEqual([false, false, false, false, false]);
    });
  });

  describe('signed notes', () => {
    // c2sp.org/signed-note, section Format; the page does not give the key
    const QUASIMODO =
      'Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n\n' +
      '— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n';
    // golang.org/x/mod, sumdb/note/note_test.go
    const PETER = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
    const TEXT =
      "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
    const LINE =
      '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';

    it('reads the example of C2SP, whose text has an empty line', () => {
      expect(value('open_note', bytes(QUASIMODO), [PETER])).toEqual({
        text: 'Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n',
        names: ['quasimodo.example/salvatore'],
        verified: [],
      });
    });

    it('verifies the note of Go', () => {
      expect(value('open_note', bytes(`${TEXT}\n${LINE}`), [PETER])).toMatchObject({
        text: TEXT,
        verified: [true],
      });
      const altered = TEXT.replace('answer', 'Answer');
      expect(value('open_note', bytes(`${altered}\n${LINE}`), [PETER])).toMatchObject({ verified: [false] });
    });

    it('refuses malformed notes', () => {
      const bad = [
        ['no signature', `${TEXT}\n`],
        ['no empty line', `${TEXT}${LINE}`],
        ['no final line feed', `${TEXT}\n${LINE.slice(0, -1)}`],
        ['a carriage return', `${TEXT}\r\n\n${LINE}`],
        ['a hyphen', `${TEXT}\n${LINE.replace('—', '-')}`],
        ['a plus in the name', `${TEXT}\n${LINE.replace('PeterN', 'Peter+N')}`],
        ['a no-break space in the name', `${TEXT}\n${LINE.replace('PeterN', 'Peter\u00a0N')}`],
        ['base64 with other trailing bits', `${TEXT}\n${LINE.replace('nAM=', 'nAN=')}`],
        ['too short a signature', `${TEXT}\n— PeterNeumann x08gow==\n`],
      ] as const;
      expect(
        accepted(
          'open_note',
          bad.map(([name, note]) => [name, [bytes(note), []]] as const),
        ),
      ).toEqual([]);
    });

    it('reads keys strictly', () => {
      const bad = [
        PETER.replace('c74', 'c75'),
        PETER.replace('+AR', '+BR'),
        PETER.slice(0, -4),
        'PeterNeumann',
        '',
      ];
      expect(
        accepted(
          'open_note',
          bad.map((key) => [key, [bytes(QUASIMODO), [key]]] as const),
        ),
      ).toEqual([]);
    });

    it('reads checkpoints strictly', () => {
      const root = Buffer.alloc(32, 7).toString('base64');
      expect(value('read_checkpoint', `example.com/x\n42\n${root}\n`)).toEqual({
        origin: 'example.com/x',
        size: 42,
        root: '07'.repeat(32),
      });
      const bad = ['042', '0x2a', '-1', '', ' 42', '4２'].map((size) => `example.com/x\n${size}\n${root}\n`);
      bad.push(`example.com/x\n42\n${root}`, `example.com/x\n42\n${root}\nextension\n`, `\n42\n${root}\n`);
      bad.push(`example.com/x\n42\n${Buffer.alloc(31).toString('base64')}\n`);
      expect(
        accepted(
          'read_checkpoint',
          bad.map((text) => [text, [text]] as const),
        ),
      ).toEqual([]);
    });
  });

  describe('JSON', () => {
    it('prints the doubles of RFC 8785, appendix B', () => {
      const table = [
        ['0000000000000000', '0'],
        ['8000000000000000', '0'],
        ['0000000000000001', '5e-324'],
        ['8000000000000001', '-5e-324'],
        ['7fefffffffffffff', '1.7976931348623157e+308'],
        ['ffefffffffffffff', '-1.7976931348623157e+308'],
        ['4340000000000000', '9007199254740992'],
        ['c340000000000000', '-9007199254740992'],
        ['4430000000000000', '295147905179352830000'],
        ['44b52d02c7e14af5', '9.999999999999997e+22'],
        ['44b52d02c7e14af6', '1e+23'],
        ['44b52d02c7e14af7', '1.0000000000000001e+23'],
        ['444b1ae4d6e2ef4e', '999999999999999700000'],
        ['444b1ae4d6e2ef4f', '999999999999999900000'],
        ['444b1ae4d6e2ef50', '1e+21'],
        ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
        ['3eb0c6f7a0b5ed8d', '0.000001'],
        ['41b3de4355555553', '333333333.3333332'],
        ['41b3de4355555557', '333333333.33333343'],
        ['becbf647612f3696', '-0.0000033333333333333333'],
        ['43143ff3c1cb0959', '1424953923781206.2'],
      ] as const;
      const answers = call(table.map(([bits]) => ['canonical_double', [bits]] as const));
      expect(answers.map((answer) => answer.value)).toEqual(table.map(([, text]) => text));
    });

    it('prints random doubles as this engine does', () => {
      let state = 0x9e3779b97f4a7c15n;
      const doubles: { bits: string; text: string }[] = [];
      const buffer = Buffer.alloc(8);
      while (doubles.length < 5000) {
        state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
        buffer.writeBigUInt64BE(state ^ (state >> 31n));
        const double = buffer.readDoubleBE();
        if (Number.isFinite(double)) doubles.push({ bits: buffer.toString('hex'), text: String(double) });
      }
      const answers = call(doubles.map(({ bits }) => ['canonical_double', [bits]] as const));
      expect(answers.map((answer) => answer.value)).toEqual(doubles.map(({ text }) => text));
    });

    it('sorts keys by UTF-16 code units and escapes as ECMAScript does', () => {
      const text =
        '{"\\ue000":1,"😀":2,"10":3,"9":4,"":5,"é":"\\u0001\\n\\u007f\\u2028/\\u00e9\\ud83d\\ude00"}';
      const expected = '{"":5,"10":3,"9":4,"é":"\\u0001\\n\u007f\u2028/é😀","😀":2,"\ue000":1}';
      expect(value('recode', bytes(text))).toEqual(bytes(expected));
    });

    const folder = join(VECTORS, 'jcs');
    it.skipIf(!existsSync(join(folder, 'input')))('gives the RFC 8785 vectors', () => {
      const read = (kind: string) =>
        readdirSync(join(folder, 'input')).map((name) => bytes(readFileSync(join(folder, kind, name))));
      const answers = call(read('input').map((input) => ['recode', [input]] as const));
      expect(answers.map((answer) => answer.value)).toEqual(read('output'));
    });

    it('refuses what two readers could understand differently', () => {
      const bad = [
        ['a key twice', '{"a":1,"a":1}'],
        ['a key twice, escaped', '{"a":1,"\\u0061":2}'],
        ['the key __proto__', '{"__proto__":1}'],
        ['a byte-order mark', '\ufeff{}'],
        ['NaN', '[NaN]'],
        ['Infinity', '-Infinity'],
        ['an inexact integer', '9007199254740993'],
        ['a huge integer', '1'.repeat(10_000)],
        ['an overflow', '1e400'],
        ['a leading zero', '01'],
        ['other digits', '[1١]'],
        ['a trailing comma', '[1,]'],
        ['a comment', '1 // one'],
        ['a control character', '"\n"'],
        ['two documents', '{} {}'],
        ['nothing', ''],
        ['single quotes', "{'a':1}"],
        ['201 levels', '['.repeat(201) + ']'.repeat(201)],
        ['a million levels', '['.repeat(1_000_000)],
      ] as const;
      expect(
        accepted(
          'recode',
          bad.map(([name, text]) => [name, [bytes(text)]] as const),
        ),
      ).toEqual([]);
    });

    it('refuses bytes that are not UTF-8', () => {
      const bad = ['22c328', '22c0af22', '22eda08022', '22f4908080', 'ff'];
      expect(
        accepted(
          'recode',
          bad.map((digits) => [digits, [hex(digits)]] as const),
        ),
      ).toEqual([]);
    });

    it('accepts canonical bytes only where they are asked for', () => {
      const bad = [
        '{ }',
        '{"b":1,"a":2}',
        '1.0',
        '1E2',
        '-0',
        '"\\u0041"',
        '"\\ud800"',
        '1e-05',
        '1e+16',
        '"\\/"',
        '[1]\n',
      ];
      expect(
        accepted(
          'parse_canonical',
          bad.map((text) => [text, [bytes(text)]] as const),
        ),
      ).toEqual([]);
      expect(value('parse_canonical', bytes('{"a":[1,1.5,"\u00e9"],"b":null}'))).toEqual({
        a: [1, 1.5, 'é'],
        b: null,
      });
    });
  });

  describe('trees', () => {
    // transparency-dev/merkle, testonly/constants.go: the leaves of the RFC 6962 reference tree
    const LEAVES = [
      '',
      '00',
      '10',
      '2021',
      '3031',
      '40414243',
      '5051525354555657',
      '606162636465666768696a6b6c6d6e6f',
    ];
    const ROOTS = [
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
      '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
      'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
      '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
    ];

    it('has the roots of the RFC 6962 reference tree', () => {
      expect(value('roots_of', LEAVES.map(hex))).toEqual(ROOTS);
    });

    const folder = join(VECTORS, 'merkle', 'consistency');
    it.skipIf(!existsSync(folder))('has the roots of the public consistency vectors', () => {
      let proved = 0;
      for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
        if (!name.endsWith('happy-path.json')) continue;
        const vector = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Record<
          string,
          string & number
        >;
        for (const i of ['1', '2']) {
          const root = Buffer.from(String(vector[`root${i}`]), 'base64').toString('hex');
          if (ROOTS[Number(vector[`size${i}`])] === undefined) continue;
          expect(ROOTS[Number(vector[`size${i}`])], name).toBe(root);
          proved += 1;
        }
      }
      expect(proved).toBeGreaterThan(5);
    });
  });
});
