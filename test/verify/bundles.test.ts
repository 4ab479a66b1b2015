import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { digestOf } from '../../src/core/digest.js';
import { filesBelow, type Loose, LooseBundle } from '../support/loose-bundle.js';
import { makeSmallBook } from '../support/small-book.js';
import { call, hasPython, NO_PYTHON, python, VERIFIER } from './python.js';

interface Document {
  readonly verdict: string;
  readonly bundle: string;
  readonly coverage: unknown;
  readonly bounds: readonly { of: string; lower: string; upper: string }[] | null;
  readonly findings: readonly { code: string; place: string; message: string }[];
  readonly not_checked: readonly string[];
}

interface Run {
  readonly status: number;
  readonly said: string;
  readonly document: Document;
}

function verifyAll(paths: readonly string[]): Run[] {
  return call(paths.map((path) => ['verify', [path]] as const)).map((answer) => answer.value as Run);
}

const codes = (run: Run | undefined) => [...new Set(run?.document.findings.map(({ code }) => code))];

let root: string;
let bundle: string;
let tar: string;
let bundleDigest: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'boundbook-verify-'));
  await makeSmallBook(root);
  const made = await exportBundle(root, undefined, { out: 'bundle', tar: 'bundle.tar' });
  bundle = made.folder;
  bundleDigest = made.bundle;
  tar = made.tar?.file ?? '';
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A copy of the small bundle, edited and written again so that it is consistent in itself. */
function edited(name: string, edit: (loose: LooseBundle) => void, chained = true): string {
  const loose = LooseBundle.read(bundle);
  edit(loose);
  return loose.write(join(root, name), { chained });
}

/** A copy of the small bundle whose files are changed as they lie there, with an index that agrees. */
function broken(name: string, change: (folder: string) => void, indexed = true): string {
  const folder = join(root, name);
  cpSync(bundle, folder, { recursive: true });
  change(folder);
  if (indexed) relist(folder);
  return folder;
}

const stage = (kind: string) => (entry: { result: { kind: string } }) => entry.result.kind === kind;
const failedOnce = (loose: LooseBundle) =>
  loose.find('attempt.started', ({ kind }) => kind === 'replacement');

