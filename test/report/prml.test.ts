import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf, sha256Hex } from '../../src/core/digest.js';
import { type PrmlMapping, prmlBytes, prmlHash } from '../../src/report/prml/canonical.js';
import { checkClaim } from '../../src/report/prml/check.js';
import { formatClaim, hashClaim, type PrmlClaim, readClaim } from '../../src/report/prml/claim.js';
import { type ClaimSource, claimOf, observedOf, satisfies } from '../../src/report/prml/decision.js';
import { linkageFinal, linkageStart } from '../../src/report/prml/linkage.js';
import { readPrml } from '../../src/report/prml/read.js';
import { formatFloat, formatString } from '../../src/report/prml/scalar.js';
import { errorOf } from '../signing/support.js';

const IMAGENET = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const ZEROS = '0'.repeat(64);

/** TV-001 with changes. */
function vector(number: string, change: Partial<PrmlClaim> = {}): PrmlClaim {
  return {
    version: 'prml/0.1',
    claim_id: `01900000-0000-7000-8000-00000000000${number}`,
    created_at: '2026-05-01T12:00:00Z',
    metric: 'accuracy',
    comparator: '>=',
    threshold: 0.85,
    dataset: { id: 'imagenet-val-2012', hash: IMAGENET },
    seed: 42n,
    producer: { id: 'studio-11.co' },
    ...change,
  };
}

const TV_001 = `claim_id: 01900000-0000-7000-8000-000000000000
comparator: '>='
created_at: '2026-05-01T12:00:00Z'
dataset:
  hash: ${IMAGENET}
  id: imagenet-val-2012
metric: accuracy
producer:
  id: studio-11.co
seed: 42
threshold: 0.85
version: prml/0.1
`;
const TV_001_HASH = '1a3466cc08ee7fb60a726ea1c4db6ecf48a9f847b9b7523bfb54b2ffaefee546';

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');

