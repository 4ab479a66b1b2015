/** A member of an object; the same text inside a string has its quotes escaped. */
const MEMBER = /"system_fingerprint"\s*:\s*"((?:[^"\\]|\\.){1,200})"/g;

/**
 * What an answer, streamed or not, says of the system that gave it (`system_fingerprint`): the different ones, as they are
 * written there, in order.
 */
export function fingerprintsIn(body: Buffer): readonly string[] {
  if (!body.includes('"system_fingerprint"')) return [];
  const found = Array.from(body.toString('utf8').matchAll(MEMBER), ([, value = '']) => value);
  return [...new Set(found)];
}