describe.skipIf(!hasPython)(`second verifier: bundles (${NO_PYTHON})`, () => {
  it('finds nothing in what export makes, as a folder and as a tar', () => {
    const [folder, packed] = verifyAll([bundle, tar]);
    expect(folder).toMatchObject({
      status: 0,
      document: { verdict: 'clean', bundle: bundleDigest, findings: [] },
    });
    expect(packed?.document).toEqual(folder?.document);
    expect(folder?.document.coverage).toEqual([
      {
        queue: 'main',
        role: 'confirmatory',
        tasks: 2,
        reps: 2,
        evaluation_seeds: [0],
        planned: 8,
        settled: 6,
        unresolved: 2,
        pending: 0,
      },
      {
        queue: 'wide',
        role: 'exploratory',
        tasks: 3,
        reps: 1,
        evaluation_seeds: [0],
        planned: 3,
        settled: 3,
        unresolved: 0,
        pending: 0,
      },
    ]);
    const report = JSON.parse(readFileSync(join(bundle, 'report/report.json'), 'utf8')) as {
      results: {
        contrasts: {
          minuend: string;
          subtrahend: string;
          bound: { lower: { exact: string }; upper: { exact: string } };
        }[];
      }[];
    };
    const contrast = report.results[0]?.contrasts[0];
    expect(folder?.document.bounds).toContainEqual({
      of: `main, ${contrast?.minuend} − ${contrast?.subtrahend}`,
      lower: contrast?.bound.lower.exact,
      upper: contrast?.bound.upper.exact,
    });
  });

  it('shows no bound before unblinding', async () => {
    const blind = mkdtempSync(join(tmpdir(), 'boundbook-verify-'));
    try {
      await makeSmallBook(blind, { unblind: false });
      const { folder } = await exportBundle(blind, undefined, {
        out: 'bundle',
        beforeUnblinding: 'for a test',
      });
      expect(verifyAll([folder])[0]).toMatchObject({
        status: 0,
        document: { bounds: null, visibility: 'blinded' },
      });
    } finally {
      rmSync(blind, { recursive: true, force: true });
    }
  });

  it('says what redaction keeps it from checking', async () => {
    const { folder } = await exportBundle(root, undefined, {
      out: 'redacted',
      redact: { tasks: true, answers: true, digests: [] },
    });
    const [run] = verifyAll([folder]);
    expect(run).toMatchObject({ status: 0, document: { findings: [] } });
    expect(run?.document.not_checked.filter((line) => line.includes('redacted'))).toHaveLength(5);
  });

  it('finds what an insider edits', () => {
    const cases: readonly (readonly [code: string, edit: (loose: LooseBundle) => void])[] = [
      ['UNLAWFUL', (loose) => loose.remove((entry) => entry.attempt === failedOnce(loose).of)],
      ['UNLAWFUL', (loose) => set(loose.find('attempt.started'), { sampling_seed: 1 })],
      [
        'UNLAWFUL',
        (loose) =>
          set(
            loose.find('slot.settled', ({ value }) => value === 0),
            { value: 1 },
          ),
      ],
      ['UNLAWFUL', (loose) => set(loose.find('unblinded'), { settled: 11, unresolved: 0 })],
      [
        'UNLAWFUL',
        (loose) =>
          set(
            loose.find('slot.unresolved', ({ reason }) => reason === 'undetermined'),
            { reason: 'limit_reached' },
          ),
      ],
      ['UNLAWFUL', (loose) => set(loose.find('attribution.recorded'), { attribution: 'model' })],
      ['UNLAWFUL', (loose) => set(inner(loose.find('attempt.started'), 'key'), { rep: 2 })],
      ['UNLAWFUL', (loose) => loose.remove(({ type }) => type === 'gate.passed')],
      ['UNLAWFUL', (loose) => loose.insert(loose.entries.length, { ...loose.find('unblinded') })],
      ['UNLAWFUL', (loose) => loose.insert(loose.entries.length, { ...loose.find('slot.settled') })],
      ['REQUEST_DIFFERS', (loose) => set(loose.find('attempt.started'), { request: loose.keep('{}') })],
      [
        'CANDIDATE_DIFFERS',
        (loose) =>
          set(inner(loose.find('stage.finished', stage('candidate')), 'objects'), {
            response: loose.keep('{}'),
          }),
      ],
      [
        'ANSWER_DIFFERS',
        (loose) => set(loose.find('stage.finished', stage('candidate')), { finish_reason: 'length' }),
      ],
      [
        'REPORT_DIFFERS',
        (loose) =>
          set(inner(loose.find('stage.finished', stage('report')), 'result'), { report: loose.keep('{}') }),
      ],
      [
        'VALUE_DIFFERS',
        (loose) => set(inner(loose.find('stage.finished', stage('report')), 'result'), { value: 0.5 }),
      ],
      [
        'FAILURE_DIFFERS',
        (loose) =>
          set(inner(inner(loose.find('stage.finished', stage('failure')), 'result'), 'signals'), {
            embedded_status: 500,
          }),
      ],
      [
        'RECOVERY_UNFOUNDED',
        (loose) => set(inner(loose.find('attempt.recovered'), 'evidence'), { pid: 4242 }),
      ],
      [
        'MANIFEST_FOREIGN',
        (loose) => set(loose.find('ledger.opened'), { manifest: `sha256:${'0'.repeat(64)}` }),
      ],
      [
        'PLAN_DIFFERS',
        (loose) =>
          set(inner(loose.find('ledger.opened'), 'task_objects'), { 'tasks/all': loose.keep('{}\n') }),
      ],
      ['TIME_BEFORE_PLAN', (loose) => set(loose.find('ledger.opened'), { time: '2000-01-01T00:00:00.000Z' })],
      ['CHAIN_BROKEN', (loose) => set(loose.find('unblinded'), { time: '2000-01-01T00:00:00.000Z' })],
      ['CHAIN_BROKEN', (loose) => set(loose.find('slot.settled'), { surplus: 1 })],
      [
        'OBJECT_MISSING',
        (loose) => set(loose.find('attempt.started'), { request: `sha256:${'0'.repeat(64)}` }),
      ],
      ['REPORT_NUMBER', (loose) => replaceInReport(loose, '"settled":6', '"settled":7')],
      ['REPORT_FORM', (loose) => replaceInReport(loose, 'boundbook/report/1', 'boundbook/report/2')],
    ];
    const runs = verifyAll(cases.map(([code, edit], i) => edited(`${i}-${code}`, edit)));
    expect(runs.map(({ status }, i) => [i, status])).toEqual(cases.map((_, i) => [i, 4]));
    expect(
      cases.filter(([code], i) => !codes(runs[i]).includes(code)).map(([code], i) => [code, codes(runs[i])]),
    ).toEqual([]);
  });

  it('finds files that are altered, surplus or missing', () => {
    const pack = 'ledger/objects.pack';
    const entries = 'ledger/entries.jsonl';
    const zero = '0'.repeat(64);
    const cases: readonly (readonly [code: string, change: (folder: string) => void, indexed?: boolean])[] = [
      ['BUNDLE_INDEX', (folder) => appendFileSync(join(folder, 'report/report.txt'), ' '), false],
      ['BUNDLE_INDEX', (folder) => writeFileSync(join(folder, 'report/more.txt'), ''), false],
      ['BUNDLE_INDEX', (folder) => unlinkSync(join(folder, 'report/report.md')), false],
      ['BUNDLE_INDEX', (folder) => appendFileSync(join(folder, 'bundle.json'), '\n'), false],
      [
        'BUNDLE_INDEX',
        (folder) => replaceIn(join(folder, 'bundle.json'), '"redacted":0', '"redacted":1'),
        false,
      ],
      ['BUNDLE_INDEX', (folder) => replaceIn(join(folder, 'bundle.json'), '"size":', '"size":1'), false],
      ['BUNDLE_INVALID', (folder) => unlinkSync(join(folder, entries))],
      ['BUNDLE_FORM', (folder) => appendFileSync(join(folder, pack), 'x')],
      ['BUNDLE_FORM', (folder) => truncateSync(join(folder, pack), 1000)],
      ['BUNDLE_FORM', (folder) => unlinkSync(join(folder, pack))],
      ['BUNDLE_FORM', (folder) => appendFileSync(join(folder, entries), '\n')],
      ['BUNDLE_FORM', (folder) => truncateSync(join(folder, entries), sizeOf(join(folder, entries)) - 1)],
      ['BUNDLE_FORM', (folder) => writeFileSync(join(folder, 'ledger/task-ids.json'), '{"all":["sum-1"]}')],
      ['BUNDLE_COPY', (folder) => copyFileSync(join(folder, entries), join(folder, 'ledger/ledger.sqlite'))],
      ['BUNDLE_COPY', (folder) => unlinkSync(join(folder, 'ledger/ledger.sqlite'))],
      ['OBJECT_ALTERED', (folder) => replaceIn(join(folder, pack), '5+7=', '5+8=')],
      ['OBJECT_ORPHAN', (folder) => appendFileSync(join(folder, pack), `${zero} redacted 0 ${zero}\n`)],
      ['CHAIN_BROKEN', (folder) => replaceIn(join(folder, entries), '"seq":5', '"seq":6')],
      ['LEDGER_DAMAGED', (folder) => writeFileSync(join(folder, entries), '')],
      ['BUNDLE_FILE', (folder) => writeFileSync(join(folder, 'unknown.txt'), '')],
      ['BUNDLE_FILE', (folder) => writeFileSync(join(folder, 'report/REPORT.txt'), '')],
      ['BUNDLE_FILE', (folder) => mkdirSync(join(folder, 'manifests/below/more'), { recursive: true })],
      ['BUNDLE_FILE', (folder) => symlinkSync('/etc/passwd', join(folder, 'report/link.txt')), false],
      ['BUNDLE_FILE', (folder) => execFileSync('mkfifo', [join(folder, 'report/pipe.txt')]), false],
      ['BUNDLE_FILE', (folder) => replaceByLink(join(folder, entries)), false],
      ['MANIFEST_ALTERED', (folder) => renameManifest(folder)],
      ['MANIFEST_MISSING', (folder) => renameManifest(folder)],
      ['PREDECESSOR_DIFFERS', (folder) => addPredecessor(folder)],
      ['CHECKPOINT_DIFFERS', (folder) => put(join(folder, 'checkpoints/3.note'), 'no note')],
      [
        'ATTESTATION_INVALID',
        (folder) => put(join(folder, `attestations/${zero.slice(48)}.00000000.dsse.json`), '{}'),
      ],
      [
        'LEDGER_SHORTENED',
        (folder) => replaceIn(join(folder, 'report/report.json'), '"entries":', '"entries":9'),
      ],
    ];
    const runs = verifyAll(cases.map(([, change, indexed], i) => broken(`file-${i}`, change, indexed)));
    expect(runs.map(({ status }, i) => [i, status])).toEqual(cases.map((_, i) => [i, 4]));
    const missed = cases.flatMap(([code], i) =>
      codes(runs[i]).includes(code) ? [] : [[code, codes(runs[i])]],
    );
    expect(missed).toEqual([]);
  });

  it('finds a tar that is cut short, holds something twice, a link or a way out', () => {
    const make = (name: string, members: readonly string[], options: readonly string[] = []) => {
      const file = join(root, `${name}.tar`);
      execFileSync('tar', ['--format=ustar', ...options, '-cf', file, '-C', root, ...members]);
      return file;
    };
    const cut = join(root, 'cut.tar');
    writeFileSync(cut, readFileSync(tar).subarray(0, 20_000));
    const trailing = join(root, 'trailing.tar');
    writeFileSync(trailing, Buffer.concat([readFileSync(tar), Buffer.from('more')]));
    const linked = broken(
      'linked',
      (folder) => symlinkSync('report.txt', join(folder, 'report/link.txt')),
      false,
    );
    const runs = verifyAll([
      make('twice', ['bundle', 'bundle/report/report.txt']),
      make('link', ['linked']),
      make('two-tops', ['bundle', 'tasks']),
      make('way-out', ['bundle'], ['--transform=s,report/report.md,report/../../x.md,']),
      trailing,
      cut,
    ]);
    expect(linked).toContain('linked');
    // what is cut before bundle.json (it comes first) would be no bundle at all
    expect(runs.map(({ status }) => status)).toEqual([4, 4, 4, 4, 4, 4]);
    expect(verifyAll([make('plain', ['bundle'])])[0]).toMatchObject({ status: 0 });
  });

  it('has an exit status for everything', () => {
    const empty = join(root, 'empty');
    mkdirSync(empty);
    writeFileSync(join(root, 'text.tar'), 'text'.repeat(1000));
    const usage: readonly (readonly string[])[] = [
      [],
      [bundle, bundle],
      [bundle, '--what'],
      [bundle, '--key', 'nonsense'],
      [bundle, '--key'],
      [join(root, 'nowhere')],
      [join(root, 'text.tar')],
    ];
    const answers = call(usage.map((args) => ['verify', args] as const)).map((answer) => answer.value as Run);
    expect(answers.map(({ status }) => status)).toEqual(usage.map(() => 2));
    expect(
      answers.every(({ said }) => said.startsWith('boundbook_verify: ') && said.split('\n').length === 2),
    ).toBe(true);
    expect(verifyAll([empty])[0]).toMatchObject({
      status: 4,
      document: { findings: [{ code: 'BUNDLE_INVALID' }] },
    });
    const run = python([VERIFIER, bundle]);
    expect(run).toMatchObject({ status: 0, stderr: '' });
    expect(run.stdout).toMatch(/^verdict {4}clean\n/);
    expect(
      python([VERIFIER, broken('text', (folder) => appendFileSync(join(folder, 'ledger/objects.pack'), 'x'))])
        .status,
    ).toBe(4);
  });

  it('finds every flipped byte of entries, objects and manifest, and never breaks', () => {
    const paths = filesBelow(bundle).filter((path) => /^(ledger\/(entries|objects)|manifests)/.test(path));
    const flips = paths.flatMap((path) => {
      const length = readFileSync(join(bundle, path)).length;
      return Array.from(
        { length: 33 },
        (_, i) => [path, Math.floor(((i * 7919 + 13) % 2500) * (length / 2500))] as const,
      );
    });
    const folders = flips.map(([path, at], i) =>
      broken(`flip-${i}`, (folder) => {
        const bytes = readFileSync(join(folder, path));
        bytes[at] = (bytes[at] ?? 0) ^ (1 << (i % 8));
        writeFileSync(join(folder, path), bytes);
      }),
    );
    const runs = verifyAll(folders);
    const missed = runs.flatMap(({ status }, i) => (status === 4 ? [] : [[flips[i], status]]));
    expect(missed).toEqual([]);
    expect(runs).toHaveLength(99);
    const entries = runs.filter((_, i) => flips[i]?.[0] === 'ledger/entries.jsonl');
    expect(entries.filter((run) => !codes(run).includes('CHAIN_BROKEN'))).toEqual([]);
  });
});

