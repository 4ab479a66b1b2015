import { describe, expect, it } from 'vitest';
import { cosignCheckpoint, signCheckpoint, verifyCheckpoint } from '../../src/ledger/checkpoint.js';
import { evaluatePolicy, policyTrust, requireQuorum } from '../../src/ledger/quorum.js';
import { nameText, parsePolicy, type WitnessPolicy } from '../../src/ledger/witness-policy.js';
import { formatVerifierKey, generateKey, type SignerKey, signerKey } from '../../src/signing/keys.js';
import { errorOf } from '../signing/support.js';

const log = generateKey('ledger.example/obme');
const names = ['X1', 'X2', 'X3', 'Y1', 'Y2', 'Y3'] as const;
const witnesses = new Map(names.map((name) => [name, generateKey(`witness.example/${name}`, 'cosignature')]));
const keyOf = (name: (typeof names)[number]): SignerKey => {
  const key = witnesses.get(name);
  if (key === undefined) throw new Error(name);
  return key;
};
const vkey = (key: SignerKey): string => formatVerifierKey(key.verifier);
const define = (...wanted: (typeof names)[number][]): string =>
  wanted.map((name) => `witness ${name} ${vkey(keyOf(name))}\n`).join('');
const LOG = `log ${vkey(log)}\n`;
const parse = (text: string): WitnessPolicy => parsePolicy(Buffer.from(text));

/** The example policy of c2sp.org/tlog-policy. */
const EXAMPLE = `${LOG}
${define('X1', 'X2', 'X3')}group X-witnesses 2 X1 X2 X3

${define('Y1', 'Y2', 'Y3')}group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
`;

const note = signCheckpoint({ origin: 'ledger.example/obme', size: 1n, root: Buffer.alloc(32, 9) }, log);

function cosignedBy(...cosigners: (typeof names)[number][]): Buffer {
  return cosigners.reduce(
    (at, name, i) =>
      cosignCheckpoint(verifyCheckpoint(at, { logs: [log.verifier] }), keyOf(name), BigInt(1000 + i)),
    note,
  );
}

describe('evaluation', () => {
  it('of the published example, over all 64 sets of cosigners', () => {
    const policy = parse(EXAMPLE);
    for (let bits = 0; bits < 64; bits++) {
      const cosigners = names.filter((_, i) => bits & (1 << i));
      const x = cosigners.filter((name) => name.startsWith('X')).length;
      const wanted = x >= 2 && cosigners.length > x;
      const signed = verifyCheckpoint(cosignedBy(...cosigners), policyTrust(policy));
      const verdict = evaluatePolicy(policy, signed);
      expect(verdict.satisfied, cosigners.join()).toBe(wanted);
      expect(verdict.witnesses.filter((witness) => witness.cosigned).map((witness) => witness.name)).toEqual(
        cosigners,
      );
    }
  });

  it('says who is missing', () => {
    const error = errorOf(() => requireQuorum(parse(EXAMPLE), cosignedBy('X3', 'Y1')));
    expect(error.code).toBe('QUORUM_UNMET');
    expect(error.evidence).toEqual({
      origin: 'ledger.example/obme',
      size: '1',
      quorum: 'X-and-Y',
      cosigned: ['X3', 'Y1'],
      missing: ['X1', 'X2', 'Y2', 'Y3'],
      unsatisfied: [
        { name: 'X-witnesses', has: 1, needs: 2 },
        { name: 'X-and-Y', has: 1, needs: 2 },
      ],
    });
    expect(requireQuorum(parse(EXAMPLE), cosignedBy('X1', 'X3', 'Y1')).verdict.satisfied).toBe(true);
  });

  it('of a single witness, of none, and with the ledger known from elsewhere', () => {
    const single = parse(`${LOG}${define('X1')}quorum X1\n`);
    expect(requireQuorum(single, cosignedBy('X1')).cosignatures).toHaveLength(1);
    expect(errorOf(() => requireQuorum(single, note)).code).toBe('QUORUM_UNMET');
    expect(requireQuorum(parse(`${LOG}quorum none\n`), note).checkpoint.size).toBe(1n);
    const open = parse('quorum none\n');
    expect(errorOf(() => requireQuorum(open, note)).code).toBe('SIGNATURE_INVALID');
    expect(requireQuorum(open, note, [log.verifier]).checkpoint.size).toBe(1n);
  });

  it('a witness that nobody defined does not count, nor one that cosigned another text', () => {
    const policy = parse(`${LOG}${define('X1', 'X2')}group g any X1 X2\nquorum g\n`);
    expect(errorOf(() => requireQuorum(policy, cosignedBy('Y1', 'Y2'))).code).toBe('QUORUM_UNMET');
    const other = signCheckpoint({ origin: 'ledger.example/obme', size: 2n, root: Buffer.alloc(32, 9) }, log);
    const moved = cosignedBy('X1').toString().replace('\n1\n', '\n2\n').split('\n').at(-2);
    expect(errorOf(() => requireQuorum(policy, Buffer.from(`${other}${moved}\n`))).code).toBe(
      'SIGNATURE_INVALID',
    );
  });

  it('the same witness twice counts once', () => {
    const policy = parse(`${LOG}${define('X1', 'X2')}group g all X1 X2\nquorum g\n`);
    expect(errorOf(() => requireQuorum(policy, cosignedBy('X1', 'X1'))).code).toBe('QUORUM_UNMET');
  });
});

