import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Findings } from '../../src/audit/finding.js';
import { auditReports } from '../../src/audit/report-audit.js';
import { command as audit } from '../../src/commands/audit.js';
import { command as report } from '../../src/commands/report.js';
import type { Report } from '../../src/report/value.js';
import { newBook, newWorkspace, SLOTS, SlotScript, TASK_FILE } from '../ledger/support.js';

function context(root: string) {
  const { signal } = new AbortController();
  const now = () => '2026-12-01T00:00:00.000Z';
  return { root, json: false, terminal: false, progress: () => undefined, signal, force: signal, now };
}

function placeTasks(root: string): void {
  mkdirSync(join(root, 'tasks'), { recursive: true });
  writeFileSync(join(root, 'tasks/two.jsonl'), TASK_FILE);
}

describe('before the first run', () => {
  it('a report shows that all slots are pending', async () => {
    const { root } = await newWorkspace();
    placeTasks(root);
    const { json, text } = await report.run([], {}, context(root));
    const value = json as unknown as Report;
    expect(value.coverage.total).toEqual({ planned: 18, settled: 0, unresolved: 0, pending: 18 });
    // SHA-256 of nothing: the root of the empty tree (RFC 6962, 2.1)
    expect(value.ledger).toEqual({
      name: '',
      entries: 0,
      leaf: '',
      root: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    });
    expect(text).toContain('No ledger yet');
    expect(text).toMatch(/ledger +none yet/);
  });

  it('a report needs the bound task files', async () => {
    const { root } = await newWorkspace();
    await expect(report.run([], {}, context(root))).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    placeTasks(root);
    writeFileSync(join(root, 'tasks/two.jsonl'), TASK_FILE.replace('1', '2'));
    await expect(report.run([], {}, context(root))).rejects.toMatchObject({ code: 'FILE_CHANGED' });
  });

  it('such a report still agrees with the book after runs', async () => {
    const { root } = await newWorkspace();
    placeTasks(root);
    const { text } = await report.run([], { format: 'json' }, context(root));
    const { stored, book } = await newBook(SLOTS.map((slot) => new SlotScript(slot).whole(1)));
    const findings = new Findings();
    const [line] = auditReports([{ name: 'r.json', bytes: Buffer.from(text) }], {
      identified: stored,
      lineage: [],
      source: book.store,
      fold: book.fold,
      head: book.head(),
      findings,
    });
    expect(findings.list(true)).toEqual([]);
    expect(line).toContain('made before the first entry');
  });

  it('an audit says that nothing was run', async () => {
    const { root } = await newWorkspace();
    await expect(audit.run([], {}, context(root))).rejects.toMatchObject({
      code: 'LEDGER_NOT_FOUND',
      exitCode: 2,
      message: expect.stringContaining('nothing to audit yet'),
      hint: expect.stringContaining('Next: boundbook run'),
    });
    await expect(audit.run([], { ledger: 'elsewhere' }, context(root))).rejects.toMatchObject({
      code: 'LEDGER_NOT_FOUND',
      message: expect.stringContaining('there is no ledger at'),
    });
    rmSync(root, { recursive: true });
  });
});
