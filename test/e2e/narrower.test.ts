import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { hasPython, NO_PYTHON, python, VERIFIER } from '../verify/python.js';
import { boundbook, copyOf, demoProtocol, demoWorkspace, document, done } from './place.js';

/**
 * P22 through the program that a user types, on real models: three training seeds are planned, one is run, then there is
 * time for two. Everything here is one story; the tests look at its states. Two arms, 40 tasks, one rep: 240 slots.
 */
const PROTOCOL = 'protocol/narrow.yaml';
const REASON = 'two training seeds: the third node was lost';
const THREE = '42, 314159, 271828';
const FORMATS = [
  ['report.txt', 'text'],
  ['report.md', 'markdown'],
  ['report.json', 'json'],
] as const;

interface Exposure {
  readonly slots_run: number;
  readonly settled: number;
  readonly unblinded: boolean;
  readonly bounds: Readonly<Record<string, unknown>>;
  readonly declared: string | null;
}

interface Amended {
  readonly manifest: string;
  readonly digest: string;
  readonly exposure: Exposure;
  readonly amendment: {
    readonly supersedes: string;
    readonly exposure: Exposure;
    readonly entry: { readonly type: string } | null;
    readonly closed_slots: { readonly carried: number; readonly again: number; readonly dropped: number };
  };
}

interface Report {
  readonly amendment: string | null;
  readonly demoted: readonly string[];
  readonly notes: readonly string[];
  readonly revisions: readonly { readonly revision: number; readonly reason: string }[];
  readonly coverage: { readonly total: { readonly planned: number; readonly settled: number } };
  readonly results: readonly { readonly decisions: readonly { readonly label: string }[] }[];
}

interface Audited {
  readonly checked: readonly string[];
  readonly findings: readonly { readonly code: string; readonly where: { readonly file?: string } }[];
}

function writeProtocol(folder: string, revision: number, seeds: string): void {
  const text = demoProtocol(folder, [
    [/name: demo\n/, 'name: narrow\n'],
    [/revision: 1\n/, `revision: ${revision}\n`],
    [/\[42, 314159, 271828\]/g, `[${seeds}]`],
    [/reps: 8/, 'reps: 1'],
    [/^ {2}broad100x2: .*\n/m, ''],
    [/arms: \[O, B, M, E, base\]/, 'arms: [M, O]'],
    [/^.*(queue: broad100x2|id: M-B|id: M-E|^ {2}tables:).*\n/gm, ''],
    [/contrast: M-B/, 'contrast: M-O'],
    [/role: secondary/, 'role: primary'],
    [/max_standard_error: 0.03/, 'max_standard_error: 0.08'],
  ]);
  writeFileSync(join(folder, PROTOCOL), text);
}

function amend(folder: string, revision: number, seeds: string, ...flags: string[]): Amended {
  writeProtocol(folder, revision, seeds);
  return document<Amended>(folder, 'amend', PROTOCOL, '--reason', REASON, ...flags);
}

/** Writes the plan's report in every format and gives their texts. */
function reports(folder: string, plan = 'narrow'): Readonly<Record<string, string>> {
  return Object.fromEntries(
    FORMATS.map(([file, format]) => {
      done(folder, 'report', plan, '--format', format, '--out', file);
      return [file, readFileSync(join(folder, file), 'utf8')];
    }),
  );
}

