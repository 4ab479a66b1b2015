import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { renderAudit } from '../../src/audit/render.js';
import { toJson } from '../../src/audit/result.js';
import { canonicalText } from '../../src/core/canonical-json.js';
import { openBook } from '../../src/ledger/book.js';
import { unblind } from '../../src/ledger/unblind.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { FORMATS, renderReport } from '../../src/report/render.js';
import { type Trial, trial } from '../runner/fixture.js';

/** Every way in which the stub server answers, at once. */
const MODES = [
  ...[
    'right',
    'wrong',
    'later',
    'length',
    'surrogate',
    'html',
    'error-200',
    'error-200-text',
    'empty',
    'null',
  ],
  ...['nobody', 'nan', 'wrong-type', 'two', 'aborted', 'no-end', 'huge', 'mid-body', 'bad-chunk'],
  ...['bad-status', 'reset', 'reset-once', 'busy-twice', '500', 'redirect', 'context', 'slow'],
];

let plan: Trial;

test('a real run over every misbehaviour of a server has no finding', async () => {
  plan = await trial({ prompts: Object.fromEntries(MODES.map((mode) => [`t-${mode}`, `${mode} ${mode}`])) });
  await plan.run({ workers: MODES.length });
  const result = await audit(plan.root, undefined);
  expect(result.findings).toEqual([]);
  expect(result.verdict).toBe('clean');
  const entries = await plan.entries();
  expect(result.ledger.head.size).toBe(entries.length);
  expect(result.coverage?.[0]).toMatchObject({ planned: MODES.length, pending: 0, open: 0 });
  expect(result.order[0]).toContain(plan.stored.digest);
});

test('the head is the one that the store computes', async () => {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    expect((await audit(plan.root, undefined)).ledger.head).toEqual(book.store.head());
    const { size, leaf, root } = book.store.head();
    for (const hash of [leaf ?? '', root]) {
      expect((await audit(plan.root, undefined, { head: { size, hash } })).verdict).toBe('clean');
    }
  } finally {
    book.close();
  }
});

test('the same files give the same bytes (law 10)', async () => {
  const [a, b] = [await audit(plan.root, undefined), await audit(plan.root, undefined)];
  expect(canonicalText(toJson(a))).toBe(canonicalText(toJson(b)));
  expect(renderAudit(a)).toBe(renderAudit(b));
});

test('reports of every form are rebuilt, blinded and unblinded, of now and of earlier', async () => {
  const blinded = await reports();
  for (const { format, bytes } of blinded) {
    const result = await audit(plan.root, undefined, { report: { name: format, bytes } });
    expect(result.findings, format).toEqual([]);
    expect(result.checked.at(-1)).toContain(format);
  }
  const book = await openBook(plan.root, plan.stored, 'write', () => new Date().toISOString());
  unblind(book, false);
  book.close();
  for (const { format, bytes } of await reports()) {
    const result = await audit(plan.root, undefined, { report: { name: format, bytes } });
    expect(result.findings, format).toEqual([]);
  }
  // JSON says after how many entries it was made, and stays right for ever.
  const earlier = blinded.find(({ format }) => format === 'json');
  const result = await audit(plan.root, undefined, {
    report: { name: 'earlier', bytes: earlier?.bytes ?? Buffer.of() },
  });
  expect(result.findings).toEqual([]);
  const pretty = Buffer.from(`${JSON.stringify(JSON.parse(String(earlier?.bytes)), null, 2)}\n`);
  const other = await audit(plan.root, undefined, { report: { name: 'pretty', bytes: pretty } });
  expect(other.findings).toEqual([]);
  expect(other.checked.at(-1)).toContain('value by value');
});

test('what was not checked is said (law 11)', async () => {
  const text = renderAudit(await audit(plan.root, undefined));
  for (const limit of ['weights', 'rewritten as a whole', 'clocks', 'labels', 'any report']) {
    expect(text).toContain(limit);
  }
});

test('a command runner, whose reports cannot be computed again, has no finding', async () => {
  const prompts = [
    'good one',
    'good zero',
    'good half',
    'good above',
    'good other-candidate',
    'plants silent',
    'none',
  ];
  const commands = await trial({
    prompts: Object.fromEntries(prompts.map((prompt, i) => [`t-${i}`, prompt])),
    runner: RUNNER,
    grader: '{ kind: report, reward: { min: 0, max: 1 } }',
    attempts: ATTEMPTS,
  });
  await commands.run({ workers: 4 });
  const result = await audit(commands.root, undefined);
  expect(result.findings).toEqual([]);
  expect((await commands.of('attempt.started')).some(({ kind }) => kind === 'regrade')).toBe(true);
});

const RUNNER = `
  adapter: command
  generate:
    argv: [node, runner/command-generate.mjs, "{request}", "{output}"]
    wall_s: 5
    output_bytes: 100000
  grade:
    argv: [node, runner/command-grade.mjs, "{request}", "{candidate}", "{output}"]
    wall_s: 5
    output_bytes: 1000
  grace_s: 0.3
  candidate: answer.txt
  gpus: 0
  sources: { runner: runner }`;

const ATTEMPTS = `{ replacements: 1, regrades: 1, breaker: 50, rules: [
    { id: grader-silent, when: { stage: grade, cause: report_missing, exit_status: 0 }, attribute: infrastructure, sufficient: true } ] }`;

async function reports(): Promise<{ format: string; bytes: Buffer }[]> {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    const report = buildReport(bookInput(book));
    return FORMATS.map((format) => {
      const bytes = Buffer.from(renderReport(report, format));
      writeFileSync(join(plan.root, `report.${format}`), bytes);
      return { format, bytes };
    });
  } finally {
    book.close();
  }
}
