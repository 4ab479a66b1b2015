/** A place in a JSON value: keys and indices from the root. */
export type Path = readonly (string | number)[];

const SPECIAL = /[~/]/;

/** The JSON pointer (RFC 6901) of a path. */
export function pointerOf(path: Path): string {
  let pointer = '';
  for (const part of path) {
    const text = String(part);
    pointer += `/${SPECIAL.test(text) ? text.replaceAll('~', '~0').replaceAll('/', '~1') : text}`;
  }
  return pointer;
}
