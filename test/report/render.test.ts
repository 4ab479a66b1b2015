import { describe, expect, it } from 'vitest';
import type { fromNumber } from '../../src/analysis/rational.js';
import { digestOf } from '../../src/core/digest.js';
import { visible } from '../../src/core/visible.js';
import type { Protocol } from '../../src/protocol/schema/protocol.js';
import { buildReport } from '../../src/report/build.js';
import { heading, list, paragraph, table } from '../../src/report/document.js';
import { escapeInline, renderMarkdown } from '../../src/report/markdown.js';
import { FORMATS, renderReport } from '../../src/report/render.js';
import type { ReportInput } from '../../src/report/report-input.js';
import { signed, sumText } from '../../src/report/scale.js';
import { displayWidth, renderText, TEXT_WIDTH } from '../../src/report/text.js';
import { complete, input, planned, protocol, settled, taskIds } from './fixture.js';

const CARRIED = {
  manifest: digestOf('r1'),
  ledger: 'a'.repeat(32),
  entries: 812,
  root: 'c'.repeat(64),
  settled: 60,
  unresolved: 2,
  attempts: 65,
  again: 3,
  dropped: 30,
};

const NOTED = {
  entry: 900,
  time: '2026-11-30T12:00:00.000Z',
  text: 'loop stopping was <switched> on',
  selector: { arm: ['M'], training_seed: ['42'] },
  slots: 24,
  slots_digest: digestOf('ids'),
  after_unblinding: false,
};

/** The fixture's plan as an amendment of one with a further training seed and arm. */
function revision(unblinded: boolean) {
  return {
    revision: 2,
    manifest: digestOf('manifest'),
    supersedes: digestOf('r1'),
    reason: 'the third node was lost',
    exposure: {
      slots_run: 95,
      settled: 92,
      unblinded,
      declared: unblinded ? 'the scores of M were shown' : null,
    },
    changes: {
      slots: { before: 300, after: 240 },
      dropped: [
        { kind: 'training_seed' as const, queue: 'main', name: 'M@7', slots: 12 },
        { kind: 'arm' as const, queue: 'wide', name: 'X', slots: 18 },
      ],
      added: [],
      analysis: { dropped: ['contrast M-X'], added: [], changed: unblinded ? ['decision better'] : [] },
      protocol: ['analysis', 'models', 'queues'],
      bindings: [],
    },
  };
}

/** Every eleventh slot unresolved, every seventeenth pending. */
function open(): ReportInput {
  return input({
    slots: complete().map((slot, i) =>
      i % 11 === 5
        ? { key: slot.key, state: 'unresolved' }
        : i % 17 === 3
          ? { key: slot.key, state: 'pending' }
          : slot,
    ),
  });
}

const cases = {
  settled: input(),
  open: open(),
  blinded: input({ unblinded: null }),
  narrower: input({ revisions: [revision(false)], carried: CARRIED }),
  'post-hoc': input({ revisions: [revision(true)], carried: CARRIED, noted: [NOTED] }),
} as const;

describe('golden reports', () => {
  for (const [name, given] of Object.entries(cases)) {
    for (const format of FORMATS) {
      it(`${name} as ${format}`, async () => {
        const rendered = renderReport(buildReport(given), format);
        expect(renderReport(buildReport(given), format)).toBe(rendered);
        const extension = { text: 'txt', markdown: 'md.txt', json: 'json.txt' }[format];
        await expect(`${rendered}\n`).toMatchFileSnapshot(`golden/${name}.${extension}`);
      });
    }
  }

  it('text keeps to the width, and no line ends in white space', () => {
    for (const given of Object.values(cases)) {
      for (const line of renderReport(buildReport(given), 'text').split('\n')) {
        expect(displayWidth(line)).toBeLessThanOrEqual(TEXT_WIDTH);
        expect(line).toBe(line.trimEnd());
      }
    }
  });

  it('a blinded text names no arm', () => {
    const text = renderReport(buildReport(input({ unblinded: null })), 'text');
    expect(text).not.toMatch(/\b(M|B|O|E|base)\b/);
    expect(text).not.toMatch(/estimate|lower|upper|interval over/);
  });

  it('an open contrast has no estimate in any form', () => {
    const report = buildReport(open());
    for (const format of ['text', 'markdown'] as const) {
      const sections = renderReport(report, format)
        .split(/Contrast (?=M-)/)
        .slice(1)
        .map((section) => section.split('Queue wide')[0] ?? '');
      expect(sections).toHaveLength(4);
      for (const section of sections) {
        expect(section).toContain('none while slots are unresolved or pending');
        expect(section).not.toMatch(/% interval|Standard error/);
      }
    }
  });
});

