import { canonicalBytes } from '../../../../src/core/canonical-json.js';
import { digestOf } from '../../../../src/core/digest.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { at, type Case, dropReports, resultOf } from '../case.js';

const REGRADING = 'c'.repeat(32);

const SIGNALS = {
  stage: 'grade',
  phase: 'collect',
  cause: 'report_missing',
  http_status: null,
  embedded_status: null,
  exit_status: 0,
  signal: null,
  service_alive: null,
  exception: null,
  text: 'no file report.json',
};

const GRADER = {
  kind: 'report',
  expected_tests: 'tests',
  reward: { min: 0, max: 1 },
  grade: { argv: ['node', 'fixed/grade.mjs', '{candidate}', '{output}'], wall_s: 60, output_bytes: 4 },
  grace_s: 1,
  sources: { fixed: 'fixed' },
};

const SOURCES = {
  fixed: { kind: 'tree', files: 2, size: 321, digest: digestOf(Buffer.from('the files of the grader')) },
};

const PROCESS = { boot_id: 'boot-3', pid: 300, started: '3000' };

/** Outputs graded again with a corrected grade command (B6). In each, the last output has no report. */
export const COMMAND_REGRADINGS: readonly Case[] = [
  on(
    'regraded-by-command',
    'a corrected command changes one grade and gives one output no report',
    regrading,
  ),
  on('regraded-by-command-resumed', 'another process went on with it', (bundle) => {
    regrading(bundle);
    resume(bundle);
  }),
  on(
    'regraded-by-command-with-a-schema',
    'its schema lies in the ledger, and what it wrote is kept',
    (bundle) => {
      regrading(bundle);
      const schema = bundle.keep('{"type":"object","required":["reward"]}');
      withGrader(bundle, { ...GRADER, report_schema: 'schemas/fixed.json' }, { schema });
      last(bundle).stage = {
        ...(last(bundle).stage as object),
        objects: { stdout: bundle.keep('says'), stderr: bundle.keep('no') },
      };
    },
  ),
  on('regraded-by-command-rejected', 'a report that is not valid is kept and is no grade', (bundle) => {
    regrading(bundle);
    reject(bundle, (report) => ({ ...report, reward: 7 }));
  }),
  on(
    'regraded-by-command-a-valid-report-rejected_fail',
    'B6: a valid report is called a failure',
    (bundle) => {
      regrading(bundle);
      reject(bundle, (report) => report);
    },
  ),
  on('regraded-by-command-value-raised_fail', 'B6: another value than that of the report', (bundle) => {
    regrading(bundle);
    graded(bundle).value = 0.75;
  }),
  on('regraded-by-command-report-of-another_fail', 'B6: the report of another output', (bundle) => {
    regrading(bundle);
    const [first, second] = recorded(bundle);
    const { report, value } = (second?.result ?? {}) as { report: string; value: number };
    Object.assign((first?.result ?? {}) as object, { report, value });
  }),
  on(
    'regraded-by-command-of-fewer-tests_fail',
    'B6: a report covers exactly the expected tests',
    (bundle) => {
      regrading(bundle, (report) => ({ ...report, tests: { adds: 'pass' }, reward: 1 }));
    },
  ),
  on('regraded-by-command-as-truncated_fail', 'B6: a command finds nothing too truncated', (bundle) => {
    regrading(bundle);
    last(bundle).result = { kind: 'truncated' };
    Object.assign(closed(bundle), { failed: 0, truncated: 1 });
  }),
  on('regraded-by-command-without-its-end_fail', 'B6: how the command ended is not said', (bundle) => {
    regrading(bundle);
    delete last(bundle).stage;
  }),
  on('regraded-by-command-miscounted_fail', 'B6: the end hides that an output has no report', (bundle) => {
    regrading(bundle);
    Object.assign(closed(bundle), { failed: 0, same: Number(closed(bundle).same) + 1 });
  }),
  on('regraded-by-command-uncounted_fail', 'B6: the end says nothing of failures', (bundle) => {
    regrading(bundle);
    delete closed(bundle).failed;
  }),
  on('regraded-by-command-of-no-files_fail', 'B6: the files of the grader are not named', (bundle) => {
    regrading(bundle);
    bundle.find('regrading.opened').command = { process: PROCESS, sources: {} };
  }),
  on('regraded-by-command-of-other-files_fail', 'B6: files that the grader does not name', (bundle) => {
    regrading(bundle);
    bundle.find('regrading.opened').command = { process: PROCESS, sources: { other: SOURCES.fixed } };
  }),
  on(
    'regraded-by-command-said-to-read_fail',
    'B6: a grader that reads answers is said to be a command',
    (bundle) => {
      regrading(bundle);
      withGrader(bundle, { kind: 'exact', answer: 'answer' }, {});
    },
  ),
  on('regraded-by-command-unsaid_fail', 'B6: that the grader is a command is not said', (bundle) => {
    regrading(bundle);
    delete bundle.find('regrading.opened').command;
  }),
  on('regraded-by-command-cut-too-early_fail', 'B6: more output was kept than the grader lets', (bundle) => {
    regrading(bundle);
    const capture = canonicalBytes({ streams: { stdout: { seen: 10, kept: 2 } } });
    last(bundle).stage = {
      ...(last(bundle).stage as object),
      objects: { stdout: bundle.keep('sa'), capture: bundle.keep(capture) },
    };
  }),
  on('regraded-by-command-resumed-when-closed_fail', 'B6: it went on after its end', (bundle) => {
    regrading(bundle);
    bundle.insert(bundle.entries.length, resumed());
  }),
  on(
    'regraded-by-command-one-twice_fail',
    'B6: after it went on, an output was graded once more',
    (bundle) => {
      regrading(bundle);
      resume(bundle);
      const again = recorded(bundle).slice(0, 1);
      bundle.insert(at(bundle, closed(bundle)), ...again.map((entry) => ({ ...entry })));
    },
  ),
];

