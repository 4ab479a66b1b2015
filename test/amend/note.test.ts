import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { renderAudit } from '../../src/audit/render.js';
import { command as note } from '../../src/commands/note.js';
import { command as status } from '../../src/commands/status.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { openBook } from '../../src/ledger/book.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { expandSlots } from '../../src/slots/plan.js';
import { Insider } from '../audit/insider.js';
import { type Trial, trial } from '../runner/fixture.js';
import { invoke } from './support.js';

const HOSTILE = '<script>alert(1)</script>\n| table | \u001b[2J\u202ereversed\u2028 & more';

let plan: Trial;

beforeAll(async () => {
  plan = await trial({ prompts: { a: 'right a', b: 'wrong b' }, models: ['M', 'B'], reps: 2 });
  await plan.run();
});

async function render(format: 'text' | 'markdown'): Promise<string> {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    return renderReport(buildReport(bookInput(book)), format);
  } finally {
    book.close();
  }
}

describe('note', () => {
  it('records text, selector, count and the digest that sort and sha256sum give', async () => {
    const { json } = await invoke(note, plan.root, [], {
      text: '  the stop rule was switched on  ',
      slots: ['arm=M', 'task=b,a'],
    });
    const book = await openBook(plan.root, plan.stored, 'read');
    book.close();
    const ids = [...expandSlots(book.context.protocol, book.context.taskIds)]
      .filter(({ arm }) => arm === 'M')
      .map(({ id }) => `${id}\n`);
    const digest = `sha256:${createHash('sha256').update(ids.sort().join('')).digest('hex')}`;
    expect(json).toMatchObject({
      entry: {
        type: 'deviation.noted',
        text: 'the stop rule was switched on',
        selector: { arm: ['M'], task: ['a', 'b'] },
        slots: { count: 4, digest },
      },
      after_unblinding: false,
    });
  });

  it('takes all slots by that word', async () => {
    const { json, text } = await invoke(note, plan.root, [], { text: HOSTILE, slots: ['all'] });
    expect(json).toMatchObject({ entry: { selector: {}, slots: { count: 8 } } });
    expect(text).toContain('8 of 8');
    expect(text).toContain('\\u{1b}');
    expect(text).not.toContain('\u001b');
  });

  it.each([
    ['an unknown field', { text: 'x', slots: ['colour=red'] }, 'USAGE'],
    ['a value that is not planned', { text: 'x', slots: ['arm=Z'] }, 'SLOT_NOT_PLANNED'],
    [
      'filters that no slot passes together',
      { text: 'x', slots: ['arm=M', `slot=${'0'.repeat(32)}`] },
      'SLOT_NOT_PLANNED',
    ],
    ['a blank text', { text: ' \n ', slots: ['all'] }, 'USAGE'],
    ['a text without end', { text: 'x'.repeat(4001), slots: ['all'] }, 'USAGE'],
    ['more values than an entry holds', { text: 'x', slots: [`task=${'y'.repeat(40_000)}`] }, 'USAGE'],
  ])('refuses %s, and records nothing', async (_, options, code) => {
    const before = (await plan.entries()).length;
    await expect(invoke(note, plan.root, [], options)).rejects.toMatchObject({ code });
    expect((await plan.entries()).length).toBe(before);
  });

  it('refuses before the first run', async () => {
    const fresh = await trial({ prompts: { a: 'right a' } });
    await expect(invoke(note, fresh.root, [], { text: 'x', slots: ['all'] })).rejects.toMatchObject({
      code: 'LEDGER_NOT_FOUND',
    });
  });
});

describe('what was noted', () => {
  it('stands in status, report and audit, and hostile text is only text there', async () => {
    const { text, json } = await invoke(status, plan.root);
    expect(json).toMatchObject({ ledger: { noted: [{ slots: { count: 4 } }, { text: HOSTILE }] } });
    expect(text).toContain('noted       the stop rule was switched on');
    const shown = await render('text');
    expect(shown).toContain('Deviations noted in mid-run');
    expect(shown).toMatch(/the stop rule was switched on \(4 slots: arm=M task=a,b; entry \d+,/);
    expect(shown).toContain('before any unblinding');
    const markdown = await render('markdown');
    expect(markdown).toContain('&lt;script&gt;');
    expect(markdown).not.toContain('<script>');
    const audited = await audit(plan.root, undefined);
    expect(audited.findings).toEqual([]);
    expect(audited.remarks.filter((line) => line.startsWith('deviation noted'))).toHaveLength(2);
    for (const output of [text, shown, markdown, renderAudit(audited)]) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come through
      expect(output).not.toMatch(/[\u001b\u202e\u2028]/);
      expect(output).not.toContain('\n| table');
    }
  });

  it('is held against its selector by the audit', async () => {
    const edits: readonly ((entry: Record<string, unknown>) => void)[] = [
      (entry) => Object.assign(entry, { slots: { ...(entry.slots as object), count: 3 } }),
      (entry) => Object.assign(entry, { selector: { arm: ['B'] } }),
      (entry) => Object.assign(entry, { selector: { colour: ['red'] } }),
    ];
    for (const edit of edits) {
      const insider = new Insider(plan);
      edit(insider.find('deviation.noted'));
      insider.rechain();
      const { findings } = await audit(insider.root, undefined);
      expect(findings).toMatchObject([{ code: 'DEVIATION_DIFFERS', clause: 'B9' }]);
    }
  });

  it('after unblinding is marked so', async () => {
    await invoke(unblind, plan.root);
    const { json, text } = await invoke(note, plan.root, [], { text: 'seen too late', slots: ['arm=B'] });
    expect(json).toMatchObject({ after_unblinding: true });
    expect(text).toContain('after outcomes were unblinded');
    expect(await render('text')).toMatch(
      /seen too late \(4 slots: arm=B; .*after outcomes were unblinded\)/s,
    );
    expect((await audit(plan.root, undefined)).findings).toEqual([]);
  });
});
