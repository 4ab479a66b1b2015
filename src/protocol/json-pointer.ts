/** A place in a JSON value: keys and indices from the root. */
export type Path = readonly (string | number)[];

/** The JSON pointer (RFC 6901) of a path. */
export function pointerOf(path: Path): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Whether a path has the form of a pattern, in which `*` stands for any one part. */
export function matchesPath(path: Path, pattern: Path): boolean {
  return path.length === pattern.length && pattern.every((part, i) => part === '*' || part === path[i]);
}