function on(name: string, why: string, edit: (bundle: LooseBundle) => void): Case {
  return { name, why, base: 'command', edit };
}

function recorded(bundle: LooseBundle): Loose[] {
  return bundle.entries.filter(({ type }) => type === 'regrading.recorded');
}

function last(bundle: LooseBundle): Loose {
  const found = recorded(bundle).at(-1);
  if (found === undefined) throw new Error('nothing was regraded');
  return found;
}

function closed(bundle: LooseBundle): Loose {
  return bundle.find('regrading.closed');
}

function graded(bundle: LooseBundle): { value: number } {
  return recorded(bundle)[0]?.result as { value: number };
}

function resumed(): Loose {
  return { type: 'regrading.resumed', regrading: REGRADING, process: { ...PROCESS, pid: 301 } };
}

function resume(bundle: LooseBundle): void {
  bundle.insert(at(bundle, last(bundle)), resumed());
}

function withGrader(bundle: LooseBundle, grader: object, more: object): void {
  Object.assign(bundle.find('regrading.opened'), {
    grader: bundle.keep(canonicalBytes(grader)),
    command: { process: PROCESS, sources: SOURCES, ...more },
  });
}

/** The last output, which has no report, is given one that was not accepted. */
function reject(bundle: LooseBundle, change: (report: Record<string, unknown>) => object): void {
  const entry = last(bundle);
  const { report } = entry.before as { report: string };
  const bytes = canonicalBytes(change(JSON.parse(bundle.object(report).toString('utf8'))));
  entry.result = { kind: 'failed', signals: { ...SIGNALS, cause: 'report_invalid', text: 'the reward' } };
  entry.stage = { ...(entry.stage as object), objects: { rejected_report: bundle.keep(bytes) } };
}

/** All outputs graded again: the first half right where it was right, the others as before, the last without a report. */
function regrading(
  bundle: LooseBundle,
  change: (report: Record<string, unknown>) => object = (report) => ({
    ...report,
    tests: { adds: 'pass', carries: 'fail' },
    reward: 0.5,
  }),
): void {
  dropReports(bundle);
  const settled = bundle.entries.filter(
    ({ type, basis }) => type === 'slot.settled' && (basis as { kind: string }).kind === 'report',
  );
  const slots = settled.map(({ slot }) => String(slot)).sort();
  const entries = slots.map((slot, i): Loose => {
    const own = bundle.of(slot);
    const stage = own.filter((entry) => entry.type === 'stage.finished' && entry.stage === 'grade').at(-1);
    const end = own.find(({ type }) => type === 'slot.settled');
    if (stage === undefined || end === undefined) throw new Error(`${slot} did not settle`);
    const { candidate } = resultOf(stage);
    const { report } = end.basis as { report: string };
    const before = JSON.parse(bundle.object(report).toString('utf8')) as Record<string, unknown>;
    const now = i === 0 ? change(before) : before;
    const { reward } = now as { reward: number };
    return {
      type: 'regrading.recorded',
      regrading: REGRADING,
      slot,
      candidate,
      before: { value: end.value, report },
      result:
        i === slots.length - 1
          ? { kind: 'failed', signals: SIGNALS }
          : { kind: 'graded', value: reward, report: bundle.keep(canonicalBytes(now)) },
      stage: { objects: {}, finish_reason: 'exit 0', seconds: 0.25 },
    };
  });
  const count = slots.length;
  const digest = digestOf(Buffer.from(slots.map((slot) => `${slot}\n`).join('')));
  const kinds = entries.map(({ before, result }) => {
    const { kind, value } = result as { kind: string; value?: number };
    if (kind === 'failed') return 'failed';
    return value === (before as { value: number }).value ? 'same' : 'changed';
  });
  const tally = (kind: string): number => kinds.filter((one) => one === kind).length;
  bundle.insert(
    bundle.entries.length,
    {
      type: 'regrading.opened',
      regrading: REGRADING,
      grader: bundle.keep(canonicalBytes(GRADER)),
      conditions: ['default'],
      reason: 'carries was not counted',
      slots: { count, digest },
      command: { process: PROCESS, sources: SOURCES },
    },
    ...entries,
    {
      type: 'regrading.closed',
      regrading: REGRADING,
      changed: tally('changed'),
      same: tally('same'),
      truncated: 0,
      failed: tally('failed'),
    },
  );
}
