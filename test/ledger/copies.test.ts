import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { anchorPath } from '../../src/ledger/anchor.js';
import type { LedgerStore } from '../../src/ledger/store.js';
import { LedgerStore as Store } from '../../src/ledger/store.js';
import { gateDraft, newLedger, SLOTS, SlotScript, tempFolder, testClock } from './support.js';

/** Bytes of a frame of the log: its header and a page (sqlite.org/fileformat2.html#walformat). */
const FRAME = 24 + 4096;
const HEADER = 32;

const WAL = 'ledger.sqlite-wal';

interface Snapshot {
  readonly main: Buffer;
  readonly wal: Buffer | null;
  /** Entries that it holds. */
  readonly size: number;
}

function snapshot(store: LedgerStore): Snapshot {
  const wal = join(store.folder, WAL);
  return {
    main: readFileSync(store.file),
    wal: existsSync(wal) ? readFileSync(wal) : null,
    size: store.size,
  };
}

/** A ledger whose log was folded into the main file now and then, seen after every few commits and when it was closed. */
async function history(): Promise<{ readonly snapshots: readonly Snapshot[]; readonly anchor: string }> {
  const store = await newLedger();
  const other = new Database(store.file);
  const snapshots = [snapshot(store)];
  store.append([gateDraft()]);
  for (const [i, slot] of SLOTS.entries()) {
    const { drafts, objects } = new SlotScript(slot).whole(1);
    store.append(drafts, objects);
    if (i % 4 === 1) other.pragma('wal_checkpoint(PASSIVE)');
    if (i === 9) other.pragma('wal_checkpoint(TRUNCATE)');
    if (i % 3 === 0) snapshots.push(snapshot(store));
  }
  other.close();
  store.close();
  snapshots.push(snapshot(store));
  return { snapshots, anchor: anchorPath(store.folder) };
}

/** Opens for writing, every entry verified, and reads every object. @returns the number of entries, or the refusal. */
function open(
  folder: string,
): { readonly size: number } | { readonly code: string; readonly exitCode: number } {
  try {
    const store = Store.openWriter(folder, { now: testClock(), follow: () => undefined });
    try {
      for (const { entry } of store.entries()) {
        if (entry.type === 'attempt.started' && entry.request !== null) store.getObject(entry.request);
      }
      return { size: store.size };
    } finally {
      store.close();
    }
  } catch (error) {
    const { code, exitCode, hint } = error as { code: string; exitCode: number; hint: string };
    expect(hint).toMatch(/./);
    return { code, exitCode };
  }
}

function layOut({ main, wal }: Pick<Snapshot, 'main' | 'wal'>, anchor: string | null): string {
  const folder = join(tempFolder(), 'ledger');
  mkdirSync(folder);
  writeFileSync(join(folder, 'ledger.sqlite'), main);
  if (wal !== null) writeFileSync(join(folder, WAL), wal);
  if (anchor !== null) copyFileSync(anchor, anchorPath(folder));
  return folder;
}

const REFUSED = { code: 'LEDGER_DAMAGED', exitCode: 4 };

describe('a main file with a log of another time', () => {
  it('holds everything or is refused, in every combination', async () => {
    const { snapshots, anchor } = await history();
    const whole = snapshots.at(-1)?.size;
    let [opened, refused] = [0, 0];
    for (const { main } of snapshots) {
      for (const wal of [null, ...snapshots.map((each) => each.wal)]) {
        const result = open(layOut({ main, wal }, anchor));
        if ('size' in result) {
          expect(result.size).toBe(whole);
          opened++;
        } else {
          expect(result).toEqual(REFUSED);
          refused++;
        }
      }
    }
    expect(opened).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(40);
  });
});

describe('a log that was cut or written over', () => {
  /** A ledger whose process died: everything after the first entry lies in the log. */
  async function unfolded(): Promise<Snapshot & { readonly anchor: string }> {
    const store = await newLedger();
    for (let i = 1; i <= 12; i++) store.append([gateDraft(i.toString(16).padStart(32, '0'))]);
    const taken = snapshot(store);
    store.close();
    return { ...taken, anchor: anchorPath(store.folder) };
  }

  it('at any length but the whole one is refused where the head is remembered', async () => {
    const { main, wal, size, anchor } = await unfolded();
    const log = wal ?? Buffer.alloc(0);
    const frames = (log.length - HEADER) / FRAME;
    expect(frames).toBeGreaterThanOrEqual(12);
    const lengths = [0, 1, HEADER - 1, HEADER];
    for (let frame = 0; frame < frames; frame++) {
      const at = HEADER + frame * FRAME;
      lengths.push(at + 1, at + 24, at + 2000, at + FRAME - 1);
      if (frame < frames - 1) lengths.push(at + FRAME);
    }
    for (const length of lengths) {
      const folder = layOut({ main, wal: log.subarray(0, length) }, anchor);
      expect(open(folder), `${length} bytes`).toEqual(REFUSED);
      rmSync(folder, { recursive: true });
    }
    expect(open(layOut({ main, wal: log }, anchor))).toEqual({ size });
  });

  it('without a remembered head it is a shorter ledger of whole entries, never a wrong one', async () => {
    const { main, wal, size } = await unfolded();
    const log = wal ?? Buffer.alloc(0);
    for (let length = log.length; length >= 0; length -= 1777) {
      const result = open(layOut({ main, wal: log.subarray(0, length) }, null));
      expect('size' in result && result.size >= 1 && result.size <= size).toBe(true);
    }
  });

  it('garbage in it is not taken for entries, and garbage behind it is passed over', async () => {
    const { main, wal, size, anchor } = await unfolded();
    const log = wal ?? Buffer.alloc(0);
    for (let at = 0; at < log.length; at += 1501) {
      const spoiled = Buffer.from(log);
      for (let i = 0; i < 16 && at + i < log.length; i++)
        spoiled[at + i] = (spoiled[at + i] ?? 0) ^ (0x5a + i);
      const result = open(layOut({ main, wal: spoiled }, anchor));
      expect(result, `16 bytes at ${at}`).toEqual(REFUSED);
    }
    const longer = Buffer.concat([log, Buffer.alloc(3 * FRAME, 0xa5)]);
    expect(open(layOut({ main, wal: longer }, anchor))).toEqual({ size });
    expect(open(layOut({ main, wal: Buffer.alloc(50_000, 7) }, anchor))).toEqual(REFUSED);
  });

  it('is left as it is by a refusal, so that a whole copy of it can be put back', async () => {
    const { main, wal, size, anchor } = await unfolded();
    const folder = layOut({ main, wal: null }, anchor);
    expect(open(folder)).toEqual(REFUSED);
    expect(readFileSync(join(folder, 'ledger.sqlite')).equals(main)).toBe(true);
    writeFileSync(join(folder, WAL), wal ?? '');
    expect(open(folder)).toEqual({ size });
    // Reading comes before writing when a book is opened: a cut log is not folded into the main file either.
    const cut = (wal ?? Buffer.alloc(0)).subarray(0, HEADER + 2 * FRAME + 100);
    const other = layOut({ main, wal: cut }, anchor);
    expect(() => Store.openReader(other)).toThrowError(expect.objectContaining(REFUSED));
    expect(readFileSync(join(other, 'ledger.sqlite')).equals(main)).toBe(true);
    expect(readFileSync(join(other, WAL)).equals(cut)).toBe(true);
  });
});