describe('the 13 vectors of PRML v0.1 (falsify, spec/test-vectors/v0.1)', () => {
  const small = {
    dataset: { id: 'test-dataset', hash: ZEROS },
    threshold: 0.5,
    producer: { id: 'edge.example' },
  };
  const vectors: [string, PrmlClaim, string][] = [
    ['TV-001', vector('0'), TV_001_HASH],
    ['TV-002', Object.fromEntries(Object.entries(vector('0')).reverse()) as PrmlClaim, TV_001_HASH],
    [
      'TV-003',
      vector('0', { threshold: 0.86 }),
      'b96b5b8d613e29d8c28c1cf91c03821b02224c41188c6128743fa2d55639d4bb',
    ],
    [
      'TV-004',
      vector('1', {
        created_at: '2026-06-15T09:30:00Z',
        metric: 'f1',
        threshold: 0.78,
        dataset: {
          id: 'glue-mrpc',
          hash: '9b9a7c5e7d6c5f4e3d2c1b0a9f8e7d6c5b4a3928171615141312111009080706',
          uri: 'https://gluebenchmark.com/tasks/mrpc',
        },
        model: {
          id: 'bert-base-uncased',
          hash: '1f3c8a9d2b4e5c6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b7c8d9e0f',
        },
        seed: 1337n,
      }),
      '609308e259dc3e75909b6c81a6bf0230a34a0b9af6726e46675a66817a80d304',
    ],
    [
      'TV-005',
      vector('2', { producer: { id: 'üniversite.edu.tr' } }),
      '6cf48a868f8f2fec59647d4b8327a27aba7dc219c14ab799ad85398a5aa9e1b6',
    ],
    [
      'TV-006',
      vector('3', { ...small, seed: 18446744073709551615n }),
      '57c71c567e0c4d86c691e311634730cd1ff0c65308f3a917d62d89d36d31c81d',
    ],
    [
      'TV-007',
      vector('4', { ...small, seed: 0n }),
      '766d6ca6ee06b619bf4e49f586eff0e979adcd034abae31d2c52b93d00ef7b92',
    ],
    [
      'TV-008',
      vector('5', {
        comparator: '==',
        threshold: 1,
        metric: 'exact_match',
        dataset: { id: 'synth-100', hash: 'abcdef0123456789'.repeat(4) },
        seed: 7n,
      }),
      'fc2bf632dfb10bac8cf88b0c0756af2b53175c9b3078ae34aaf6ce63102c1b56',
    ],
    [
      'TV-009',
      vector('6', {
        created_at: '2026-05-15T14:00:00Z',
        threshold: 0.87,
        prior_hash: TV_001_HASH,
        notes: 'Threshold raised after dataset re-curation found 12 mislabeled examples.',
      }),
      '29c60f7ccfb1f12777127785be25e3b2ca121b9b85b020f7bbd8e89a65ff1a04',
    ],
    [
      'TV-010',
      vector('7', {
        created_at: '2026-07-01T08:00:00Z',
        metric: 'pass@1',
        threshold: 0.65,
        dataset: {
          id: 'humaneval',
          hash: 'fedcba9876543210'.repeat(4),
          uri: 'https://github.com/openai/human-eval',
        },
        model: { id: 'claude-opus-4-7', hash: '1234567890abcdef'.repeat(4) },
        seed: 314159n,
        producer: { id: 'anthropic.com' },
      }),
      '60f8eb35dd21c364811549b8a45ea50dc70a01ef7210cfcc43b6aa9915fc88c6',
    ],
    [
      'TV-011',
      vector('8', {
        created_at: '2026-08-12T10:00:00Z',
        metric: 'auroc',
        comparator: '>',
        threshold: 0.55,
        dataset: { id: 'chestx-ray-14', hash: '10'.repeat(32) },
        seed: 2718n,
        producer: { id: 'research-hospital.example' },
      }),
      '91104f15ee95b7a61869e30bd1539abfd718652288daa6bb7418337a8ffc32de',
    ],
    [
      'TV-012',
      vector('9', {
        created_at: '2026-09-01T15:00:00Z',
        metric: 'mae',
        comparator: '<=',
        threshold: 2.5,
        dataset: {
          id: 'boston-housing',
          hash: '9999888877776666555544443333222211110000aaaaffffeeeeddddccccbbbb',
        },
        seed: 1n,
      }),
      'ec1d18427451f0bd7886c6ac4027f07a779f899035c27ea52cb2765212866424',
    ],
    [
      'TV-013',
      vector('a', {
        created_at: '2026-06-01T12:00:00Z',
        metric: 'accuracy_pct',
        threshold: 90,
        dataset: { id: 'eval-2k', hash: 'abcd1234'.repeat(8) },
        producer: { id: 'falsify.dev' },
      }),
      'cb9683ce70f5d45d407b827d0b9223d342ebd3600c560ec6a9e76dd336bf007d',
    ],
  ];

  it.each(vectors)('%s', (_, claim, hash) => {
    expect(hashClaim(claim)).toBe(hash);
    const canonical = formatClaim(claim);
    expect(sha256Hex(canonical)).toBe(hash);
    expect(readClaim(canonical, 'claim.yaml')).toEqual({ claim, hash, canonical: true });
  });

  it('TV-001 has exactly these bytes; an integral threshold and other spellings give the same hash', () => {
    expect(formatClaim(vector('0')).toString()).toBe(TV_001);
    const pretty = `# a claim\nversion: "prml/0.1"\n\nclaim_id:   '01900000-0000-7000-8000-000000000000'  # id\ncreated_at: 2026-05-01T12:00:00Z\nmetric: "acc\\u0075racy"\ncomparator: ">="\nthreshold: 8.5e-1\ndataset:\n    id: imagenet-val-2012\n    "hash": "${IMAGENET}"\nseed: +42\nproducer: # who\n  id: studio-11.co\n`;
    expect(readClaim(bytes(pretty), 'x')).toEqual({
      claim: vector('0'),
      hash: TV_001_HASH,
      canonical: false,
    });
    expect(readClaim(bytes(TV_001.replace('0.85', '90')), 'x').claim.threshold).toBe(90);
  });

  it('the example of Appendix A', () => {
    const claim = vector('0', { producer: { id: 'falsify.dev' } });
    expect(hashClaim(claim)).toBe('47f9956b3b9c495b3bf03b67398f54d0aa2133a2faf9b0522a9efa90bb109466');
  });
});

