import { expect, test } from 'vitest';
import { KEY_MARK, KeyMask } from '../../src/runner/adapters/key-mask.js';

const KEY = 'sk-+a/"\\&b=9';
const mask = new KeyMask(KEY);

const forms: Readonly<Record<string, (key: string) => string>> = {
  'as it is': (key) => key,
  'percent-encoded': encodeURIComponent,
  'percent-encoded in full, small digits': (key) =>
    Array.from(Buffer.from(key), (byte) => `%${byte.toString(16)}`).join(''),
  'percent-encoded twice': (key) => encodeURIComponent(encodeURIComponent(key)),
  JSON: (key) => JSON.stringify(key).slice(1, -1),
  'JSON in JSON': (key) => JSON.stringify(JSON.stringify(key)).slice(3, -3),
  'JSON with escaped slashes': (key) => JSON.stringify(key).slice(1, -1).replaceAll('/', '\\/'),
  'JSON of escapes alone': (key) =>
    Array.from(key, (one) => `\\u00${one.charCodeAt(0).toString(16).toUpperCase()}`).join(''),
  HTML: (key) => key.replaceAll('&', '&amp;').replaceAll('"', '&quot;'),
  'HTML by numbers': (key) => Array.from(key, (one) => `&#${one.charCodeAt(0)};`).join(''),
  hexadecimal: (key) => Buffer.from(key).toString('hex').toUpperCase(),
};

test.each(Object.keys(forms))('a key is found: %s', (name) => {
  const form = forms[name]?.(KEY) ?? '';
  expect(mask.text(`before ${form} after ${form}`)).toBe(`before ${KEY_MARK} after ${KEY_MARK}`);
  expect(mask.bytes(Buffer.from(`ä€ ${form} ä€`)).toString()).toBe(`ä€ ${KEY_MARK} ä€`);
});

test.each(['', 'u', 'me', 'you', 'Bearer ', 'name:'])('a key is found in base64 behind %j', (before) => {
  for (const coding of ['base64', 'base64url'] as const) {
    for (const after of ['', '!', '!!']) {
      const text = mask.text(Buffer.from(`${before}${KEY}${after}`).toString(coding));
      expect(text).toContain(KEY_MARK);
      // What is left of it is what stood around the key, and parts of its outermost characters.
      const rest = text.replace(KEY_MARK, '');
      expect(rest.length).toBeLessThanOrEqual(Math.ceil((before.length + after.length) * 4) / 3 + 6);
    }
  }
});

test('JSON stays JSON of the same form', () => {
  const value = { [`a${KEY}`]: [`\\${KEY}\n"`, KEY.repeat(2), `C:\\dir\\${KEY}`], n: 1 };
  const masked = JSON.parse(mask.bytes(Buffer.from(JSON.stringify(value))).toString()) as unknown;
  expect(masked).toEqual({
    [`a${KEY_MARK}`]: [`${KEY_MARK}\n"`, KEY_MARK + KEY_MARK, `C:\\dir${KEY_MARK}`],
    n: 1,
  });
});

test('what is not the key stays, byte by byte', () => {
  const other = [KEY.slice(0, -1), KEY.toUpperCase(), KEY.slice(1), 'sk-', '%73%6b', '⟦key⟧', 'ÿþ'].join(
    ' | ',
  );
  expect(mask.text(other)).toBe(other);
  const bytes = Buffer.from([0, 255, 254, 10, 115, 107]);
  expect(mask.bytes(bytes)).toBe(bytes);
});

test('in pieces of any size the bytes are the same, and no line is held back', () => {
  const line = `data: {"t":"${JSON.stringify(KEY).slice(1, -1)} ä€ ${encodeURIComponent(KEY)}"}\n\n`;
  const body = Buffer.from(line + 'x'.repeat(600) + line);
  const expected = `data: {"t":"${KEY_MARK} ä€ ${KEY_MARK}"}\n\n`;
  for (const size of [1, 2, 3, 7, 64, 1000, body.length]) {
    const pieces = mask.pieces();
    const out: Buffer[] = [];
    for (let at = 0; at < body.length; at += size) out.push(pieces.feed(body.subarray(at, at + size)));
    out.push(pieces.end());
    expect(Buffer.concat(out).toString()).toBe(expected + 'x'.repeat(600) + expected);
  }
  const pieces = mask.pieces();
  expect(pieces.feed(Buffer.from(line)).toString()).toBe(expected);
  expect(pieces.feed(Buffer.from('data: sk-')).toString()).toBe('data: ');
});
