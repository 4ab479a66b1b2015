/** What a file name in a bound tree may be. A name is refused when another system would read it as another name. */

/**
 * The names that a tree may hold at its top without their being bound: version-control data, the list that OpenSSF
 * model signing leaves out. No loader reads them. Everything else counts, hidden files and caches too. The manifest
 * records the rule by name; a changed list is a new name.
 */
export const IGNORE_RULE = 'git-metadata/1';
const IGNORED_AT_TOP: ReadonlySet<string> = new Set(['.git', '.gitattributes', '.github', '.gitignore']);

export function isIgnored(parent: string, name: string): boolean {
  return parent === '' && IGNORED_AT_TOP.has(name);
}

/** A name as the file system holds it, or the reason why it can't be bound. */
export type NameVerdict =
  | { readonly ok: true; readonly name: string }
  | { readonly ok: false; readonly shown: string; readonly reason: string };

export function readName(raw: Uint8Array): NameVerdict {
  let name: string;
  try {
    name = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw);
  } catch {
    return { ok: false, shown: escapeBytes(raw), reason: 'the name is not UTF-8' };
  }
  if (/[\p{Cc}\p{Cf}\u2028\u2029]/u.test(name)) {
    return { ok: false, shown: escapeBytes(raw), reason: 'the name holds control or invisible characters' };
  }
  // sha256sum escapes such a line, and other systems take it for a folder.
  if (name.includes('\\')) return { ok: false, shown: name, reason: 'the name holds a backslash' };
  return { ok: true, name };
}

function escapeBytes(raw: Uint8Array): string {
  let shown = '';
  for (const byte of raw) {
    shown +=
      byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return shown;
}