describe('edge vectors (falsify, spec/test-vectors/edge)', () => {
  it.each([
    ['?x', 'fac9ecb864cd16e8238b8bd9a5f1e0103c9eded446ae557c5173d21410accb35'],
    [':x', '0a58e1e0ac0622e523a5f77f50147e37a9160450a0621249509e1859f8d5c4e5'],
    ['-x', '806e8c15c23a0143e8e55625aae7edf6643650a60f63a29ffa0b54d4b2aad472'],
    ['-', '3a089d06e2bb2710a496d553f74ee2beb4f5eae06bd59d52ef4ff7a8036ee84e'],
    ['y', '351f8f781c9499b93d04b0a8e5ac27140ced94cfd0d7cad2a4f02f4e8368ffe5'],
    ['n', '772ab36be7a1da4449b5968f6b5d950a2ba346274a37910dc3c73e15f3ecb46a'],
    ['Y', '23c74f38609d56bf93b8b23b8946723d3ef778af75f55cea0ae32966ae0130d8'],
    ['N', '49e27e0f35ba5514961e5dc163adf3982c944297a704e4aa1026543df3c72cb7'],
    ['yes', '3660e743ca12e3c48241082c2331fbc97ab8f77ebb6986287f76353b35dd5d09'],
    ['1e5', '3ec0cf0e6b54d1b5500b34480c01bc25f4d76d1830127e0beeecf3b4f7682bd2'],
    ['1E5', '4713a8f78804b60b9f9e59f52b65d9b5a0962481deeb4063bf1e0a0e9109c34b'],
    ['12e3', '817a3f677bf8dab5013b77b999281b65ff735963c432732da8b5cd6fddca7d4c'],
    ['0o17', 'da18346bcf8759a37be160ea53c0b8731f7642c30d1163ce60bce16f44deca2f'],
    ['0b101', '82ed2f0d06ac45dffb2ff0afe9f371d8578e5391ff8095190170c716c141e57f'],
    ['017', '7849abe86acfcfbe7643b0cf5225151a6ae25ed837e9665aa9d2bbcc3e476e18'],
    ['üniversite', 'f35634d24312615ed97e3f3132b57f1bbd6fd91da15a4a91103173d83a911692'],
    ["it's", '9dd47eb74cfca208eecb21a903c6d7c556b9e7554815b34ce33126a64e71e41d'],
    ["'x", '3e7f60dd17d9ac4124f487bf5a96757380b0572fa33cdbf35c952b18a2106490'],
    ['x=y', 'd82cb373d4d2d0995300b0d7fe2eef38bff7d23525aef1debeaffda438e5fd18'],
    ['a?', '53004d6d53004569d97c2edc924f59d5f445253045417c5ccf291e1583d8f288'],
    ['-a', '48aa908e429969a2004dc43731084b7ede41262031827cf4ae700f34db0a7e68'],
    ['%x', 'e667cd4a3800500fbf882c06b03b647c9b054e4c45859a899d0a01034d38c7a4'],
    ['@x', '2f68e0f039f51569091b158e72548c7a80ba27acf1386ffaf068f08d41d6e660'],
    ['`x', '4ca65aaf175d6e7623a18b0e9398e8e83431dde7d8f1c77e35d2660a701a4062'],
    ['a\u00a0b', '89bf9ae25041902b0bea714cef6bb479558dd4b6bfa459c21ba1888827703b08'],
    ['\u00a0a', '2f5fceaa81c12dfb412d4e1eb85a739fa1814d19b1ac9b2cdee3c4feb04b1886'],
    ['a  b', '889dfd8edd56ecc93bc2e20b0b6a09178d575a5d85865293d6d808effab05a25'],
    ['null', '352b9773e49e44b8fc9367cfcdf6770d3296ee0718e462b150f9f99b0e202cc7'],
    ['Null', 'aed0096ce26da24aef826ef424cc575c2532c8bda50da0806981fc98c6024a6e'],
  ])('notes %j', (notes, hash) => {
    const claim = vector('0', { notes });
    expect(hashClaim(claim)).toBe(hash);
    expect(readClaim(formatClaim(claim), 'x')).toEqual({ claim, hash, canonical: true });
  });

  it('plain and quoted strings, as the grammar lists them (C5)', () => {
    for (const plain of [
      '?x',
      ':x',
      '-x',
      'y',
      'n',
      '1e5',
      '0o17',
      '=x',
      'a:b',
      'a#b',
      '~x',
      '1.2.3',
      '08',
      'a b',
    ]) {
      expect(formatString(plain)).toBe(plain);
    }
    const quoted =
      '- ? << = 1:30 190:20:30 1_000 0b101 017 .5 5. 2026-05-01 yes null ~ +1 -0 0x1f 1.5e+3 .inf -.inf .nan ! & * a: #a [a {a \'a "a >a |a ,a';
    for (const text of [
      ...quoted.split(' '),
      '',
      ' a',
      'a ',
      'a: b',
      'a #b',
      '- a',
      '? a',
      ': a',
      '2026-05-01 12:00:00',
    ]) {
      expect(formatString(text)).toBe(`'${text.replaceAll("'", "''")}'`);
    }
  });

  it.each([
    [90, '90.0'],
    [0.85, '0.85'],
    [0.0001, '0.0001'],
    [0.00001, '1.0e-05'],
    [-0.00001, '-1.0e-05'],
    [1.5e-7, '1.5e-07'],
    [1e15, '1000000000000000.0'],
    [1e16, '1.0e+16'],
    [1.2345678901234567e19, '1.2345678901234567e+19'],
    [5e-324, '5.0e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
    [0, '0.0'],
    [-0, '-0.0'],
    [-2.5, '-2.5'],
    [123456.789, '123456.789'],
    [0.1 + 0.2, '0.30000000000000004'],
  ])('the float %d is %s (C4)', (value, text) => {
    expect(formatFloat(value)).toBe(text);
  });

  it('floats round-trip', () => {
    const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(finite, (value) => {
        const text = formatFloat(value);
        expect(Object.is(Number(text), value)).toBe(true);
        expect(text).toMatch(/^-?\d+\.\d+(e[-+]\d{2,})?$/);
      }),
      { seed: 5, numRuns: 5000 },
    );
  });

  it('keys are in order of code points, not of UTF-16 units', () => {
    const mapping = { '\u{1f600}': 1n, '\ue000': 2n, b: 3n, B: 4n, é: 5n, a: { z: null, y: true } };
    expect(prmlBytes(mapping).toString()).toBe(
      'B: 4\na:\n  y: true\n  z: null\nb: 3\né: 5\n\ue000: 2\n\u{1f600}: 1\n',
    );
  });
});