describe('syntax', () => {
  it('takes white space, comments, URLs and the recommended 32 of each kind', () => {
    const many = Array.from({ length: 32 }, (_, i) => generateKey(`w.example/${i}`, 'cosignature'));
    const logs = Array.from({ length: 32 }, (_, i) => generateKey(`log.example/${i}`));
    const text = [
      '# comment',
      '  \t',
      '\t # another',
      ...logs.map((key) => ` log\t${vkey(key)}   https://log.example/ `),
      ...many.map((key, i) => `witness w${i} ${vkey(key)} https://w.example/${i}`),
      ...many.map((_, i) => `group g${i} 1 w${i}${i > 0 ? ` g${i - 1}` : ''}`),
      'quorum g31',
      '',
    ].join('\n');
    const policy = parse(text);
    expect(policy.logs).toHaveLength(32);
    expect(policy.logs[0]?.url).toBe('https://log.example/');
    expect(policy.witnesses[31]?.url).toBe('https://w.example/31');
    expect(policy.groups[31]).toEqual({ name: 'g31', threshold: 1, members: ['w31', 'g30'] });
  });

  it('names are octets: a Kelvin sign is no K, and need not be UTF-8', () => {
    const kelvin = Buffer.concat([
      Buffer.from(LOG),
      Buffer.from(`witness K ${vkey(keyOf('X1'))}\nwitness \u212a ${vkey(keyOf('X2'))}\nwitness `),
      Buffer.of(0xe9),
      Buffer.from(` ${vkey(keyOf('X3'))}\nquorum \u212a\n`),
    ]);
    const policy = parsePolicy(kelvin);
    expect(policy.witnesses.map((witness) => witness.name)).toEqual(['K', '\u00e2\u0084\u00aa', '\u00e9']);
    expect(nameText(policy.quorum)).toBe('\u212a');
    expect(evaluatePolicy(policy, verifyCheckpoint(cosignedBy('X1'), policyTrust(policy))).satisfied).toBe(
      false,
    );
    expect(evaluatePolicy(policy, verifyCheckpoint(cosignedBy('X2'), policyTrust(policy))).satisfied).toBe(
      true,
    );
  });

  const plain = generateKey('p.example');
  const renamed = signerKey('other.example', 'cosignature', keyOf('X1').privateKey);
  it.each([
    ['no quorum', LOG, 2],
    ['nothing', '', 1],
    ['two quorums', 'quorum none\nquorum none\n', 2],
    ['an unknown quorum', 'quorum X1\n', 1],
    ['a quorum defined below', `quorum X1\n${define('X1')}`, 1],
    ['a quorum without a name', 'quorum\n', 1],
    ['a quorum of two', `${define('X1', 'X2')}quorum X1 X2\n`, 3],
    ['an unknown word', 'quorum none\npeer x\n', 2],
    ['a word in capitals', 'Quorum none\nquorum none\n', 1],
    ['no last line break', 'quorum none', 1],
    ['a carriage return', 'quorum none\r\nquorum none\n', 1],
    ['a form feed', 'quorum\fnone\nquorum none\n', 1],
    ['a delete character', 'quorum none\n# \x7f\n', 2],
    ['a log key for a witness', `witness p ${vkey(plain)}\nquorum none\n`, 1],
    ['a witness key for a log', `log ${vkey(keyOf('X1'))}\nquorum none\n`, 1],
    ['a broken key', `${LOG.replace('+', '-')}quorum none\n`, 1],
    ['a log twice', `${LOG}${LOG}quorum none\n`, 2],
    ['a witness name twice', `${define('X1')}witness X1 ${vkey(keyOf('X2'))}\nquorum none\n`, 2],
    ['a key under two names', `${define('X1')}witness X9 ${vkey(renamed)}\nquorum none\n`, 2],
    ['a witness called none', `witness none ${vkey(keyOf('X1'))}\nquorum none\n`, 1],
    ['a group called none', `${define('X1')}group none any X1\nquorum none\n`, 2],
    ['a group with the name of a witness', `${define('X1', 'X2')}group X1 any X2\nquorum none\n`, 3],
    ['a group without members', `${define('X1')}group g any\nquorum none\n`, 2],
    ['a group of the unknown', `${define('X1')}group g any X2\nquorum none\n`, 2],
    ['a group of itself', 'group g any g\nquorum none\n', 1],
    ['none as a member', 'group g any none\nquorum none\n', 1],
    ['a member twice', `${define('X1')}group g all X1 X1\nquorum none\n`, 2],
    ['a member of two groups', `${define('X1')}group g all X1\ngroup h all X1\nquorum none\n`, 3],
    ['a threshold of 0', `${define('X1')}group g 0 X1\nquorum none\n`, 2],
    ['a threshold above the members', `${define('X1')}group g 2 X1\nquorum none\n`, 2],
    ['a threshold with a leading zero', `${define('X1')}group g 01 X1\nquorum none\n`, 2],
    ['a threshold with a sign', `${define('X1')}group g +1 X1\nquorum none\n`, 2],
    ['a threshold in hexadecimal', `${define('X1')}group g 0x1 X1\nquorum none\n`, 2],
    ['a threshold in capitals', `${define('X1')}group g ALL X1\nquorum none\n`, 2],
    ['more than a URL', `${LOG.trimEnd()} https://a https://b\nquorum none\n`, 1],
  ])('refuses %s', (_, text, line) => {
    const error = errorOf(() => parse(text));
    expect(error.code).toBe('POLICY_INVALID');
    expect(error.faults.map((fault) => fault.line)).toEqual([line]);
  });

  it('tells all faults at once', () => {
    const error = errorOf(() =>
      parsePolicy(Buffer.from('peer\nlog x\ngroup g any\nquorum g\n'), 'who.policy'),
    );
    expect(error.faults.map((fault) => fault.where)).toEqual([
      'who.policy:1',
      'who.policy:2',
      'who.policy:3',
      'who.policy:4',
    ]);
  });

  it('bounds its input', () => {
    expect(errorOf(() => parsePolicy(Buffer.alloc(1_000_001, '\n'))).code).toBe('POLICY_INVALID');
  });
});
