import { type BigIntStats, lstatSync } from 'node:fs';

/**
 * What tells cheaply that a file was touched. It never stands for a digest (F-49): equal stamps prove nothing, unequal
 * ones end the trust.
 */
export interface FileStamp {
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly ino: bigint;
}

export function stampOf(stat: BigIntStats): FileStamp {
  return { size: Number(stat.size), mtimeNs: stat.mtimeNs, ctimeNs: stat.ctimeNs, ino: stat.ino };
}

/** The stamp of a regular file under that very name, or null when there is none any more. */
export function currentStamp(absolute: string): FileStamp | null {
  const stat = lstatSync(absolute, { bigint: true, throwIfNoEntry: false });
  return stat?.isFile() === true ? stampOf(stat) : null;
}

/** Which parts of two stamps differ; empty when none do. */
export function stampDifference(before: FileStamp, after: FileStamp): readonly string[] {
  const names = { size: 'size', mtimeNs: 'modification time', ctimeNs: 'change time', ino: 'inode' } as const;
  return (Object.keys(names) as (keyof FileStamp)[])
    .filter((part) => before[part] !== after[part])
    .map((part) => names[part]);
}
