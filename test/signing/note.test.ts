import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { privateKeyOf } from '../../src/signing/ed25519.js';
import {
  formatSignerKey,
  formatVerifierKey,
  generateKey,
  keyId,
  parseSignerKey,
  parseVerifierKey,
  type SignerKey,
  signerKey,
  verifierKey,
} from '../../src/signing/keys.js';
import {
  addSignature,
  cosignText,
  formatNote,
  type NoteSignature,
  parseNote,
  signText,
  verifyNote,
} from '../../src/signing/note.js';
import { errorOf } from './support.js';

/** Verifier-key example of c2sp.org/signed-note. */
const SPEC_VKEY = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
const SPEC_NOTE =
  'This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n';

/** golang.org/x/mod/sumdb/note, note_test.go. */
const PETER_SKEY = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';
const PETER = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const ENOCH = 'EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop';
const TEXT =
  "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETER_LINE =
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';
const ENOCH_LINE =
  '— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n';

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');
const peter = parseVerifierKey(PETER);
const enoch = parseVerifierKey(ENOCH);

describe('published notes', () => {
  it('the example of the specification verifies', () => {
    const key = parseVerifierKey(SPEC_VKEY);
    expect(key).toMatchObject({ name: 'example.com/foo', type: 'ed25519', id: 0x530d903a });
    const note = verifyNote(bytes(SPEC_NOTE), [key]);
    expect(note.text).toBe('This is an example message.\n');
    expect(note.verified).toEqual([{ key, time: null }]);
  });

  it("Go's example is reproduced byte for byte", () => {
    const signature = signText(TEXT, parseSignerKey(PETER_SKEY));
    expect(formatNote({ text: TEXT, signatures: [signature] }).toString()).toBe(`${TEXT}\n${PETER_LINE}`);
  });

  it('two signatures: both known, one known, none known', () => {
    const note = bytes(`${TEXT}\n${PETER_LINE}${ENOCH_LINE}`);
    expect(verifyNote(note, [peter, enoch]).verified.map((entry) => entry.key)).toEqual([peter, enoch]);
    const one = verifyNote(note, [peter]);
    expect(one.verified.map((entry) => entry.key.name)).toEqual(['PeterNeumann']);
    expect(one.unknown.map((entry) => entry.name)).toEqual(['EnochRoot']);
    const error = errorOf(() => verifyNote(note, []));
    expect(error.code).toBe('SIGNATURE_INVALID');
    expect(error.evidence).toEqual({ signed_by: ['PeterNeumann+c74f20a3', 'EnochRoot+af0cfe78'], known: [] });
  });

  it('a checkpoint of the litewitness conversation verifies (torchwood)', () => {
    const name = 'sigsum.org/v1/tree/985ea163f5af026723561354f51f2ebcdcf2af809ce254ccfb64aa9aadd80f90';
    const publicKey = Buffer.from('52c05edad1bf5feffa81354faae59a655d9a9a1a793ed2f62c39c26c0be2aecd', 'hex');
    const note = `${name}\n1\nKgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— ${name} 7BKT0gOfNZ1J0So9unY3BZtm2YkPIoNYM/dce0Z2avJDs8dxN6ts9bOSwwrVrbjm6P9K3ZxpK6jJngOG6YvGGzV/lwo=\n`;
    const key = verifierKey(name, 'ed25519', publicKey);
    expect(verifyNote(bytes(note), [key]).verified).toEqual([{ key, time: null }]);
  });

  it('the cosigned example of tlog-cosignature parses, with its time', () => {
    const note = parseNote(
      bytes(
        'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n' +
          '— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n' +
          '— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n',
      ),
    );
    // The time of that page's example message.
    expect(note.signatures[1]?.bytes.readBigUInt64BE(0)).toBe(1679315147n);
  });
});

