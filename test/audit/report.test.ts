import { beforeAll, expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { canonicalText } from '../../src/core/canonical-json.js';
import type { JsonValue } from '../../src/core/json.js';
import { openBook } from '../../src/ledger/book.js';
import { unblind } from '../../src/ledger/unblind.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { FORMATS, type Format, renderReport } from '../../src/report/render.js';
import { type Trial, trial } from '../runner/fixture.js';
import { Insider } from './insider.js';

let plan: Trial;
let blinded: Map<Format, string>;
let report: Map<Format, string>;

beforeAll(async () => {
  plan = await trial({
    prompts: { right: 'right a', wrong: 'wrong b', unclear: 'html c' },
    models: ['M', 'B'],
    reps: 2,
  });
  await plan.run({ workers: 4 });
  blinded = await reports();
  const book = await openBook(plan.root, plan.stored, 'write', () => new Date().toISOString());
  unblind(book, false);
  book.close();
  report = await reports();
});

async function reports(): Promise<Map<Format, string>> {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    const value = buildReport(bookInput(book));
    return new Map(FORMATS.map((format) => [format, renderReport(value, format)]));
  } finally {
    book.close();
  }
}

function check(text: string, root = plan.root) {
  return audit(root, undefined, { report: { name: 'r', bytes: Buffer.from(text) } });
}

/** Every number in a JSON value, by pointer, with the value in which it is one more. */
function* numbersChanged(value: JsonValue, pointer = ''): Generator<{ pointer: string; value: JsonValue }> {
  if (typeof value === 'number') yield { pointer, value: value + 1 };
  else if (Array.isArray(value)) {
    for (const [i, item] of (value as JsonValue[]).entries()) {
      for (const changed of numbersChanged(item, `${pointer}/${i}`)) {
        yield { pointer: changed.pointer, value: (value as JsonValue[]).with(i, changed.value) };
      }
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      for (const changed of numbersChanged(
        item as JsonValue,
        `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      )) {
        yield { pointer: changed.pointer, value: { ...value, [key]: changed.value } };
      }
    }
  }
}

test('every single number of a report, changed by one, is found and named by its pointer (B11)', async () => {
  const value = JSON.parse(report.get('json') ?? '') as JsonValue;
  const all = [...numbersChanged(value)];
  expect(all.length).toBeGreaterThan(60);
  for (const { pointer, value: changed } of all.filter((_, i) => i % 4 === 0)) {
    const { findings } = await check(canonicalText(changed));
    if (pointer === '/ledger/entries') {
      expect(findings.map(({ code }) => code)).toContain('LEDGER_SHORTENED');
    } else {
      expect(findings.map(({ code, where }) => [code, where.pointer])).toEqual([['REPORT_NUMBER', pointer]]);
    }
  }
}, 120_000);

test('several changes are all listed, with what the book gives', async () => {
  const value = JSON.parse(report.get('json') ?? '') as { coverage: { total: object }; title?: string };
  const changed = {
    ...value,
    extra: 1,
    coverage: { ...value.coverage, total: { ...value.coverage.total, settled: 99 } },
  };
  const { findings } = await check(canonicalText(changed));
  expect(findings.map(({ where }) => where.pointer).sort()).toEqual(['/coverage/total/settled', '/extra']);
  expect(findings.find(({ where }) => where.pointer === '/coverage/total/settled')?.evidence).toEqual({
    expected: 8,
    actual: 99,
  });
});

test.each(['text', 'markdown'] as const)('a changed line of %s is named', async (format) => {
  const lines = (report.get(format) ?? '').split('\n');
  const at = lines.findIndex((line) => /\d/.test(line));
  lines[at] = (lines[at] ?? '').replace(/\d/, (digit) => String((Number(digit) + 1) % 10));
  const { findings } = await check(lines.join('\n'));
  expect(findings.map(({ code, where }) => [code, where.pointer])).toEqual([
    ['REPORT_NUMBER', `line ${at + 1}`],
  ]);
});

test('a report that was made before unblinding stays right; one with outcomes before it does not, and shows none', async () => {
  expect((await check(blinded.get('json') ?? '')).findings).toEqual([]);
  const insider = new Insider(plan);
  insider.remove(({ type }) => type === 'unblinded');
  insider.rechain();
  const { findings } = await check(report.get('json') ?? '', insider.root);
  expect(findings.length).toBeGreaterThan(0);
  for (const { message, evidence } of findings.filter(({ code }) => code === 'REPORT_NUMBER')) {
    expect(message).toContain('withheld');
    expect(evidence).toBeNull();
  }
});

test('what is no report is a finding, not an exception', async () => {
  for (const text of [
    '',
    '{',
    '[]',
    '{"a":1,"a":2}',
    '\ufeff{}',
    'hello',
    '{"ledger":{"entries":-1}}',
    '{"ledger":7}',
  ]) {
    const { findings, verdict } = await check(text);
    expect(verdict, text).toBe('findings');
    expect(
      findings.every(({ code }) => code.startsWith('REPORT_')),
      text,
    ).toBe(true);
  }
  const { findings } = await audit(plan.root, undefined, {
    report: { name: 'r', bytes: Buffer.from([0xff, 0xfe]) },
  });
  expect(findings.map(({ code }) => code)).toEqual(['REPORT_FORM']);
});
