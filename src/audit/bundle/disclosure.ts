import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Digest, digestOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { readError, readFileBounded } from '../../core/files.js';
import type { Findings } from '../finding.js';
import { commitmentOf, type RecordHeader } from './pack-format.js';

/** Contents of redacted objects that somebody handed over, and salts that open commitments. */
export interface DisclosedContents {
  readonly files: readonly { readonly name: string; readonly bytes: Buffer }[];
  /** Salts by digest, see {@link parseSalts}. */
  readonly salts: ReadonlyMap<Digest, Buffer>;
}

/** What all disclosed contents may have together: they are held in memory. */
const MAX_DISCLOSED_BYTES = 1024 * 1024 * 1024;
const LINE = /^([0-9a-f]{64}) ([0-9a-f]{64})$/;

/** Reads a file of salts, lines `<digest> <salt>`. @throws {BoundbookError} USAGE for any other content. */
export function parseSalts(bytes: Buffer, name: string): ReadonlyMap<Digest, Buffer> {
  const salts = new Map<Digest, Buffer>();
  const lines = bytes.toString('latin1').split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const [i, line] of lines.entries()) {
    const [, hex, salt] = LINE.exec(line) ?? [];
    if (hex === undefined || salt === undefined) {
      throw new BoundbookError('USAGE', `line ${i + 1} of ${name} is no digest and salt`, {
        hint: 'Salts come from the file that `boundbook export --redact` writes beside the bundle, or from lines of it.',
      });
    }
    salts.set(`sha256:${hex}`, Buffer.from(salt, 'hex'));
  }
  return salts;
}

/** The contents of files, and of the files in folders. @throws {BoundbookError} FILE_NOT_FOUND, FILE_TOO_LARGE and the like. */
export async function readDisclosed(paths: readonly string[]): Promise<DisclosedContents['files']> {
  const files: { name: string; bytes: Buffer }[] = [];
  let budget = MAX_DISCLOSED_BYTES;
  for (const path of paths) {
    for (const file of await filesAt(path)) {
      const bytes = await readFileBounded(file, { maxBytes: budget, allowEmpty: true });
      budget -= bytes.length;
      files.push({ name: file, bytes });
    }
  }
  return files;
}

async function filesAt(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    return (await readdir(path)).sort().map((name) => join(path, name));
  } catch (error) {
    throw readError(path, error);
  }
}

/** Puts disclosed contents in the place of redacted records, and holds them against the commitments. */
export class Disclosure {
  readonly #files = new Map<Digest, { readonly name: string; readonly bytes: Buffer }>();
  readonly #salts: ReadonlyMap<Digest, Buffer>;
  readonly #findings: Findings;
  readonly #used = new Set<Digest>();
  readonly #opened = new Set<Digest>();

  constructor({ files, salts }: DisclosedContents, findings: Findings) {
    for (const file of files) this.#files.set(digestOf(file.bytes), file);
    this.#salts = salts;
    this.#findings = findings;
  }

  /** The content of a redacted record; null when it was not disclosed. */
  contentOf(header: RecordHeader): Buffer | null {
    const digest: Digest = `sha256:${header.hex}`;
    const file = this.#files.get(digest);
    if (file === undefined) return null;
    if (!this.#used.has(digest)) this.#judge(digest, header, file);
    this.#used.add(digest);
    return file.bytes;
  }

  /** Finds contents that no record asked for; to be called when all packs were read. */
  conclude(): void {
    for (const [digest, { name }] of this.#files) {
      if (this.#used.has(digest)) continue;
      const message = `no redacted object has the digest of ${name}, ${digest}`;
      this.#findings.add({ code: 'DISCLOSURE_FALSE', where: { file: name, object: digest }, message });
    }
  }

  lines(): { readonly checked: readonly string[]; readonly notChecked: readonly string[] } {
    const [used, opened] = [this.#used.size, this.#opened.size];
    return {
      checked:
        used === 0
          ? []
          : [`${used} disclosed contents against their digests, ${opened} against their commitments`],
      notChecked:
        used > opened
          ? [
              `the commitments of ${used - opened} disclosed contents: no salt was given for them (--salts FILE)`,
            ]
          : [],
    };
  }

  #judge(
    digest: Digest,
    header: RecordHeader,
    { name, bytes }: { readonly name: string; readonly bytes: Buffer },
  ): void {
    const salt = this.#salts.get(digest);
    const fault =
      bytes.length !== header.length
        ? `the bundle says ${header.length} bytes, ${name} has ${bytes.length}`
        : salt !== undefined && commitmentOf(salt, bytes) !== header.commitment
          ? `the commitment is not that of ${name} and its salt`
          : null;
    if (salt !== undefined) this.#opened.add(digest);
    if (fault === null) return;
    const where = { file: name, object: digest };
    this.#findings.add({ code: 'DISCLOSURE_FALSE', where, message: fault });
  }
}