describe('malformed notes', () => {
  const good = `${TEXT}\n${PETER_LINE}`;
  const blank = PETER_LINE.slice(0, -1);
  // The first seven are Go's own bad messages.
  it.each([
    ['only a text', TEXT],
    ['no signature', `${TEXT}\n`],
    ['an unended line', `${TEXT}\n${blank}`],
    ['a control character', `\u0001${good}`],
    ['a name with a space', `${TEXT}\n${PETER_LINE.replace('PeterNeumann', 'Bad Name')}`],
    ['another line behind', `${good}Unexpected line.\n`],
    ['a tab', good.replace('If ', 'If\t')],
    ['carriage returns', good.replaceAll('\n', '\r\n')],
    ['a null', good.replace('If', 'I\0f')],
    ['a hyphen for the dash', good.replace('—', '-')],
    ['an en dash for the dash', good.replace('—', '–')],
    ['no space after the dash', good.replace('— ', '—')],
    ['a no-break space after the dash', good.replace('— ', '—\u00a0')],
    ['two spaces', good.replace('Neumann ', 'Neumann  ')],
    ['a space at the end', `${TEXT}\n${blank} \n`],
    ['an empty name', good.replace('PeterNeumann', '')],
    ['a plus in the name', good.replace('PeterNeumann', 'Peter+Neumann')],
    ['a no-break space in the name', good.replace('PeterNeumann', 'Peter\u00a0Neumann')],
    ['an ideographic space in the name', good.replace('PeterNeumann', 'Peter\u3000Neumann')],
    ['a next-line character in the name', good.replace('PeterNeumann', 'Peter\u0085Neumann')],
    ['no padding', good.replace('nAM=\n', 'nAM\n')],
    ['surplus padding', good.replace('nAM=\n', 'nAM==\n')],
    ['trailing bits that are not zero', good.replace('nAM=\n', 'nAN=\n')],
    ['URL-safe base64', good.replace('x08go/ZJ', 'x08go_ZJ')],
    ['junk in the base64', good.replace('x08go', 'x08*go')],
    ['a line break in the base64', good.replace('x08go', 'x08\ngo')],
    ['a key id and nothing else', `${TEXT}\n— PeterNeumann x08gow==\n`],
    ['three bytes', `${TEXT}\n— PeterNeumann x08g\n`],
    ['no blank line', `${TEXT}${PETER_LINE}`],
    ['a blank line between signatures', `${good}\n${ENOCH_LINE}\n`],
    ['a blank line at the end', `${good}\n`],
    ['no text at all', `\n${PETER_LINE}`],
    ['nothing', ''],
    ['101 signatures', good + PETER_LINE.repeat(100)],
    ['a million bytes', `${'x'.repeat(1_000_000)}${good}`],
  ])('%s', (_, text) => {
    expect(errorOf(() => verifyNote(bytes(text), [peter])).code).toBe('NOTE_INVALID');
    expect(errorOf(() => parseNote(bytes(text))).code).toBe('NOTE_INVALID');
  });

  it('bytes that are not UTF-8', () => {
    for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      const note = Buffer.concat([Buffer.from(bad), bytes(good)]);
      expect(errorOf(() => parseNote(note)).code).toBe('NOTE_INVALID');
    }
  });

  it('random bytes never throw anything untyped', () => {
    const pieces = fc.array(
      fc.oneof(fc.constantFrom('\n', '\n\n', '— ', 'a', ' ', '=', 'AAAA', PETER_LINE, TEXT), fc.string()),
    );
    fc.assert(
      fc.property(pieces, (parts) => {
        const note = bytes(parts.join(''));
        try {
          expect(formatNote(parseNote(note))).toEqual(note);
        } catch (error) {
          expect(error).toMatchObject({ name: 'BoundbookError', code: 'NOTE_INVALID' });
        }
      }),
      { seed: 7, numRuns: 2000 },
    );
  });
});