/** Makes the list of files in the index agree with the files, and nothing else of it. */
function relist(folder: string): void {
  const file = join(folder, 'bundle.json');
  const index = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const paths = filesBelow(folder).filter((path) => path !== 'bundle.json');
  index.files = Object.fromEntries(
    paths.map((path) => {
      const bytes = readFileSync(join(folder, path));
      return [path, { digest: digestOf(bytes), size: bytes.length }];
    }),
  );
  writeFileSync(file, canonicalBytes(index));
}

function set(target: Record<string, unknown>, members: Record<string, unknown>): void {
  Object.assign(target, members);
}

function inner(entry: Record<string, unknown>, name: string): Loose {
  return entry[name] as Loose;
}

function replaceIn(file: string, from: string, to: string): void {
  const text = readFileSync(file, 'latin1');
  if (!text.includes(from)) throw new Error(`${file} does not hold ${from}`);
  writeFileSync(file, text.replace(from, to), 'latin1');
}

function replaceInReport(loose: LooseBundle, from: string, to: string): void {
  const text = loose.files.get('report/report.json')?.toString('utf8') ?? '';
  if (!text.includes(from)) throw new Error(`the report does not hold ${from}`);
  loose.files.set('report/report.json', Buffer.from(text.replace(from, to)));
}

function sizeOf(file: string): number {
  return readFileSync(file).length;
}

function put(file: string, content: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function addPredecessor(folder: string): void {
  cpSync(join(folder, 'ledger'), join(folder, 'predecessors', 'b'.repeat(32)), { recursive: true });
  unlinkSync(join(folder, 'predecessors', 'b'.repeat(32), 'ledger.sqlite'));
}

function replaceByLink(file: string): void {
  renameSync(file, `${file}.moved`);
  symlinkSync(`${file}.moved`, file);
}

function renameManifest(folder: string): void {
  const [file] = filesBelow(folder).filter((path) => path.startsWith('manifests/'));
  renameSync(join(folder, file ?? ''), join(folder, 'manifests/other.r1.000000000000.json'));
}