describe('hostile names', () => {
  const evil = [
    'a|b`c`<script>alert(1)</script>',
    '[x](javascript:alert(1)) *b* _i_ ~s~ $m$',
    '# h\u202egnp.exe\u200b\n- item',
    '&lt;b&gt; <!-- c --> http://evil.example www.evil.example',
    `${'長'.repeat(90)}\ud83d\ude00`,
  ] as const;
  const [minuend, subtrahend, queue, partition, contrastId] = evil;
  const model = { training_seeds: [1, 2], weights: 'w' };
  const plan: Protocol = {
    ...protocol,
    title: evil.join(' '),
    models: { [minuend]: model, [subtrahend]: model },
    arms: {
      [minuend]: { model: minuend, condition: 'default' },
      [subtrahend]: { model: subtrahend, condition: 'default' },
    },
    task_sets: { ...protocol.task_sets, [partition]: { file: 'x', id: 'id', count: 2 } },
    queues: { [queue]: { tasks: 'holdout', reps: 1, arms: [minuend, subtrahend], role: 'confirmatory' } },
    analysis: {
      ...protocol.analysis,
      scores: [{ id: evil[0], queue }],
      contrasts: [{ id: contrastId, minuend, subtrahend, queue, role: 'primary' }],
      tables: [{ id: evil[2], queue, partitions: [partition], role: 'secondary' }],
      decisions: [
        {
          id: evil[1],
          contrast: contrastId,
          comparator: '>',
          threshold: 0,
          when_met: evil[0],
          otherwise: evil[2],
        },
      ],
    },
  };
  const ids = new Map([...taskIds, [partition, ['t1', 't2']]]);
  const report = buildReport(
    input({
      protocol: plan,
      taskIds: ids,
      slots: planned(plan, ids).map((key) => settled(key, key.rep)),
      failures: [{ arm: minuend, stage: 'grade', cause: 'grader_fault', attribution: 'model', attempts: 1 }],
      generations: [{ arm: subtrahend, finish_reason: 'length', generations: 1 }],
    }),
  );

  it('stay text in Markdown', () => {
    const markdown = renderReport(report, 'markdown');
    expect(markdown).not.toMatch(/<|(?<!\\)`|\u202e|\u200b|https?:\/\/|www\.e|(?<!\\)\[/);
    expect(markdown).not.toMatch(/^- item/m);
    // Every row of a table has as many cells as its head.
    const rows = markdown.split('\n').filter((line) => line.startsWith('|'));
    let width = 0;
    for (const [i, row] of rows.entries()) {
      const cells = row.split(/(?<!\\)\|/).length;
      if (/^\| :?-/.test(rows[i + 1] ?? '')) width = cells;
      expect(cells).toBe(width);
    }
  });

  it('stay on their line and inside the width in text', () => {
    const text = renderReport(report, 'text');
    expect(text).not.toMatch(/[\u202e\u200b]/);
    expect(text).not.toMatch(/^- item/m);
    for (const line of text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(TEXT_WIDTH);
  });
});

describe('rendering', () => {
  it('escapes what Markdown would read', () => {
    expect(escapeInline('a|b`c`*d*_e_[f]<g>&~h~$i$\\')).toBe(
      'a\\|b\\`c\\`\\*d\\*\\_e\\_\\[f\\]&lt;g&gt;&amp;\\~h\\~\\$i\\$\\\\',
    );
    const blocks = [paragraph('# no heading'), paragraph('1. no item'), ...list(['- no', '2) no'])];
    expect(renderMarkdown(blocks)).toBe('\\# no heading\n\n1\\. no item\n\n- \\- no\n- 2\\) no');
  });

  it('makes hidden characters visible', () => {
    expect(visible('a\u202eb\u0000c\u2028d\ud800')).toBe('a\\u{202e}b\\u{0}c\\u{2028}d\ufffd');
  });

  it('aligns numbers to the right and cuts long names', () => {
    const blocks = [
      heading(2, 'T'),
      ...table(
        ['name', '>n'],
        [
          ['x'.repeat(200), '1'],
          ['y', '12'],
        ],
      ),
    ];
    const lines = renderText(blocks).split('\n');
    expect(lines[3]).toBe(`name${' '.repeat(92)}   n`);
    expect(lines[5]).toBe(`${'x'.repeat(95)}…   1`);
    expect(lines[6]).toBe(`y${' '.repeat(95)}  12`);
  });

  it('wraps a word that is longer than a line', () => {
    const text = renderText([paragraph(`${'w'.repeat(250)} end`)]);
    expect(text.split('\n').map((line) => line.length)).toEqual([100, 100, 54]);
    expect(renderText([...table(['a'], [])])).toBe('');
  });

  it('prints plain rewards where they are no rates', () => {
    const condition = protocol.conditions.default;
    if (condition === undefined) throw new Error('no condition');
    const plan: Protocol = {
      ...protocol,
      conditions: { default: { ...condition, grader: { kind: 'report', reward: { min: -1, max: 2 } } } },
    };
    const slots = planned(plan).map((key) => settled(key, key.arm === 'M' ? 1.25 : -0.5));
    const text = renderReport(buildReport(input({ protocol: plan, slots })), 'text');
    expect(text).toContain('estimate       +1.7500');
    expect(text).toMatch(/\(SE\) in\s+reward/);
    expect(text).not.toContain('percentage points');
  });

  it('signs differences and not zero', () => {
    const scale = {
      unit: '',
      differenceUnit: '',
      text: (v: ReturnType<typeof fromNumber>) => `${Number(v.n) / Number(v.d)}`,
    };
    expect([signed(scale, 0.5), signed(scale, 0), signed(scale, -0.5)]).toEqual(['+0.5', '0', '-0.5']);
    expect(sumText({ exact: '7', value: 7 })).toBe('7');
    expect(sumText({ exact: '1/3', value: 1 / 3 })).toBe('0.3333');
  });

  it('JSON is its own digest', () => {
    const report = buildReport(input());
    const json = renderReport(report, 'json');
    expect(digestOf(json)).toBe(digestOf(renderReport(JSON.parse(json), 'json')));
  });
});