describe('documents that must be refused', () => {
  const withLine = (line: string): string => `${TV_001}${line}\n`;
  const instead = (from: string, to: string): string => TV_001.replace(from, to);
  it.each([
    // falsify, spec/test-vectors/reject, RJ-001 to RJ-020.
    ['RJ-001', instead('accuracy', 'accuracy\u0085')],
    ['RJ-002', instead('01900000', 'demo\u2028claim')],
    ['RJ-003', instead('studio-11.co', 'studio-11\u2029co')],
    ['RJ-004', instead('imagenet-val', 'imagenet\ufeffval')],
    ['RJ-005', instead('accuracy', 'accuracy\u007f')],
    ['RJ-006', instead('01900000', 'demo\0claim')],
    ['RJ-007', instead('studio', 'studio\u009f')],
    ['RJ-008', instead('seed: 42\n', '')],
    ['RJ-009', instead(IMAGENET, 'NOTAHASH')],
    ['RJ-010', instead("'>='", "'=>'")],
    ['RJ-011', instead('prml/0.1', 'prml/9.9')],
    ['RJ-012', instead('0.85', 'high')],
    ['RJ-013', withLine('meta\u2028note: x')],
    ['RJ-014', instead('  id: imagenet', '  sub\u2028key: x\n  id: imagenet')],
    ['RJ-015', instead('0.85', '.inf')],
    ['RJ-016', instead('0.85', '.nan')],
    ['RJ-017', withLine('metric: f1')],
    ['RJ-018', instead('studio-11.co', 'O\u0308ztu\u0308rk')],
    ['RJ-019', '{"metric":"accuracy","metric":"f1"}'],
    ['RJ-020', '{"producer":{"id":"O\u0308ztu\u0308rk"}}'],
    ['a nested key twice', instead('  id: imagenet', '  hash: x\n  id: imagenet')],
    ['a key twice in other spellings', withLine('"metric": f1')],
    ['an escaped control character', instead('metric: accuracy', 'metric: "a\\tb"')],
    ['an escaped surrogate', instead('metric: accuracy', 'metric: "\\ud800"')],
    ['an unknown escape', instead('metric: accuracy', 'metric: "\\x41"')],
    ['U+FFFE', instead('accuracy', 'accuracy\ufffe')],
    ['U+10FFFF', instead('accuracy', 'accuracy\u{10ffff}')],
    ['a tab for indentation', instead('  hash', '\thash')],
    ['carriage returns', TV_001.replaceAll('\n', '\r\n')],
    ['a byte-order mark', `\ufeff${TV_001}`],
    ['an unknown field', withLine('extra: 1')],
    ['an unknown dataset field', instead('  id: imagenet', '  name: x\n  id: imagenet')],
    ['a prototype key', withLine('metric_args:\n  __proto__: 1')],
    ['a constructor key', withLine('metric_args:\n  constructor: 1')],
    ['an anchor', instead('accuracy', '&a accuracy')],
    ['an alias', instead('metric: accuracy', 'metric: *a')],
    ['a tag', instead('metric: accuracy', 'metric: !!str accuracy')],
    ['a merge key', withLine('<<: x')],
    ['a flow mapping', withLine('metric_args: {a: 1}')],
    ['a flow sequence', withLine('metric_args: [1]')],
    ['a sequence', withLine('metric_args:\n  - 1')],
    ['a block scalar', withLine('notes: |\n  text')],
    ['a folded scalar', withLine('notes: >\n  text')],
    ['a text over two lines', withLine('notes: one\n  two')],
    ['an open quote', withLine("notes: 'one")],
    ['something behind a quote', withLine("notes: 'one' two")],
    ['a comment right behind a quote', withLine("notes: 'one'#two")],
    ['a colon in a plain text', withLine('notes: a: b')],
    ['a document marker', `---\n${TV_001}`],
    ['a second document', withLine('---')],
    ['a directive', `%YAML 1.2\n${TV_001}`],
    ['a text without an agreed form', withLine('notes: ---x')],
    ['a number for a text', withLine('notes: 123')],
    ['a boolean for a text', withLine('notes: true')],
    ['nothing for a text', withLine('notes:')],
    ['a number for a key', withLine('metric_args:\n  1: x')],
    ['a word for a key that some take for true', withLine('metric_args:\n  yes: x')],
    ['a text for the seed', instead('seed: 42', "seed: '42'")],
    ['a float for the seed', instead('seed: 42', 'seed: 42.0')],
    ['a seed with a leading zero', instead('seed: 42', 'seed: 042')],
    ['a seed of 2^64', instead('seed: 42', 'seed: 18446744073709551616')],
    ['a seed below -2^63', instead('seed: 42', 'seed: -9223372036854775809')],
    ['an ambiguous number in a free field', withLine('metric_args:\n  rate: 1e5')],
    ['a threshold beyond the doubles', instead('0.85', '1.0e+999')],
    ['a UUID of version 4', instead('-7000-', '-4000-')],
    ['a date that does not exist', instead('2026-05-01T', '2026-02-30T')],
    ['a date without a time', instead("'2026-05-01T12:00:00Z'", "'2026-05-01'")],
    ['an empty metric', instead('accuracy', "''")],
    ['a metric of 257 characters', instead('accuracy', 'a'.repeat(257))],
    ['notes of 4097 characters', withLine(`notes: ${'a'.repeat(4097)}`)],
    ['a scalar for a mapping', withLine('metric_args: x')],
    ['a mapping for a scalar', withLine('notes:\n  a: 1')],
    ['unlike indentation', instead('  id: imagenet', '   id: imagenet')],
    ['an indented start', ` ${TV_001}`],
    [
      '101 levels',
      withLine(
        `metric_args:\n${Array.from({ length: 101 }, (_, i) => `${' '.repeat(i + 1)}a:`).join('\n')} 1`,
      ),
    ],
    ['only comments', '# nothing\n'],
    ['nothing', ''],
    ['a hundred kilobytes', withLine(`# ${'x'.repeat(100_000)}`)],
  ])('%s', (_, text) => {
    expect(errorOf(() => readClaim(bytes(text), 'claim.yaml')).code).toBe('CLAIM_INVALID');
  });

  it('bytes that are not UTF-8', () => {
    expect(errorOf(() => readClaim(Buffer.from([0xff]), 'x')).code).toBe('CLAIM_INVALID');
  });

  it('all faults of content are told at once', () => {
    const error = errorOf(() =>
      readClaim(bytes('version: prml/0.2\nseed: x\nmetric_args:\n  rate: 1e5\n'), 'x'),
    );
    const places = error.faults.map((fault) => fault.where);
    for (const place of [
      '/metric_args/rate',
      '/version',
      '/seed',
      '/claim_id',
      '/threshold',
      '/dataset',
      '/producer',
    ]) {
      expect(places).toContain(place);
    }
  });

  it('the line of a fault of syntax is named', () => {
    const error = errorOf(() => readPrml(bytes('a: 1\nb:\n  c: [\n'), 'claim.yaml'));
    expect(error.message).toContain('claim.yaml:3');
  });

  it('mappings without a canonical form are not written', () => {
    for (const bad of [
      {},
      { a: {} },
      { a: Number.NaN },
      { a: '\ud800' },
      { ['k'.repeat(128)]: 1n },
      { a: 'e\u0301' },
      { a: '...' },
      JSON.parse('{"__proto__": 1}') as PrmlMapping,
    ]) {
      expect(errorOf(() => prmlBytes(bad)).code).toBe('CLAIM_INVALID');
    }
    expect(errorOf(() => formatClaim(vector('0', { threshold: Infinity }))).code).toBe('CLAIM_INVALID');
  });
});