/** Makes a bundle with all three reports, and has both verifiers judge it. */
function judge(folder: string, out: string): void {
  const taken = FORMATS.flatMap(([file]) => ['--report', file]);
  done(folder, 'export', 'narrow', '--out', out, '--tar', `${out}.tar`, ...taken);
  expect(readdirSync(join(folder, out, 'report')).sort()).toEqual(FORMATS.map(([file]) => file).sort());
  const { findings, checked } = document<Audited>(folder, 'audit', `${out}.tar`);
  expect(findings).toEqual([]);
  for (const [file] of FORMATS) expect(checked.join('\n')).toContain(file);
  if (!hasPython) return;
  const { status, stdout } = python([VERIFIER, join(folder, `${out}.tar`), '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ verdict: 'clean', findings: [] });
  expect(status).toBe(0);
}

/** The audit with reports whose label was edited by whoever shows them. */
function expectLabelChecked(folder: string): void {
  const edits = [
    ['report.txt', /Post hoc report:/, 'Report:'],
    ['report.md', /^# Post hoc report/, '# Report'],
    ['report.json', /"amendment":"post hoc"/, '"amendment":"before unblinding"'],
  ] as const;
  for (const [file, from, to] of edits) {
    const text = readFileSync(join(folder, file), 'utf8');
    const edited = text.replace(from, to);
    expect(edited, file).not.toBe(text);
    writeFileSync(join(folder, `edited-${file}`), edited);
    const { findings } = document<Audited>(folder, 'audit', 'narrow', '--report', `edited-${file}`);
    expect(new Set(findings.map(({ code }) => code)), file).toEqual(new Set(['REPORT_NUMBER']));
  }
}

/** A rendered report as one line, without the marks that keep Markdown from being read into it. */
function unwrapped(text: string): string {
  return text.replaceAll('\\', '').replace(/\s+/g, ' ');
}

function expectPostHoc(folder: string): void {
  const { 'report.txt': text = '', 'report.md': markdown = '', 'report.json': json = '' } = reports(folder);
  for (const shown of [text, markdown]) {
    expect(shown.split('\n')[0]).toMatch(/^(# )?Post hoc report: /);
    expect(unwrapped(shown)).toContain('It confirms nothing: everything here is exploratory');
    expect(shown).toContain('exploratory now');
  }
  const report = JSON.parse(json) as Report;
  expect(report.amendment).toBe('post hoc');
  expect(report.demoted).toContain('post hoc');
  for (const { label } of report.results.flatMap(({ decisions }) => decisions))
    expect(label).toBe('exploratory');
  expectLabelChecked(folder);
}

/** Three seeds are planned, and one of them is run. */
let folder: string;
let frozen: { readonly manifest: string; readonly digest: string };
let manifest: Buffer;
let opened: string;

beforeAll(() => {
  folder = demoWorkspace('narrower');
  writeProtocol(folder, 1, THREE);
  frozen = document(folder, 'freeze', PROTOCOL);
  manifest = readFileSync(join(folder, frozen.manifest));
  done(folder, 'run', '--only', 'training_seed=42', '--workers', '8');
  opened = copyOf(folder, 'narrower-opened');
}, 900_000);

describe(`a narrower claim before unblinding (${hasPython ? 'both verifiers' : NO_PYTHON})`, () => {
  let amended: Amended;

  it('is refused with less exposure than the ledger shows, and nothing is written then', () => {
    writeProtocol(folder, 2, '42, 314159');
    const less = ['--declare-slots-run', '79', '--declare-settled', '0'];
    const refused = boundbook(folder, 'amend', PROTOCOL, '--reason', REASON, ...less);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('declared 79, the ledger shows 80');
    expect(refused.stderr).toContain('declared 0, the ledger shows 80');
    const written = readdirSync(join(folder, 'manifests')).filter((name) => name.endsWith('.json'));
    expect(written.map((name) => `manifests/${name}`)).toEqual([frozen.manifest]);
    expect(document(folder, 'status')).toMatchObject({ manifest: { digest: frozen.digest } });
  });

  it('takes its exposure from the ledger and seals it; the old revision stays', () => {
    amended = amend(folder, 2, '42, 314159', '--declare', 'the operator read a log of the third node');
    expect(amended.amendment).toMatchObject({
      supersedes: frozen.digest,
      exposure: {
        slots_run: 80,
        settled: 80,
        unblinded: false,
        bounds: {},
        declared: 'the operator read a log of the third node',
      },
      entry: { type: 'amended' },
      closed_slots: { carried: 80, again: 0, dropped: 0 },
    });
    expect(readFileSync(join(folder, frozen.manifest))).toEqual(manifest);
    const run = boundbook(folder, 'run', frozen.manifest);
    expect(run.code).toBe(3);
    expect(run.stderr).toContain('PLAN_SUPERSEDED');
    const early = boundbook(folder, 'unblind', frozen.manifest, '--partial');
    expect(early.code).toBe(2);
    expect(early.stderr).toContain('UNBLIND_TOO_EARLY');
  });

  it('runs the rest only: what was closed is carried', () => {
    const run = document<{ closed_now: number; slots: { pending: number } }>(folder, 'run', '--workers', '8');
    expect(run).toMatchObject({ closed_now: 80, slots: { pending: 0 } });
  });

  it('is reported as confirmatory, with its revision, its exposure and the plan that it superseded', () => {
    done(folder, 'unblind');
    const { 'report.txt': text = '', 'report.md': markdown = '', 'report.json': json = '' } = reports(folder);
    for (const shown of [unwrapped(text), unwrapped(markdown)]) {
      expect(shown).not.toMatch(/post hoc/i);
      expect(shown).not.toContain('exploratory now');
      expect(shown).toContain('its claim is narrower than the one that was frozen first');
      expect(shown).toContain(REASON);
      expect(shown).toContain('the operator read a log of the third node');
      expect(shown).toContain(frozen.digest);
      expect(shown).toContain('80 slots had run, 80 were settled, and outcomes were not open');
    }
    const report = JSON.parse(json) as Report;
    expect(report).toMatchObject({
      amendment: 'before unblinding',
      demoted: [],
      coverage: { total: { planned: 160, settled: 160 } },
      revisions: [
        {
          revision: 2,
          manifest: amended.digest,
          supersedes: frozen.digest,
          reason: REASON,
          exposure: { slots_run: 80, settled: 80, unblinded: false },
          changes: {
            slots: { before: 240, after: 160 },
            dropped: [
              { kind: 'training_seed', name: 'M@271828', slots: 40 },
              { kind: 'training_seed', name: 'O@271828', slots: 40 },
            ],
            added: [],
          },
        },
      ],
      carried: { manifest: frozen.digest, settled: 80, unresolved: 0 },
    });
    expect(report.results.flatMap(({ decisions }) => decisions)).toMatchObject([{ label: 'confirmatory' }]);
  });

  it('leaves a workspace and a bundle that both verifiers find clean, the old ledger in it', () => {
    expect(document<Audited>(folder, 'audit', 'narrow', '--report', 'report.txt').findings).toEqual([]);
    judge(folder, 'bundle');
    expect(readdirSync(join(folder, 'bundle/predecessors'))).toHaveLength(1);
    // Now that the plan in force is open, the old plan's outcomes may be seen, as those of a superseded plan.
    done(folder, 'unblind', frozen.manifest, '--partial');
    const old = document<Report>(folder, 'report', frozen.manifest);
    expect(old.demoted).toContain('superseded');
    expect(document<Audited>(folder, 'audit', frozen.manifest).findings).toEqual([]);
  }, 900_000);
});

describe('the same amendment after unblinding is post hoc in every report, and the audit checks the label', () => {
  it('when outcomes were opened in part, and everything after stays exploratory', () => {
    done(opened, 'unblind', '--partial');
    const amended = amend(opened, 2, '42, 314159');
    const { exposure } = amended.amendment;
    expect(exposure).toMatchObject({ slots_run: 80, settled: 80, unblinded: true });
    expect(Object.keys(exposure.bounds).sort()).toEqual([
      'contrast:M-O',
      'score:holdout40x8:M',
      'score:holdout40x8:O',
    ]);
    done(opened, 'run', '--workers', '8');
    done(opened, 'unblind');
    expectPostHoc(opened);
    judge(opened, 'bundle');
  }, 900_000);

  it('when they were opened completely, through a chain of revisions', () => {
    const amended = amend(folder, 3, '42');
    expect(amended.amendment).toMatchObject({
      exposure: { slots_run: 160, settled: 160, unblinded: true },
      closed_slots: { carried: 80, again: 0, dropped: 80 },
    });
    done(folder, 'run', '--limit', '0');
    done(folder, 'unblind');
    for (const [file] of FORMATS) renameSync(join(folder, file), join(folder, `kept-${file}`));
    expectPostHoc(folder);
    judge(folder, 'bundle-3');
    expect(readdirSync(join(folder, 'bundle-3/predecessors'))).toHaveLength(2);
    // A report that was made before stays one of a plan that was in force then.
    const kept = document<Audited>(folder, 'audit', amended.manifest, '--report', 'kept-report.json');
    expect(kept.findings.map(({ code }) => code)).toContain('REPORT_NUMBER');
  }, 900_000);
});
