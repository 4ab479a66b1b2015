import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CommandContext } from '../../src/commands/command.js';
import { command } from '../../src/commands/report.js';
import { digestOf } from '../../src/core/digest.js';
import type { Report } from '../../src/report/value.js';
import { newBook, SLOTS, SlotScript } from '../ledger/support.js';

function context(root: string, json = false): CommandContext {
  return {
    root,
    json,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    force: new AbortController().signal,
    now: () => '2026-12-01T00:00:00.000Z',
  };
}

/** O is right on its first rep, base never; slot 3 of the plan stays unresolved where asked for. */
async function workspace(options: { readonly open?: boolean; readonly unblind?: boolean } = {}) {
  const scripts = SLOTS.map((slot, i) => {
    const script = new SlotScript(slot);
    if (options.open === true && slot.queue === 'main' && slot.arm === 'O' && i % 7 === 0) {
      return script.start().failed('generate', 'time_limit').finished('failure').unresolved();
    }
    const value = slot.arm === 'O' && slot.rep === 0 ? 1 : 0;
    return i === 1
      ? script
          .start()
          .failed('generate', 'connection_lost')
          .finished('failure')
          .start('replacement')
          .generated(7)
          .graded(value)
          .finished('report')
          .settled()
      : script.whole(value);
  });
  const made = await newBook(scripts);
  const { planned, settled, unresolved } = made.book.fold.slots.total();
  if (options.unblind !== false) {
    made.book.store.append([{ type: 'unblinded', partial: false, planned, settled, unresolved, pending: 0 }]);
  }
  return { ...made, unresolved };
}

describe('boundbook report', () => {
  it('reports a whole book, twice the same bytes, in every form', async () => {
    const { root, book } = await workspace();
    const first = await command.run([], {}, context(root));
    expect(await command.run([], {}, context(root))).toEqual(first);
    const report = first.json as unknown as Report;
    expect(report.coverage.total).toEqual({ planned: 18, settled: 18, unresolved: 0, pending: 0 });
    expect(report.ledger).toEqual({
      name: book.fold.opened?.ledger,
      entries: book.head().size,
      leaf: book.head().leaf,
      root: book.head().root,
    });
    const main = report.results?.find((result) => result.queue === 'main');
    // Two reps a task, one of them right: 1/2 against 0, for both training seeds.
    expect(main?.contrasts[0]).toMatchObject({
      pairing: 'one_side_fixed',
      estimate: { exact: '1/2' },
      bound: { lower: { exact: '1/2' }, upper: { exact: '1/2' } },
      interval: { lower: 0.5, upper: 0.5, degenerate: 'no_variation' },
    });
    expect(report.failures).toEqual([
      {
        arm: SLOTS[1]?.arm,
        stage: 'generate',
        cause: 'connection_lost',
        attribution: 'infrastructure',
        attempts: 1,
      },
    ]);
    expect(report.attempts).toEqual({
      first: 18,
      replacement: 1,
      regrade: 0,
      recovered: 0,
      after_unblinding: 0,
    });
    expect(report.costs.used.generated_tokens).toBe(17 * 5 + 7);
    expect(report.truncation?.map((row) => [row.arm, row.known, row.truncated])).toEqual([
      ['O', 12, 0],
      ['base', 6, 0],
    ]);
    const { text } = await command.run([], { format: 'json' }, context(root));
    expect(JSON.parse(text)).toEqual(report);
    // No time, host or path.
    expect(text).not.toContain(root);
    expect(text).not.toMatch(/\d{4}-\d{2}-\d{2}T|boot-1/);
  });

  it('shows coverage only before unblinding', async () => {
    const { root } = await workspace({ unblind: false });
    const { text, json } = await command.run([], {}, context(root, true));
    expect((json as unknown as Report).results).toBeNull();
    expect(text).toContain('"visibility":"blinded"');
  });

  it('gives bounds where a slot is unresolved', async () => {
    const { root, unresolved } = await workspace({ open: true });
    expect(unresolved).toBeGreaterThan(0);
    const report = (await command.run([], {}, context(root))).json as unknown as Report;
    const contrast = report.results?.find((result) => result.queue === 'main')?.contrasts[0];
    expect(contrast).toMatchObject({ complete: false, estimate: null, interval: null });
    expect(contrast?.missing.unresolved).toBe(unresolved);
  });

  it('writes a new file durably and never over another', async () => {
    const { root } = await workspace();
    const { text } = await command.run([], { format: 'json', out: 'r.json' }, context(root));
    const bytes = readFileSync(join(root, 'r.json'));
    expect(text).toContain(digestOf(bytes));
    expect(bytes.toString()).toBe((await command.run([], { format: 'json' }, context(root))).text);
    await command.run([], { format: 'markdown', out: 'r.md' }, context(root));
    expect(readFileSync(join(root, 'r.md'), 'utf8')).toMatch(/^# Report: A tiny evaluation\n[\s\S]*[^\n]\n$/);
    writeFileSync(join(root, 'mine.txt'), 'mine');
    await expect(command.run([], { out: 'mine.txt' }, context(root))).rejects.toMatchObject({
      code: 'FILE_EXISTS',
    });
    expect(readFileSync(join(root, 'mine.txt'), 'utf8')).toBe('mine');
    await expect(command.run([], { out: 'no/such/r.txt' }, context(root))).rejects.toMatchObject({
      exitCode: 2,
    });
  });

  it('refuses contradictions and unknown things', async () => {
    const { root } = await workspace();
    const code = async (args: readonly string[], options: Record<string, string>, json = false) =>
      command.run(args, options, context(root, json)).then(
        () => 'none',
        (error: { code?: string }) => error.code,
      );
    expect(await code([], { format: 'html' })).toBe('USAGE');
    expect(await code([], { format: 'text' }, true)).toBe('USAGE');
    expect(await code([], { format: 'json' }, true)).toBe('none');
    expect(await code([], { out: '' })).toBe('USAGE');
    expect(await code(['other'], {})).toBe('MANIFEST_NOT_FOUND');
    expect(command.options.map((option) => option.flags)).toEqual(['--format <format>', '--out <file>']);
  });
});
