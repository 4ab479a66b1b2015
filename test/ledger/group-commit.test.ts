import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { GroupCommitter } from '../../src/ledger/group-commit.js';
import { toObject } from '../../src/ledger/objects.js';
import { gateDraft, newLedger, pausedDraft, SLOTS, SlotScript } from './support.js';

describe('group commit', () => {
  it('puts what is submitted in one turn into one transaction, each call in one piece', async () => {
    const store = await newLedger();
    const transactions = vi.spyOn(store, 'transactAll');
    const group = new GroupCommitter(store);
    store.append([gateDraft()]);
    transactions.mockClear();
    const scripts = SLOTS.slice(0, 16).map((slot, i) => new SlotScript(slot).whole(i % 2));
    const acknowledged = await Promise.all(
      scripts.map(({ drafts, objects }) => group.submit(drafts, objects)),
    );
    expect(transactions).toHaveBeenCalledTimes(1);
    const entries = [...store.entries(2)].map(({ entry }) => entry);
    expect(acknowledged.flat()).toEqual(entries);
    for (const own of acknowledged)
      expect(own.map(({ seq }) => seq)).toEqual([0, 1, 2, 3, 4].map((i) => (own[0]?.seq ?? 0) + i));
    for (const { objects } of scripts) for (const { digest } of objects) store.getObject(digest);
  });

  it('acknowledges only what another connection can read', async () => {
    const store = await newLedger();
    const group = new GroupCommitter(store);
    const other = new Database(store.file, { readonly: true });
    const count = other.prepare('SELECT count(*) FROM entry').pluck();
    const visible: [number, number][] = [];
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (let i = 0; i < 20; i++) {
        const [entry] = await group.submit([
          gateDraft(`${writer}${String(i).padStart(2, '0')}`.padStart(32, '0')),
        ]);
        visible.push([entry?.seq ?? -1, Number(count.get())]);
      }
    });
    await Promise.all(writers);
    other.close();
    expect(visible.length).toBe(160);
    for (const [seq, seen] of visible) expect(seen).toBeGreaterThan(seq);
  });

  it('rejects everyone in a failed transaction with the same error, and appends nothing', async () => {
    const store = await newLedger({ busyMs: 50 });
    const group = new GroupCommitter(store);
    const other = new Database(store.file);
    other.exec('BEGIN IMMEDIATE');
    const outcomes = await Promise.allSettled(
      [1, 2, 3].map((i) => group.submit([gateDraft(String(i).repeat(32))])),
    );
    other.exec('ROLLBACK');
    other.close();
    const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason : null));
    expect(reasons[0]).toMatchObject({ code: 'LEDGER_BUSY', exitCode: 5 });
    expect(new Set(reasons).size).toBe(1);
    expect(store.countEntries()).toBe(1);
    // Nothing of the file is in doubt after a wait that was too long.
    expect((await group.submit([gateDraft()]))[0]?.seq).toBe(1);
  });

  it('lets one refused draft hinder nobody else', async () => {
    const store = await newLedger();
    const group = new GroupCommitter(store);
    const bad = { ...pausedDraft('finished'), session: 'short' };
    const outcomes = await Promise.allSettled([
      group.submit([gateDraft()]),
      group.submit([bad]),
      group.submit([pausedDraft('finished')]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect([...store.entries(1)].map(({ entry }) => entry.type)).toEqual(['gate.passed', 'run.paused']);
  });

  it('makes large objects durable before the entry that names them', async () => {
    const store = await newLedger();
    const group = new GroupCommitter(store);
    const large = toObject(Buffer.alloc(100_000, 7));
    await group.submit([gateDraft()], [large, large]);
    expect(store.getObject(large.digest).length).toBe(100_000);
  });

  it('lets decisions of one turn share the commit, in the order of their calls', async () => {
    const store = await newLedger();
    const group = new GroupCommitter(store);
    const free = [...SLOTS];
    const claims = await Promise.all(
      Array.from({ length: 6 }, () =>
        group.transact(() => {
          const slot = free.shift();
          if (slot === undefined) throw new RangeError('nothing left');
          const { drafts, objects } = new SlotScript(slot).start();
          return { drafts, objects, result: slot.id };
        }),
      ),
    );
    expect(claims.map(({ result }) => result)).toEqual(SLOTS.slice(0, 6).map(({ id }) => id));
    await expect(
      group.transact(() => {
        throw new RangeError('nothing left');
      }),
    ).rejects.toThrow(RangeError);
  });
});