describe('reading what was written', () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 20 });
  const text = fc.oneof(
    name,
    fc.constantFrom(
      '1e5',
      '017',
      'yes',
      '~',
      "it's",
      ': x',
      '- x',
      'a #b',
      '"',
      '\\',
      '0x1F',
      '1:30',
      '.5',
      '-.5',
    ),
    fc.string({ unit: fc.constantFrom(...'0123456789.:-+_eExXobTZ ~#\'"?&*!|>%@`[]{},=<'), maxLength: 8 }),
  );

  it('gives the same claim and hash for any text', () => {
    let kept = 0;
    fc.assert(
      fc.property(
        text,
        text,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        (notes, key, threshold) => {
          const claim = vector('0', {
            notes,
            threshold,
            metric_args: { [key]: notes, n: 5n, deep: { x: 1.5, y: null } },
          });
          let canonical: Buffer;
          try {
            canonical = formatClaim(claim);
          } catch (error) {
            expect(error).toMatchObject({ code: 'CLAIM_INVALID' });
            return;
          }
          try {
            expect(readClaim(canonical, 'x')).toEqual({ claim, hash: hashClaim(claim), canonical: true });
            kept++;
          } catch (error) {
            // A text that looks like a number in a free field, or a key that does, is refused rather than guessed.
            expect(error).toMatchObject({ code: 'CLAIM_INVALID' });
            expect(`${notes} ${key}`).toMatch(/[0-9]/);
          }
        },
      ),
      { seed: 11, numRuns: 3000 },
    );
    expect(kept).toBeGreaterThan(2000);
  });

  it('random documents never throw anything untyped', () => {
    const piece = fc.constantFrom(
      'a',
      ':',
      ' ',
      '\n',
      '  ',
      "'",
      '"',
      '\\',
      '#',
      '-',
      '1',
      'seed: 1\n',
      '&',
      '{',
      '\t',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        try {
          readPrml(bytes(pieces.join('')), 'x');
        } catch (error) {
          expect(error).toMatchObject({ name: 'BoundbookError', code: 'CLAIM_INVALID' });
        }
      }),
      { seed: 13, numRuns: 3000 },
    );
  });
});

