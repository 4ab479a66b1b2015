import { attemptId } from '../../../../src/attempts/slot-state.js';
import { canonicalBytes } from '../../../../src/core/canonical-json.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { at, type Case, copyOf, dropReports, entryOf, resultOf, slotAt, stageOf } from '../case.js';

/** Commands that make and grade, and reports of tests. The slots in order: see `COMMAND_LIVES` in bases.ts. */
export const COMMAND: readonly Case[] = [
  on(
    'command',
    'candidates by a command, reports of tests with rewards between 0 and 1, regrades',
    () => undefined,
  ),
  {
    ...on(
      'command-with-a-schema',
      'a schema of reports is bound and lies first in the pack',
      () => undefined,
    ),
    base: 'schema',
  },
  {
    ...on(
      'command-with-another-schema_fail',
      'the schema in the pack is not the one that is bound',
      (bundle) => {
        const [hex = ''] = bundle.ledger.schemas;
        bundle.ledger.objects.set(hex, Buffer.from('{}'));
      },
    ),
    base: 'schema',
  },
  {
    ...on(
      'command-with-a-redacted-schema_fail',
      'redaction takes tasks and answers, no schema of reports',
      (bundle) => {
        const [hex = ''] = bundle.ledger.schemas;
        bundle.ledger.objects.set(hex, `redacted 2 ${'4'.repeat(64)}`);
      },
    ),
    base: 'schema',
  },
  {
    ...on('command-without-its-schema_fail', 'the bound schema of reports is not in the pack', (bundle) => {
      bundle.ledger.schemas.pop();
    }),
    base: 'schema',
  },
  on('command-paths-of-the-host', 'where weights lie on the host is not part of the plan', (bundle) => {
    rerequest(bundle, 0, (request) => {
      (request.model as Record<string, unknown>).weights = '/elsewhere/M';
    });
  }),
  on('command-request-of-another-task_fail', 'the command was asked another task', (bundle) => {
    rerequest(bundle, 0, (request) => {
      (request.task as Record<string, unknown>).id = 'sum-9';
    });
  }),
  on('command-request-of-another-model_fail', 'the command was told another model', (bundle) => {
    rerequest(bundle, 0, (request) => {
      (request.model as Record<string, unknown>).name = 'base';
    });
  }),
  on('command-request-of-another-attempt_fail', 'the request names another attempt', (bundle) => {
    rerequest(bundle, 0, (request) => {
      request.attempt = attemptId(slotAt(bundle, 1), 1);
    });
  }),
  on('command-request-with-a-reward_fail', 'the command was told more than the plan says', (bundle) => {
    rerequest(bundle, 0, (request) => {
      request.reward = 1;
    });
  }),
  on('command-usage-invented_fail', 'a command counts no tokens', (bundle) => {
    stageOf(bundle, slotAt(bundle, 0), 'generate').usage = { prompt_tokens: 1, completion_tokens: 1 };
  }),
  on('command-end-in-other-words', 'how a process ended is free text', (bundle) => {
    stageOf(bundle, slotAt(bundle, 0), 'generate').finish_reason = 'SIGTERM';
  }),
  on('report-of-fewer-tests_fail', 'a report covers exactly the expected tests', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.tests = { adds: 'pass' };
      report.reward = 1;
    });
  }),
  on('report-of-more-tests_fail', 'a report covers exactly the expected tests', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.tests = { adds: 'pass', carries: 'fail', extra: 'pass' };
    });
  }),
  on('report-rewards-a-failed-test_fail', 'the highest reward although a test failed', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.reward = 1;
    });
  }),
  on(
    'report-gives-nothing-for-all-passed_fail',
    'less than the highest reward although all tests passed',
    (bundle) => {
      rereport(bundle, 0, (report) => {
        report.reward = 0.5;
      });
    },
  ),
  on(
    'report-rewards-nothing-passed_fail',
    'more than the lowest reward although no test passed',
    (bundle) => {
      rereport(bundle, 2, (report) => {
        report.reward = 0.25;
      });
    },
  ),
  on('report-with-another-share', 'between the ends the reward is the grader’s affair', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.reward = 0.7;
    });
  }),
  on('report-with-an-errored-test', 'error, skip and timeout are results, too', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.tests = { adds: 'pass', carries: 'timeout' };
    });
  }),
  on('report-with-an-unknown-result_fail', 'a result that is none', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.tests = { adds: 'pass', carries: 'maybe' };
    });
  }),
  on('report-beyond-the-range_fail', 'a reward above the declared range is not clipped', (bundle) => {
    rereport(bundle, 0, (report) => {
      report.reward = 2;
    });
  }),
  on('report-of-another-task_fail', 'the report is about another task', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.task = 'sum-9';
    });
  }),
  on('report-of-another-candidate_fail', 'the report is about another candidate', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.candidate = `sha256:${'3'.repeat(64)}`;
    });
  }),
  on('report-with-a-text-for-a-reward_fail', 'a reward is a number', (bundle) => {
    rereport(bundle, 1, (report) => {
      report.reward = '0.5';
    });
  }),
  on('report-breaks-strict-json_fail', 'a report with a key twice', (bundle) => {
    const stage = stageOf(bundle, slotAt(bundle, 1), 'grade');
    const text = bundle.object(resultOf(stage).report).toString('utf8');
    replaceReport(bundle, 1, Buffer.from(text.replace('{', '{"log":"a",')));
  }),
  on(
    'report-in-other-json',
    'a report is taken as the grader wrote it: spaces and order are free',
    (bundle) => {
      const stage = stageOf(bundle, slotAt(bundle, 1), 'grade');
      const value = JSON.parse(bundle.object(resultOf(stage).report).toString('utf8')) as object;
      replaceReport(bundle, 1, Buffer.from(JSON.stringify(value, null, 2)));
    },
  ),
  on(
    'regraded-with-another-candidate_fail',
    'P12: a regrade grades the candidate that was there',
    (bundle) => {
      const slot = slotAt(bundle, 3);
      const other = stageOf(bundle, slotAt(bundle, 0), 'generate');
      entryOf(bundle, slot, 'attempt.started', 1).candidate = resultOf(other).candidate;
    },
  ),
  on('regraded-with-a-new-request_fail', 'P12: nothing is generated again for a regrade', (bundle) => {
    const slot = slotAt(bundle, 3);
    entryOf(bundle, slot, 'attempt.started', 1).request = entryOf(bundle, slot, 'attempt.started').request;
  }),
  on('regraded-as-replacement_fail', 'P12: with a candidate there is no replacement', (bundle) => {
    const slot = slotAt(bundle, 3);
    Object.assign(entryOf(bundle, slot, 'attempt.started', 1), {
      kind: 'replacement',
      candidate: null,
      request: entryOf(bundle, slot, 'attempt.started').request,
    });
  }),
  on('regraded-twice_fail', 'P12: at most one regrade', (bundle) => {
    const slot = slotAt(bundle, 4);
    const unresolved = entryOf(bundle, slot, 'slot.unresolved');
    bundle.entries[at(bundle, unresolved)] = {
      ...copyOf(entryOf(bundle, slot, 'attempt.started', 1)),
      attempt: attemptId(slot, 3),
      of: attemptId(slot, 2),
      time: unresolved.time,
    };
  }),
  on(
    'rejected-report-kept',
    'the grader wrote what is no report: kept as evidence, its failure is undetermined',
    (bundle) => {
      reject(bundle, (report) => ({ ...report, reward: 'none' }));
    },
  ),
  on('rejected-report-is-valid_fail', 'law 3: the report that was thrown away is valid', (bundle) => {
    reject(bundle, (report) => report);
  }),
];

