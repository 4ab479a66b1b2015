import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SqliteCopy } from '../../src/audit/bundle/sqlite-copy.js';
import { canonicalBytes, canonicalText } from '../../src/core/canonical-json.js';
import { type Digest, digestOf, hexOf } from '../../src/core/digest.js';
import { decodeEntry } from '../../src/ledger/codec.js';
import type { EntryOf, EntryType } from '../../src/ledger/entries/entry.js';
import { mentionsOf } from '../../src/ledger/mentions.js';
import { CompactRange, leafHash } from '../../src/ledger/merkle.js';

/** An entry as an insider edits it: anything goes. */
export type Loose = Record<string, unknown> & { type: string };

/** One ledger of a bundle: `ledger`, or `predecessors/<id>`. */
export interface LoosePart {
  entries: Loose[];
  /** By 64 hexadecimal digits; a string is the rest of a redacted record's first line, behind the digits. */
  objects: Map<string, Buffer | string>;
  /** Digests of the records that come first: report schemas. */
  schemas: string[];
  taskIds: Buffer | null;
}

/**
 * A bundle in memory, to be edited by somebody with every right on the files and written again so that it is consistent
 * in itself: positions, links, root, pack, index and database follow from what is there. What shall not follow is broken
 * afterwards, in the folder, with {@link reindex} when the index shall agree.
 *
 * ```ts
 * const loose = LooseBundle.read(folder);
 * loose.find('attempt.started').sampling_seed = 1;
 * loose.write(other);                    // entries chained anew
 * writeFileSync(join(other, 'ledger/objects.pack'), …);
 * reindex(other);                        // sizes and digests of the files as they are now
 * ```
 */
export class LooseBundle {
  /** Manifests, notes, attestations, reports: by path. */
  readonly files = new Map<string, Buffer>();
  readonly ledger: LoosePart;
  readonly predecessors = new Map<string, LoosePart>();
  /** Members of the index that do not follow from the files. */
  manifest: string;

  private constructor(folder: string) {
    const index = JSON.parse(readFileSync(join(folder, 'bundle.json'), 'utf8')) as { manifest: string };
    this.manifest = index.manifest;
    for (const path of filesBelow(folder)) {
      if (/^(manifests|checkpoints|attestations|report)\//.test(path)) {
        this.files.set(path, readFileSync(join(folder, path)));
      }
    }
    this.ledger = readPart(join(folder, 'ledger'));
    const before = join(folder, 'predecessors');
    for (const id of existsSync(before) ? readdirSync(before) : []) {
      this.predecessors.set(id, readPart(join(before, id)));
    }
  }

  static read(folder: string): LooseBundle {
    return new LooseBundle(folder);
  }

  get entries(): Loose[] {
    return this.ledger.entries;
  }

  /** The first entry of a type that passes. */
  find<T extends EntryType>(type: T, pass: (entry: EntryOf<T>) => boolean = () => true): Loose {
    const found = this.entries.find((entry) => entry.type === type && pass(entry as unknown as EntryOf<T>));
    if (found === undefined) throw new Error(`no ${type} passes`);
    return found;
  }

  /** The entries of a slot. */
  of(slot: unknown): Loose[] {
    return this.entries.filter((entry) => entry.slot === slot);
  }

  remove(pass: (entry: Loose) => boolean): void {
    this.ledger.entries = this.entries.filter((entry) => !pass(entry));
  }

  /** Puts entries before a position; they take the time of the entry before. */
  insert(at: number, ...entries: Loose[]): void {
    const time = this.entries[Math.max(0, at - 1)]?.time;
    this.entries.splice(at, 0, ...entries.map((entry) => ({ time, ...entry })));
  }

  /** Adds an object, so that an entry can name it. */
  keep(content: string | Buffer): Digest {
    const bytes = Buffer.from(content);
    const digest = digestOf(bytes);
    this.ledger.objects.set(hexOf(digest), bytes);
    return digest;
  }

  object(digest: unknown): Buffer {
    const found = this.ledger.objects.get(hexOf(digest as Digest));
    if (!Buffer.isBuffer(found)) throw new Error(`no object ${String(digest)}`);
    return found;
  }

  /** Puts another manifest in place of the one of that file name. */
  replaceManifest(file: string, value: unknown): Digest {
    const bytes = canonicalBytes(value);
    const name = file.replace(/[0-9a-f]{12}\.json$/, `${hexOf(digestOf(bytes)).slice(0, 12)}.json`);
    this.files.delete(`manifests/${file}`);
    this.files.set(`manifests/${name}`, bytes);
    return digestOf(bytes);
  }

  /**
   * Writes the bundle into a new folder.
   *
   * @param chained whether positions and links are made to follow; otherwise entries are written as they are
   */
  write(folder: string, { chained = true }: { chained?: boolean } = {}): string {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const [path, bytes] of this.files) put(folder, path, bytes);
    writePart(folder, 'ledger', this.ledger, chained);
    for (const [id, part] of this.predecessors) writePart(folder, `predecessors/${id}`, part, chained);
    reindex(folder, { manifest: this.manifest });
    return folder;
  }
}