const source: ClaimSource = {
  createdAt: '2026-09-27T08:00:00.123Z',
  producer: 'boundbook.dev',
  decision: 'o_beats_b',
  metric: 'o_minus_b',
  comparator: '>=',
  threshold: 0.02,
  estimand: 'mean difference of task scores, equal weight for each task',
  grader: 'exact_integer',
  plannedSlots: 4800,
  tasks: { name: 'holdout100', digest: digestOf('tasks') },
  model: null,
  amendment: null,
  seed: null,
  protocol: digestOf('protocol'),
  manifest: digestOf('manifest'),
};

describe('a decision as a claim', () => {
  it('has exactly these bytes, every time', () => {
    expect(formatClaim(claimOf(source)).toString()).toBe(`claim_id: ${claimOf(source).claim_id}
comparator: '>='
created_at: '2026-09-27T08:00:00Z'
dataset:
  hash: ${sha256Hex('tasks')}
  id: holdout100
metric: o_minus_b
metric_args:
  decision: o_beats_b
  estimand: mean difference of task scores, equal weight for each task
  judge: exact_integer
  manifest_sha256: ${sha256Hex('manifest')}
  planned_slots: 4800
  protocol_sha256: ${sha256Hex('protocol')}
  unresolved_rule: worst-case
producer:
  id: boundbook.dev
seed: null
threshold: 0.02
version: prml/0.1
`);
    expect(hashClaim(claimOf(source))).toBe(hashClaim(claimOf({ ...source })));
  });

  it('the id carries the time, and differs by manifest and decision', () => {
    const { claim_id } = claimOf(source);
    expect(Number.parseInt(claim_id.replace('-', '').slice(0, 12), 16)).toBe(Date.parse(source.createdAt));
    const others = [
      claimOf({ ...source, decision: 'other' }),
      claimOf({ ...source, manifest: digestOf('other') }),
    ];
    expect(new Set([claim_id, ...others.map((claim) => claim.claim_id)]).size).toBe(3);
    expect(errorOf(() => claimOf({ ...source, createdAt: 'yesterday' })).code).toBe('CLAIM_INVALID');
  });

  it('one model is bound by its weights', () => {
    const claim = claimOf({ ...source, model: { name: 'O@42', digest: digestOf('weights') }, seed: 7n });
    expect(claim).toMatchObject({ model: { id: 'O@42', hash: sha256Hex('weights') }, seed: 7n });
    expect(readClaim(formatClaim(claim), 'x').canonical).toBe(true);
  });
});