/** These keep their reports. */
const SOUND = ['command', 'command-with-a-schema'];

function on(name: string, why: string, edit: (bundle: LooseBundle) => void): Case {
  return {
    name,
    why,
    base: 'command',
    edit: (bundle) => {
      edit(bundle);
      if (!SOUND.includes(name)) dropReports(bundle);
    },
  };
}

/** Changes what the command of the n-th slot's first attempt was asked. */
function rerequest(bundle: LooseBundle, n: number, change: (request: Record<string, unknown>) => void): void {
  const start = entryOf(bundle, slotAt(bundle, n), 'attempt.started');
  const request = JSON.parse(bundle.object(start.request).toString('utf8')) as Record<string, unknown>;
  change(request);
  start.request = bundle.keep(canonicalBytes(request));
}

/** Changes the report of the n-th slot, and everything that follows from it. */
function rereport(bundle: LooseBundle, n: number, change: (report: Record<string, unknown>) => void): void {
  const stage = stageOf(bundle, slotAt(bundle, n), 'grade');
  const report = JSON.parse(bundle.object(resultOf(stage).report).toString('utf8')) as Record<
    string,
    unknown
  >;
  change(report);
  const { reward } = report;
  replaceReport(
    bundle,
    n,
    canonicalBytes(report),
    typeof reward === 'number' && reward <= 1 ? reward : undefined,
  );
}

function replaceReport(bundle: LooseBundle, n: number, bytes: Buffer, value?: number): void {
  const slot = slotAt(bundle, n);
  const result = resultOf(stageOf(bundle, slot, 'grade'));
  const settled = entryOf(bundle, slot, 'slot.settled');
  const report = bundle.keep(bytes);
  Object.assign(result, { report, ...(value === undefined ? {} : { value }) });
  settled.basis = { ...(settled.basis as object), report };
  if (value !== undefined) settled.value = value;
}

/** The slot that was regraded keeps its second report as one that was not accepted, and stays unresolved. */
function reject(bundle: LooseBundle, change: (report: Record<string, unknown>) => object): void {
  const slot = slotAt(bundle, 10);
  const stage = stageOf(bundle, slot, 'grade');
  const bytes = bundle.object(resultOf(stage).report);
  const report = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>;
  const { attempt } = stage;
  const signals = {
    stage: 'grade',
    phase: 'collect',
    cause: 'report_invalid',
    http_status: null,
    embedded_status: null,
    exit_status: 0,
    signal: null,
    service_alive: null,
    exception: null,
    text: 'the reward is not a number',
  };
  stage.result = { kind: 'failure', signals };
  stage.objects = { rejected_report: bundle.keep(canonicalBytes(change(report))) };
  entryOf(bundle, slot, 'attempt.finished').outcome = 'failure';
  const attribution: Loose = {
    type: 'attribution.recorded',
    attempt,
    slot,
    attribution: 'undetermined',
    by: 'rule',
    rule: null,
    late: false,
    reason: null,
  };
  bundle.insert(at(bundle, stage) + 1, attribution);
  const settled = entryOf(bundle, slot, 'slot.settled');
  const { time } = settled;
  bundle.entries[at(bundle, settled)] = { type: 'slot.unresolved', slot, reason: 'undetermined', time };
  const unblinded = bundle.find('unblinded');
  Object.assign(unblinded, {
    settled: Number(unblinded.settled) - 1,
    unresolved: Number(unblinded.unresolved) + 1,
  });
}
