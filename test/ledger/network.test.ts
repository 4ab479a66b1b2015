import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { FileSystemProbe } from '../../src/core/statfs.js';
import { LedgerStore } from '../../src/ledger/store.js';
import { newLedger, openedDraft, tempFolder, testClock } from './support.js';

const nfs: FileSystemProbe = () => ({ type: 0x6969, mounted: () => 'nfs4' });

const refusal = {
  name: 'BoundbookError',
  code: 'LEDGER_ON_NETWORK',
  exitCode: 2,
  message: expect.stringMatching(/lies on a network file system \(NFS\)/),
  hint: expect.stringMatching(/local disk/),
};

describe('a ledger on a network file system', () => {
  it('is not made, and no folder is left', async () => {
    const folder = join(tempFolder(), 'ledger');
    const opening = { draft: openedDraft(), objects: [] };
    await expect(LedgerStore.create(folder, opening, { now: testClock(), probe: nfs })).rejects.toMatchObject(
      refusal,
    );
    expect(existsSync(folder)).toBe(false);
  });

  it('is not opened for writing, and can be read', async () => {
    const store = await newLedger();
    store.close();
    expect(() => LedgerStore.openWriter(store.folder, { now: testClock(), probe: nfs })).toThrowError(
      expect.objectContaining(refusal),
    );
    const reader = LedgerStore.openReader(store.folder);
    expect(reader.countEntries()).toBe(1);
    reader.close();
    LedgerStore.openWriter(store.folder, { now: testClock() }).close();
  });
});