describe('the observed figure', () => {
  const bound = { lower: '1/100', upper: '3/100' };

  it('is the unfavourable end', () => {
    expect(observedOf('>=', 0.02, bound)).toBe(0.01);
    expect(observedOf('>', 0.02, bound)).toBe(0.01);
    expect(observedOf('<=', 0.02, bound)).toBe(0.03);
    expect(observedOf('<', 0.02, bound)).toBe(0.03);
  });

  it('of an equality needs one value', () => {
    expect(errorOf(() => observedOf('==', 0.02, bound)).code).toBe('CLAIM_UNSUPPORTED');
    expect(observedOf('==', 0.02, { lower: '1/50', upper: '1/50' })).toBe(0.02);
  });

  it('at the threshold, as decimals are meant', () => {
    const point = (exact: string): typeof bound => ({ lower: exact, upper: exact });
    const meets = (comparator: PrmlClaim['comparator'], exact: string): boolean =>
      satisfies(vector('0', { comparator, threshold: 0.1 }), observedOf(comparator, 0.1, point(exact)));
    expect(meets('>=', '1/10')).toBe(true);
    expect(meets('<=', '1/10')).toBe(true);
    expect(meets('>', '1/10')).toBe(false);
    expect(meets('<', '1/10')).toBe(false);
    // Nearer to 1/10 than any other double, and on the wrong side of it.
    expect(meets('>=', '999999999999999999999/10000000000000000000000')).toBe(false);
    expect(meets('<=', '1000000000000000000001/10000000000000000000000')).toBe(false);
  });

  it('never passes a claim that the exact value does not meet', () => {
    const comparators = fc.constantFrom('>=', '>', '<=', '<' as const);
    const near = fc.tuple(
      comparators,
      fc.integer({ min: -50, max: 50 }),
      fc.integer({ min: -3, max: 3 }),
      fc.integer({ min: 18, max: 40 }),
    );
    fc.assert(
      fc.property(near, ([comparator, hundredths, offset, digits]) => {
        const scale = 10n ** BigInt(digits);
        const n = BigInt(hundredths) * (scale / 100n) + BigInt(offset);
        const threshold = hundredths / 100;
        const exact = `${n}/${scale}`;
        const observed = observedOf(comparator as PrmlClaim['comparator'], threshold, {
          lower: exact,
          upper: exact,
        });
        const passes = satisfies(
          vector('0', { comparator: comparator as PrmlClaim['comparator'], threshold }),
          observed,
        );
        const truly = { '>=': offset >= 0, '>': offset > 0, '<=': offset <= 0, '<': offset < 0 }[comparator];
        if (!truly) expect(passes).toBe(false);
        if (truly && comparator.includes('=')) expect(passes).toBe(true);
        expect(Math.abs(observed - threshold)).toBeLessThanOrEqual(1e-15);
      }),
      { seed: 17, numRuns: 2000 },
    );
  });

  it('an equality holds within the tolerance, which a claim may set', () => {
    const equal = vector('0', { comparator: '==', threshold: 1 });
    expect(satisfies(equal, 1 + 1e-10)).toBe(true);
    expect(satisfies(equal, 1 + 1e-8)).toBe(false);
    expect(satisfies({ ...equal, metric_args: { tolerance: 0.1 } }, 1.05)).toBe(true);
    expect(satisfies({ ...equal, metric_args: { tolerance: 'wide' } }, 1)).toBe(false);
  });
});