describe('signatures', () => {
  const note = `${TEXT}\n${PETER_LINE}`;

  it('a known key with a bad signature refuses the note, whatever else signed it', () => {
    // Go: four characters inserted into the signature.
    const longer = `${PETER_LINE.slice(0, 60)}ABCD${PETER_LINE.slice(60)}`;
    const other = `${TEXT}\n${PETER_LINE}${ENOCH_LINE.replace('OHp+', 'OHq+')}`;
    for (const bad of [`${TEXT}\n${longer}`, `x${note}`, note.replace('answer', 'Answer'), other]) {
      expect(errorOf(() => verifyNote(bytes(bad), [peter, enoch])).code).toBe('SIGNATURE_INVALID');
    }
    // The same bad line of a key nobody knows counts for nothing.
    expect(verifyNote(bytes(other), [peter]).verified).toHaveLength(1);
  });

  it('every flipped bit of the text or the signature is found', () => {
    const source = bytes(note);
    for (let i = 0; i < source.length * 8; i++) {
      const copy = Buffer.from(source);
      copy[i >> 3] = (copy[i >> 3] ?? 0) ^ (1 << (i & 7));
      expect(errorOf(() => verifyNote(copy, [peter])).code).toMatch(/^(NOTE|SIGNATURE)_INVALID$/);
    }
  });

  it('a known name with another id, or a known id with another name, is unknown', () => {
    const renamed = note.replace('PeterNeumann', 'CarmenSandiego');
    const otherId = note.replace(' x08g', ' xxxx');
    for (const text of [renamed, otherId]) {
      const error = errorOf(() => verifyNote(bytes(text), [peter]));
      expect(error.message).toBe('no known key signed the note');
    }
  });

  it('duplicates count once; every copy is verified', () => {
    const twice = verifyNote(bytes(`${note}${PETER_LINE}`), [peter]);
    expect(twice.verified).toHaveLength(1);
    expect(twice.signatures).toHaveLength(2);
    const second = PETER_LINE.replace('BwJnAM', 'BwJnAA');
    expect(errorOf(() => verifyNote(bytes(note + second), [peter])).code).toBe('SIGNATURE_INVALID');
  });

  it('takes 16 and up to 100 signatures, and text with empty lines', () => {
    const text = '\n\nOgnuno sta solo\n\ned è subito sera.\n\n';
    const keys = Array.from({ length: 100 }, (_, i) => generateKey(`key.example/${i}`));
    const full = formatNote({ text, signatures: keys.map((key) => signText(text, key)) });
    const verified = verifyNote(
      full,
      keys.map((key) => key.verifier),
    );
    expect(verified.verified).toHaveLength(100);
    expect(verified.text).toBe(text);
  });

  it('two known keys with one name and id are ambiguous', () => {
    const forged = { ...peter, publicKey: enoch.publicKey };
    expect(errorOf(() => verifyNote(bytes(note), [peter, forged])).code).toBe('KEY_INVALID');
    expect(verifyNote(bytes(note), [peter, peter]).verified).toHaveLength(1);
  });
});

describe('cosignatures', () => {
  const log = generateKey('log.example/1');
  const seed = Buffer.alloc(32, 7);
  const witness: SignerKey = signerKey('witness.example/w1', 'cosignature', privateKeyOf(seed));
  const text = 'log.example/1\n5\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n';
  const signed = formatNote({ text, signatures: [signText(text, log)] });

  it('bind the time and the text', () => {
    const cosigned = addSignature(signed, cosignText(text, witness, 1679315147n));
    expect(verifyNote(cosigned, [witness.verifier, log.verifier]).verified).toEqual([
      { key: log.verifier, time: null },
      { key: witness.verifier, time: 1679315147n },
    ]);
    const [, signature] = parseNote(cosigned).signatures;
    for (let i = 0; i < 72; i++) {
      const changed = Buffer.from(signature?.bytes ?? Buffer.alloc(0));
      changed[i] = (changed[i] ?? 0) ^ 1;
      const bad = addSignature(signed, { ...(signature as NoteSignature), bytes: changed });
      expect(errorOf(() => verifyNote(bad, [witness.verifier])).code).toBe('SIGNATURE_INVALID');
    }
  });

  it('a plain signature under the cosigner type, and the other way round, is refused', () => {
    const plain = signText(text, signerKey('witness.example/w1', 'ed25519', privateKeyOf(seed)));
    const posing = addSignature(signed, { ...plain, keyId: witness.verifier.id });
    expect(errorOf(() => verifyNote(posing, [witness.verifier])).code).toBe('SIGNATURE_INVALID');
    const logAsCosigner = addSignature(signed, {
      ...cosignText(text, witness, 1n),
      keyId: log.verifier.id,
      name: log.verifier.name,
    });
    expect(errorOf(() => verifyNote(logAsCosigner, [log.verifier])).code).toBe('SIGNATURE_INVALID');
  });

  it('the earliest of several times counts', () => {
    const note = [30n, 10n, 20n].reduce(
      (at, time) => addSignature(at, cosignText(text, witness, time)),
      signed,
    );
    expect(verifyNote(note, [witness.verifier]).verified).toEqual([{ key: witness.verifier, time: 10n }]);
  });

  it('refuse keys of the other kind and impossible times', () => {
    expect(errorOf(() => signText(text, witness)).code).toBe('KEY_INVALID');
    expect(errorOf(() => cosignText(text, log, 1n)).code).toBe('KEY_INVALID');
    expect(errorOf(() => cosignText(text, witness, -1n)).code).toBe('NOTE_INVALID');
    expect(errorOf(() => cosignText(text, witness, 1n << 63n)).code).toBe('NOTE_INVALID');
    expect(cosignText(text, witness, (1n << 63n) - 1n).bytes).toHaveLength(72);
  });

  it('refuse a text that is no note text', () => {
    for (const bad of ['', 'no end', 'a\tb\n', 'a\ud800\n']) {
      expect(errorOf(() => signText(bad, log)).code).toBe('NOTE_INVALID');
      expect(errorOf(() => formatNote({ text: bad, signatures: [] })).code).toBe('NOTE_INVALID');
    }
    expect(errorOf(() => formatNote({ text, signatures: [] })).code).toBe('NOTE_INVALID');
  });
});

