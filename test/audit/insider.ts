import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { canonicalText } from '../../src/core/canonical-json.js';
import { type Digest, digestOf, hexOf } from '../../src/core/digest.js';
import { checkpointDraft } from '../../src/ledger/checkpoint-entry.js';
import type { Entry, EntryOf, EntryType } from '../../src/ledger/entries/entry.js';
import { CompactRange, leafHash } from '../../src/ledger/merkle.js';
import type { SignerKey } from '../../src/signing/keys.js';
import { type Trial, temporaryFolder } from '../runner/fixture.js';

/** An entry as an insider edits it: anything goes. */
export type Loose = Record<string, unknown> & { type: string };

interface Rechain {
  readonly forgeAnchor?: boolean;
  /** Whether checkpoints get the roots that fit. */
  readonly roots?: boolean;
  /** Signs the checkpoints anew. */
  readonly key?: SignerKey;
}

/**
 * Somebody with every right on the files: works on a copy of a workspace, drops the triggers, edits, hashes everything
 * anew and puts the triggers back. What a careful insider leaves is a ledger that is consistent in itself.
 */
export class Insider {
  readonly root: string;
  readonly folder: string;
  readonly file: string;
  readonly manifest: string;
  entries: Loose[];
  readonly #triggers: readonly string[];

  constructor(plan: Trial) {
    this.root = temporaryFolder();
    cpSync(plan.root, this.root, { recursive: true });
    const name = plan.stored.file.replace(/\.json$/, '');
    this.folder = join(this.root, 'ledger', name);
    this.file = join(this.folder, 'ledger.sqlite');
    this.manifest = join(this.root, 'manifests', plan.stored.file);
    const { entries, triggers } = this.#with((db) => ({
      entries: db.prepare<[], Buffer>('SELECT body FROM entry ORDER BY seq').pluck().all(),
      triggers: db
        .prepare<[], string>("SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name")
        .pluck()
        .all(),
    }));
    this.entries = entries.map((body) => JSON.parse(body.toString('utf8')) as Loose);
    this.#triggers = triggers;
  }

  /** The first entry of a type that passes. */
  find<T extends EntryType>(type: T, pass: (entry: EntryOf<T>) => boolean = () => true): Loose {
    const found = this.entries.find((entry) => entry.type === type && pass(entry as unknown as EntryOf<T>));
    if (found === undefined) throw new Error(`no ${type} passes`);
    return found;
  }

  /** The entries of the slot of a task (and of the first such slot, with several). */
  slotOf(task: string): string {
    return this.find('attempt.started', ({ key }) => key.task === task).slot as string;
  }

  of(slot: string): Loose[] {
    return this.entries.filter((entry) => entry.slot === slot);
  }

  /** Puts entries behind the last one of a slot. */
  insertAfter(slot: string, ...entries: Loose[]): void {
    const at = this.entries.findLastIndex((entry) => entry.slot === slot);
    this.entries.splice(at + 1, 0, ...entries.map((entry) => ({ time: this.entries[at]?.time, ...entry })));
  }

  remove(pass: (entry: Loose) => boolean): void {
    this.entries = this.entries.filter((entry) => !pass(entry));
  }

  /** Writes all entries anew, with positions, links, leaves and roots of checkpoints that fit; notes stay as they are. */
  rechain({ forgeAnchor = true, roots = true, key }: Rechain = {}): this {
    let prev: Buffer | null = null;
    const tree = new CompactRange();
    const rows: [number, Buffer | null, Buffer, Buffer][] = [];
    for (const [seq, { seq: _seq, prev: _prev, ...rest }] of this.entries.entries()) {
      if (rest.type === 'checkpoint' && roots) this.#mend(rest, seq, tree, key);
      const body = Buffer.from(canonicalText({ ...rest, seq, prev: prev?.toString('hex') ?? null }));
      const leaf = leafHash(body);
      rows.push([seq, prev, leaf, body]);
      tree.append(leaf);
      prev = leaf;
    }
    this.sql((db) => {
      db.exec('DELETE FROM entry');
      const insert = db.prepare('INSERT INTO entry (seq, prev, leaf, body) VALUES (?, ?, ?, ?)');
      for (const row of rows) insert.run(...row);
    });
    if (forgeAnchor) this.forgeAnchor(rows.length, prev);
    return this;
  }

  #mend(entry: Loose, size: number, tree: CompactRange, key: SignerKey | undefined): void {
    const { ledger, incarnation } = this.find('ledger.opened') as unknown as EntryOf<'ledger.opened'>;
    const { note, ...rest } = checkpointDraft(tree, { ledger, incarnation }, key ?? null, []);
    Object.assign(entry, { size, root: rest.root }, key === undefined ? {} : { note });
  }

  forgeAnchor(size: number, leaf: Buffer | null): void {
    const time = '2026-11-30T00:00:00.000Z';
    writeFileSync(
      `${this.folder}.head`,
      `${canonicalText({ size, leaf: leaf?.toString('hex') ?? '', time })}\n`,
    );
  }

  /** Runs raw SQL with the triggers out of the way. */
  sql(edit: (db: Database.Database) => void, { triggersBack = true } = {}): this {
    this.#with((db) => {
      for (const name of db
        .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .pluck()
        .all()) {
        db.exec(`DROP TRIGGER ${name}`);
      }
      edit(db);
      if (triggersBack) for (const trigger of this.#triggers) db.exec(trigger);
    });
    return this;
  }

  /** Adds an object. */
  keep(content: string | Buffer): Digest {
    const bytes = Buffer.from(content);
    const digest = digestOf(bytes);
    this.sql((db) => {
      db.prepare('INSERT OR IGNORE INTO object (digest, bytes) VALUES (?, ?)').run(
        Buffer.from(hexOf(digest), 'hex'),
        bytes,
      );
    });
    return digest;
  }

  object(digest: unknown): Buffer {
    return this.#with((db) => {
      const key = Buffer.from(hexOf(digest as Digest), 'hex');
      const bytes = db
        .prepare<[Buffer], Buffer>('SELECT bytes FROM object WHERE digest = ?')
        .pluck()
        .get(key);
      if (bytes === undefined) throw new Error(`no object ${String(digest)}`);
      return bytes;
    });
  }

  /** Removes every object that no entry names. */
  sweep(): this {
    const named = new Set(canonicalText(this.entries).match(/sha256:[0-9a-f]{64}/g));
    return this.sql((db) => {
      for (const hex of db.prepare<[], string>('SELECT lower(hex(digest)) FROM object').pluck().all()) {
        if (!named.has(`sha256:${hex}`))
          db.prepare('DELETE FROM object WHERE digest = ?').run(Buffer.from(hex, 'hex'));
      }
    });
  }

  removeAnchor(): this {
    rmSync(`${this.folder}.head`, { force: true });
    return this;
  }

  /** Size and last leaf, as somebody may have noted them down. */
  head(): { size: number; hash: string } {
    return this.#with((db) => {
      const row = db
        .prepare<[], { seq: number; leaf: Buffer }>('SELECT seq, leaf FROM entry ORDER BY seq DESC LIMIT 1')
        .get();
      return { size: (row?.seq ?? -1) + 1, hash: row?.leaf.toString('hex') ?? '' };
    });
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8');
  }

  #with<T>(use: (db: Database.Database) => T): T {
    const db = new Database(this.file);
    try {
      return use(db);
    } finally {
      db.close();
    }
  }
}

export type { Entry };