describe('checking a claim file', () => {
  const file = formatClaim(claimOf(source));

  it('judges a claim about this plan by the bound', () => {
    const check = checkClaim(file, 'claim.yaml', source, { lower: '1/50', upper: '1/10' });
    expect(check).toMatchObject({
      hash: `sha256:${sha256Hex(file)}`,
      canonical: true,
      differences: [],
      notStated: [],
      verdict: { observed: 0.02, passes: true },
    });
    const worse = checkClaim(file, 'claim.yaml', source, { lower: '19/1000', upper: '1/10' });
    expect(worse.verdict).toEqual({ observed: 0.019, passes: false });
    expect(checkClaim(file, 'claim.yaml', source, null).verdict).toBeNull();
  });

  it('names every contradiction and gives no verdict then', () => {
    const other = formatClaim(
      claimOf({
        ...source,
        threshold: 0.01,
        plannedSlots: 10,
        tasks: { name: 'x', digest: digestOf('x') },
        seed: 1n,
      }),
    );
    const check = checkClaim(other, 'claim.yaml', source, { lower: '1/50', upper: '1/10' });
    expect(check.differences).toEqual([
      { field: '/threshold', claimed: 0.01, expected: 0.02 },
      { field: '/dataset/hash', claimed: sha256Hex('x'), expected: sha256Hex('tasks') },
      { field: '/seed', claimed: '1', expected: null },
      { field: '/metric_args/planned_slots', claimed: '10', expected: '4800' },
    ]);
    expect(check.verdict).toBeNull();
  });

  it('a foreign claim may say less, and what it leaves open is listed', () => {
    const { metric_args: _, ...bare } = claimOf(source);
    const check = checkClaim(formatClaim(bare), 'claim.yaml', source, { lower: '1/50', upper: '1/10' });
    expect(check.differences).toEqual([]);
    expect(check.notStated).toEqual([
      '/metric_args/decision',
      '/metric_args/manifest_sha256',
      '/metric_args/planned_slots',
      '/metric_args/protocol_sha256',
      '/metric_args/unresolved_rule',
    ]);
    const named = { ...bare, model: { id: 'O', hash: sha256Hex('weights') } };
    expect(checkClaim(formatClaim(named), 'x', source, null).differences.map(({ field }) => field)).toEqual([
      '/model/hash',
    ]);
  });
});

describe('linkage records (prml-linkage/0)', () => {
  it('the published start record has its bytes and hash', () => {
    const record = {
      linkage_version: 'prml-linkage/0',
      manifest_hash: '5ce3c9c3484d8db1ffbc67dc4f3958c9a88009a0ae92ce51e045ea6b70258bc3',
      receipt:
        'https://registry.falsify.dev/5ce3c9c3484d8db1ffbc67dc4f3958c9a88009a0ae92ce51e045ea6b70258bc3',
      run: {
        dataset_hash: 'b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871',
        environment: 'illustrative: darwin/python3.9/sklearn1.6.1/cpu',
        id: 'acc-demo-01-C1',
        model_version: 'sklearn-logistic-regression-l2-C1.0',
        started_at: '2026-09-23T11:51:18.178825Z',
      },
    };
    expect(prmlHash(record)).toBe('14bc38f2bd355d86457cbedba9b37a25f2da7eb57350a7e26a591ba55d09fd92');
  });

  const start = {
    claim: claimOf(source),
    receipt: null,
    run: { id: 'run-1', startedAt: '2026-09-28T00:00:00.178825Z', environment: 'linux', modelVersion: null },
  };
  const result = { observed: 1, digest: digestOf('report'), finishedAt: '2026-09-28T00:00:00.178826Z' };

  it('the final record is the start record, its hash, and the result', () => {
    const final = linkageFinal(start, result);
    const { start_hash, result: written, ...rest } = final;
    expect(rest).toEqual(linkageStart(start));
    expect(start_hash).toBe(prmlHash(linkageStart(start)));
    expect(written).toMatchObject({ observed: 1, exit_code: 0n });
    expect(prmlBytes(final).toString()).toContain('observed: 1.0\n');
    expect(linkageFinal(start, { ...result, observed: 0 }).result).toMatchObject({ exit_code: 10n });
  });

  it('times below a millisecond count, and equal ones are refused', () => {
    for (const finishedAt of [
      start.run.startedAt,
      '2026-09-28T00:00:00.178824Z',
      '2026-09-27T23:59:59Z',
      'soon',
    ]) {
      expect(errorOf(() => linkageFinal(start, { ...result, finishedAt })).code).toBe('CLAIM_INVALID');
    }
  });
});
