import type Database from 'better-sqlite3';
import { hexOf } from '../core/digest.js';
import type { LedgerRecord } from './chain.js';
import type { LedgerObject } from './objects.js';

/** The writer's prepared statements. */
export interface Statements {
  readonly begin: Database.Statement;
  readonly commit: Database.Statement;
  readonly rollback: Database.Statement;
  /** Position of the last entry; -1 when there is none. */
  readonly lastSeq: () => number;
  readonly last: () => { readonly seq: number; readonly leaf: Buffer } | null;
  readonly insertEntry: (record: LedgerRecord) => void;
  /** Keeps the object unless it is there already. */
  readonly insertObject: (object: LedgerObject) => void;
}

export function prepareStatements(db: Database.Database): Statements {
  const lastSeq = db.prepare<[], number>('SELECT coalesce(max(seq), -1) FROM entry').pluck();
  const last = db.prepare<[], { seq: number; leaf: Buffer }>(
    'SELECT seq, leaf FROM entry ORDER BY seq DESC LIMIT 1',
  );
  const entry = db.prepare('INSERT INTO entry (seq, prev, leaf, body) VALUES (?, ?, ?, ?)');
  const object = db.prepare(
    'INSERT INTO object (digest, bytes) SELECT :digest, :bytes WHERE NOT EXISTS (SELECT 1 FROM object WHERE digest = :digest)',
  );
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    lastSeq: () => lastSeq.get() ?? -1,
    last: () => last.get() ?? null,
    insertEntry: ({ entry: { seq, prev }, leaf, body }) => {
      entry.run(seq, prev === null ? null : Buffer.from(prev, 'hex'), leaf, body);
    },
    insertObject: ({ digest, bytes }) => {
      object.run({ digest: Buffer.from(hexOf(digest), 'hex'), bytes });
    },
  };
}