describe('key texts', () => {
  it('one key has different ids as signer and as cosigner', () => {
    const publicKey = peter.publicKey;
    expect(keyId('PeterNeumann', 'ed25519', publicKey)).toBe(0xc74f20a3);
    expect(keyId('PeterNeumann', 'cosignature', publicKey)).not.toBe(0xc74f20a3);
  });

  it('round-trip for both kinds', () => {
    for (const type of ['ed25519', 'cosignature'] as const) {
      const key = generateKey('ünïcode.example/log', type);
      const again = parseSignerKey(formatSignerKey(key));
      expect(again.verifier).toEqual(key.verifier);
      expect(parseVerifierKey(formatVerifierKey(key.verifier))).toEqual(key.verifier);
    }
  });

  /** Every proper substring and every character raised by one, as Go's tests do it. */
  function manglings(text: string): string[] {
    const found: string[] = [];
    for (let i = 0; i < text.length; i++) {
      for (let j = i + 1; j <= text.length; j++)
        if (i !== 0 || j !== text.length) found.push(text.slice(i, j));
      found.push(text.slice(0, i) + String.fromCharCode(text.charCodeAt(i) + 1) + text.slice(i + 1));
    }
    return found;
  }

  it.each([
    ['vkey', PETER, parseVerifierKey],
    ['skey', PETER_SKEY, parseSignerKey],
  ] as const)('no mangled %s is taken', (_, text, parse) => {
    for (const bad of manglings(text)) expect(errorOf(() => parse(bad)).code).toBe('KEY_INVALID');
  });

  it.each([
    // Go: wrong length and unknown algorithm, with the id made to fit.
    'PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==',
    'PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
    SPEC_VKEY.replace('530d903a', '530D903A'),
    SPEC_VKEY.replace('530d903a', '530d903b'),
    SPEC_VKEY.replace('foo', 'bar'),
    `${SPEC_VKEY}+x`,
    `${SPEC_VKEY}\n`,
    ` ${SPEC_VKEY}`,
    SPEC_VKEY.replace('example.com/foo', 'exa mple'),
    `${'x'.repeat(2000)}${SPEC_VKEY}`,
    '',
  ])('refuses %j', (text) => {
    expect(errorOf(() => parseVerifierKey(text)).code).toBe('KEY_INVALID');
  });

  it('never repeats a secret in an error', () => {
    const error = errorOf(() => parseSignerKey(`${PETER_SKEY}x`));
    expect(JSON.stringify(error.toJson())).not.toContain('AYEKFALV');
    expect(errorOf(() => generateKey('two words')).code).toBe('KEY_INVALID');
  });
});
