import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BoundbookError } from '../../src/core/errors.js';
import { GroupCommitter } from '../../src/ledger/group-commit.js';
import { toObject } from '../../src/ledger/objects.js';
import { LedgerStore } from '../../src/ledger/store.js';
import { gateDraft, newLedger, tempFolder, testClock } from './support.js';

/** A file system of its own of the given size, or null where this user may not mount one. */
function smallDisk(kilobytes: number): string | null {
  const folder = join(tempFolder(), 'disk');
  mkdirSync(folder);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', folder]);
  if (mounted.status !== 0) return null;
  onTestFinished(() => void execFileSync('umount', ['-l', folder]));
  return folder;
}

const mayMount = process.getuid?.() === 0 && process.platform === 'linux';

/** Appends until the disk is full. @returns how many entries were acknowledged, and the error. */
function fill(append: (i: number) => void): { acknowledged: number; error: BoundbookError } {
  for (let i = 0; i < 10_000; i++) {
    try {
      append(i);
    } catch (error) {
      if (error instanceof BoundbookError) return { acknowledged: i, error };
      throw error;
    }
  }
  throw new Error('the disk never became full');
}

describe.skipIf(!mayMount)('a full disk (needs root to mount a small one)', () => {
  it('loses nothing that was recorded, and the store goes on when there is space again', async ({ skip }) => {
    const disk = smallDisk(700);
    if (disk === null) return skip('this container may not mount a tmpfs');
    const store = await newLedger({ folder: join(disk, 'ledger') });
    const ballast = join(disk, 'ballast');
    writeFileSync(ballast, Buffer.alloc(100_000));
    const { acknowledged, error } = fill((i) =>
      store.append([gateDraft(i.toString(16).padStart(32, '0'))], [toObject(Buffer.alloc(4_000, i))]),
    );
    expect(error).toMatchObject({
      code: 'DISK_FULL',
      exitCode: 5,
      hint: expect.stringContaining('nothing that was recorded is lost'),
    });
    expect(acknowledged).toBeGreaterThan(10);
    const reader = LedgerStore.openReader(store.folder);
    expect([...reader.entries()].length).toBe(acknowledged + 1);
    reader.close();
    rmSync(ballast);
    expect(store.append([gateDraft('f'.repeat(32))])[0]?.seq).toBe(acknowledged + 1);
    store.close();
    const again = LedgerStore.openWriter(store.folder, { now: testClock(), follow: () => undefined });
    expect(again.size).toBe(acknowledged + 2);
    again.close();
  });

  it('while a large object is written leaves no half of it, and no entry that names it', async ({ skip }) => {
    const disk = smallDisk(600);
    if (disk === null) return skip('this container may not mount a tmpfs');
    const store = await newLedger({ folder: join(disk, 'ledger') });
    const large = toObject(Buffer.alloc(700_000, 9));
    const full = expect.objectContaining({ code: 'DISK_FULL', exitCode: 5 });
    expect(() => store.append([gateDraft()], [large])).toThrowError(full);
    await expect(new GroupCommitter(store).submit([gateDraft()], [large])).rejects.toEqual(full);
    expect(store.countEntries()).toBe(1);
    expect(() => store.getObject(large.digest)).toThrowError(
      expect.objectContaining({ code: 'OBJECT_MISSING' }),
    );
    expect(store.append([gateDraft()])[0]?.seq).toBe(1);
  });

  it('when the ledger is made leaves nothing under its name', async ({ skip }) => {
    const disk = smallDisk(24);
    if (disk === null) return skip('this container may not mount a tmpfs');
    await expect(newLedger({ folder: join(disk, 'ledger') })).rejects.toMatchObject({ code: 'DISK_FULL' });
    expect(() => LedgerStore.openReader(join(disk, 'ledger'))).toThrowError(
      expect.objectContaining({ code: 'LEDGER_NOT_FOUND' }),
    );
  });
});