/** Makes `bundle.json` agree with the files as they lie there; `members` replaces parts of it. */
export function reindex(folder: string, members: Readonly<Record<string, unknown>> = {}): void {
  const file = join(folder, 'bundle.json');
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {};
  const paths = filesBelow(folder).filter((path) => path !== 'bundle.json');
  const files = Object.fromEntries(
    paths.map((path) => {
      const bytes = readFileSync(join(folder, path));
      return [path, { size: bytes.length, digest: digestOf(bytes) }];
    }),
  );
  const range = new CompactRange();
  const bodies = linesOf(readFileSync(join(folder, 'ledger/entries.jsonl')));
  let leaf = Buffer.alloc(32);
  for (const body of bodies) {
    leaf = leafHash(body) as Buffer<ArrayBuffer>;
    range.append(leaf);
  }
  const first = JSON.parse(bodies[0]?.toString('utf8') ?? '{}') as { ledger?: string };
  const packs = paths.filter((path) => path.endsWith('.pack'));
  const redacted = packs.reduce((sum, path) => sum + countRedacted(readFileSync(join(folder, path))), 0);
  const index = {
    ...before,
    format: 'boundbook/bundle/1',
    ledger: {
      id: first.ledger ?? '0'.repeat(32),
      size: bodies.length,
      leaf: leaf.toString('hex'),
      root: range.root().toString('hex'),
    },
    redacted,
    files,
    ...members,
  };
  writeFileSync(file, canonicalText(index));
}

/** Regular files below a folder, as paths with `/`, sorted. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((item) => item.isFile())
    .map((item) => join(item.parentPath, item.name).slice(folder.length).replace(/^\/+/, ''))
    .sort();
}

/**
 * The records of a pack: digits, and bytes or the rest of a redacted record's first line. A pack that somebody broke is
 * read as far as its first lines are those of records.
 */
export function readPack(bytes: Buffer): [string, Buffer | string][] {
  const records: [string, Buffer | string][] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\n', at);
    if (end === -1) return records;
    const [hex = '', length = '', ...rest] = bytes.subarray(at, end).toString('latin1').split(' ');
    if (length === 'redacted') {
      records.push([hex, `redacted ${rest.join(' ')}`]);
      at = end + 1;
      continue;
    }
    if (!/^[0-9]+$/.test(length)) return records;
    records.push([hex, bytes.subarray(end + 1, end + 1 + Number(length))]);
    at = end + 2 + Number(length);
  }
  return records;
}

export function writePack(records: Iterable<readonly [string, Buffer | string]>): Buffer {
  const parts: Buffer[] = [];
  for (const [hex, content] of records) {
    if (typeof content === 'string') parts.push(Buffer.from(`${hex} ${content}\n`));
    else parts.push(Buffer.from(`${hex} ${content.length}\n`), content, Buffer.from('\n'));
  }
  return Buffer.concat(parts);
}

/** The lines of a file of entries, without their line feeds. */
export function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0x0a, at);
    const stop = end === -1 ? bytes.length : end;
    lines.push(bytes.subarray(at, stop));
    at = stop + 1;
  }
  return lines;
}

function countRedacted(pack: Buffer): number {
  return readPack(pack).filter(([, content]) => typeof content === 'string').length;
}

function readPart(folder: string): LoosePart {
  const entries = linesOf(readFileSync(join(folder, 'entries.jsonl'))).map(
    (line) => JSON.parse(line.toString('utf8')) as Loose,
  );
  const records = readPack(readFileSync(join(folder, 'objects.pack')));
  const mentioned = new Set(entries.flatMap(namesIn));
  const ids = join(folder, 'task-ids.json');
  return {
    entries,
    objects: new Map(records),
    schemas: records.map(([hex]) => hex).filter((hex) => !mentioned.has(hex)),
    taskIds: existsSync(ids) ? readFileSync(ids) : null,
  };
}

/** The objects that an entry names, in order; nothing for an entry that has not the declared form. */
function namesIn(entry: Loose): string[] {
  const decoded = decodeEntry(Buffer.from(canonicalText(entry)));
  return decoded.ok ? mentionsOf(decoded.entry).map(({ digest }) => hexOf(digest)) : [];
}

function writePart(folder: string, part: string, content: LoosePart, chained: boolean): void {
  const sqlite = part === 'ledger' ? new SqliteCopy(placeFor(folder, `${part}/ledger.sqlite`)) : null;
  const lines: Buffer[] = [];
  let prev: string | null = null;
  for (const [seq, entry] of content.entries.entries()) {
    const body = Buffer.from(canonicalText(chained ? { ...entry, seq, prev } : entry));
    const leaf = leafHash(body);
    const position = { seq, prev } as EntryOf<'amended'>;
    if (chained) sqlite?.add({ entry: position, body, leaf });
    prev = leaf.toString('hex');
    lines.push(body, Buffer.from('\n'));
  }
  sqlite?.finish();
  put(folder, `${part}/entries.jsonl`, Buffer.concat(lines));
  const order = new Set([...content.schemas, ...content.entries.flatMap(namesIn)]);
  const records = [...order].flatMap((hex): [string, Buffer | string][] => {
    const found = content.objects.get(hex);
    return found === undefined ? [] : [[hex, found]];
  });
  put(folder, `${part}/objects.pack`, writePack(records));
  if (content.taskIds !== null) put(folder, `${part}/task-ids.json`, content.taskIds);
}

function placeFor(folder: string, path: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  return file;
}

function put(folder: string, path: string, bytes: Buffer): void {
  writeFileSync(placeFor(folder, path), bytes);
}
