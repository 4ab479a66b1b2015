import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openBook } from '../../src/ledger/book.js';
import { gateDraft, newBook, pausedDraft, SLOTS, SlotScript, slotAt } from '../ledger/support.js';
import { REPOSITORY } from './place.js';

const OTHER = '6'.repeat(32);

/** `boundbook unblind` of the built program, in a process of its own. */
function unblind(root: string): Promise<{ code: number | null; stdout: string }> {
  const child = spawn(process.execPath, [join(REPOSITORY, 'dist/cli.js'), 'unblind', '--json'], {
    cwd: root,
  });
  let stdout = '';
  child.stdout.on('data', (text: Buffer) => {
    stdout += text.toString();
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout })));
}

it('of two processes, the one that unblinds sees what the other starts while it waits for the lock', async () => {
  const scripts = SLOTS.filter(({ queue }) => queue === 'main').map((slot) => new SlotScript(slot).whole(1));
  const { root, stored, book } = await newBook(scripts);
  book.store.append([pausedDraft('finished')]);
  expect(book.fold.obstacles()).toEqual([]);
  book.close();
  const run = await openBook(root, stored, 'write', () => '2026-12-01T00:00:00.000Z');
  run.store.append([{ ...gateDraft(OTHER), manifest: stored.digest }]);
  const start = new SlotScript(slotAt(0, 'broad'), OTHER).start();

  let waiting: ReturnType<typeof unblind> | undefined;
  run.store.transact(() => {
    waiting = unblind(root);
    // The lock is held while the other process opens the ledger and finds it complete.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
    return { drafts: start.drafts, objects: start.objects, result: null };
  });
  const early = await waiting;
  expect(early?.code).toBe(2);
  expect(JSON.parse(early?.stdout ?? '')).toMatchObject({
    error: {
      code: 'UNBLIND_TOO_EARLY',
      faults: [{ where: 'broad', message: '5 pending and 1 open (exploratory)' }],
    },
  });
  expect(run.store.countEntries()).toBe(run.fold.size);
  expect(run.fold.unblinded).toBeNull();
  run.close();
}, 120_000);
