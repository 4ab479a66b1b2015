/**
 * Decodes standard base64 (RFC 4648, section 4). Undefined unless the text is exactly what the bytes encode to:
 * Node's own decoder skips junk and ignores trailing bits, so that many texts would carry one value.
 */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** Like {@link decodeBase64}, for standard or URL-safe base64 (RFC 4648, sections 4 and 5), the latter also unpadded. */
export function decodeAnyBase64(text: string): Buffer | undefined {
  const standard = decodeBase64(text);
  if (standard !== undefined) return standard;
  const bytes = Buffer.from(text, 'base64url');
  const unpadded = bytes.toString('base64url');
  const padded = unpadded.padEnd(4 * Math.ceil(unpadded.length / 4), '=');
  return text === unpadded || text === padded ? bytes : undefined;
}
