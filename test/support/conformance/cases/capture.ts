import { canonicalBytes } from '../../../../src/core/canonical-json.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { at, type Case, dropReports, entryOf, resultOf, slotAt, stageOf } from '../case.js';

/** What commands say of their own evidence, and signals of their host. The protocol: see `watched` in bases.ts. */
export const CAPTURE: readonly Case[] = [
  on(
    'command-output-cut',
    'output that was cut, artifacts kept and not kept, a stop command that failed',
    () => undefined,
  ),
  on('command-output-cut-elsewhere_fail', 'what is kept of a stream ends at the declared cap', (bundle) => {
    recapture(bundle, 0, () => ({ streams: { stdout: { kept: 3, seen: 9 } } }));
  }),
  on('command-output-cut-at-nothing_fail', 'a stream was cut only when more was seen than kept', (bundle) => {
    recapture(bundle, 0, () => ({ streams: { stdout: { kept: 4, seen: 4 } } }));
  }),
  on(
    'command-output-cut-is-shorter_fail',
    'what is kept of a stream that was cut is as long as the cap',
    (bundle) => {
      objectsOf(bundle, 0).stdout = bundle.keep(Buffer.from('abc'));
    },
  ),
  on('command-capture-in-other-json_fail', 'a capture is canonical JSON', (bundle) => {
    const capture = JSON.parse(bundle.object(objectsOf(bundle, 0).capture).toString()) as object;
    objectsOf(bundle, 0).capture = bundle.keep(Buffer.from(JSON.stringify(capture, null, 1)));
  }),
  on('command-capture-of-nothing_fail', 'a capture that says nothing is not written', (bundle) => {
    recapture(bundle, 0, () => ({ streams: {} }));
  }),
  on('command-artifact-neither_fail', 'a declared artifact is kept, or why not is said', (bundle) => {
    delete objectsOf(bundle, 0)['artifact/log'];
  }),
  on('command-artifact-both_fail', 'an artifact that is kept is not absent', (bundle) => {
    recapture(bundle, 0, (capture) => ({ ...capture, artifacts: { log: { found: 'absent' } } }));
  }),
  on(
    'command-artifact-too-large_fail',
    'an artifact that is kept has at most its declared bytes',
    (bundle) => {
      objectsOf(bundle, 0)['artifact/log'] = bundle.keep(Buffer.from('eleven bytes'));
    },
  ),
  on(
    'command-artifact-small-enough_fail',
    'an artifact that is too large has more than its declared bytes',
    (bundle) => {
      recapture(bundle, 1, () => ({ artifacts: { log: { found: 'too_large', size: 10 } } }));
    },
  ),
  on('command-artifact-undeclared_fail', 'nothing is kept that the protocol does not name', (bundle) => {
    objectsOf(bundle, 0)['artifact/other'] = bundle.keep(Buffer.from('x'));
  }),
  on('command-artifact-of-the-grader_fail', 'artifacts are files of the first stage', (bundle) => {
    const grade = stageOf(bundle, slotAt(bundle, 0), 'grade');
    grade.objects = { 'artifact/log': bundle.keep(Buffer.from('x')) };
  }),
  on('command-stop-that-worked_fail', 'a stop command is spoken of when it failed', (bundle) => {
    recapture(bundle, 0, (capture) => ({ ...capture, stop: { ...FAILED, exit_status: 0 } }));
  }),
  on('command-stop-undeclared_fail', 'a stop command that the protocol does not declare', (bundle) => {
    const grade = stageOf(bundle, slotAt(bundle, 0), 'grade');
    grade.objects = { capture: bundle.keep(canonicalBytes({ stop: FAILED })) };
  }),
  on('command-out-of-memory-denied_fail', 'P14: the rules decide on the event of the own group', (bundle) => {
    signalsOf(bundle, 6).oom_kill = true;
  }),
  on(
    'command-shut-down',
    'a failure was durable, and the host started anew before the ledger had it',
    shutDown,
  ),
  on('command-shut-down-without-a-word', 'the event of the host may be left out', (bundle) => {
    shutDown(bundle);
    delete signalsOf(bundle, 7, 'grade').host_event;
    // The rule asks for it.
    entryOf(bundle, slotAt(bundle, 7), 'attribution.recorded').rule = null;
  }),
  on('command-shut-down-invented_fail', 'P13: no recovery shows that the host was started anew', (bundle) => {
    signalsOf(bundle, 6).host_event = 'boot_changed';
  }),
  on(
    'command-shut-down-long-ago_fail',
    'P13: what comes later in the session did not meet the restart',
    (bundle) => {
      shutDown(bundle);
      const stage = stageOf(bundle, slotAt(bundle, 7), 'grade');
      bundle.insert(at(bundle, stage), { type: 'checkpoint', size: 0, root: '', note: null, timestamps: [] });
    },
  ),
];

const FAILED = { exit_status: 1, signal: null, text: 'no such container', timed_out: false };

function on(name: string, why: string, edit: (bundle: LooseBundle) => void): Case {
  return {
    name,
    why,
    base: 'watched',
    edit: (bundle) => {
      capture(bundle);
      edit(bundle);
      dropReports(bundle);
    },
  };
}

/** Gives every first stage what the protocol asks for: cut output in the first slot, an artifact in no other. */
function capture(bundle: LooseBundle): void {
  const first = stageOf(bundle, slotAt(bundle, 0), 'generate');
  for (const stage of bundle.entries) {
    if (stage.type !== 'stage.finished' || stage.stage !== 'generate') continue;
    const said =
      stage === first
        ? { stop: FAILED, streams: { stdout: { kept: 4, seen: 9 } } }
        : { artifacts: { log: { found: 'refused', reason: 'log.txt is a link' } } };
    const kept = {
      stdout: bundle.keep(Buffer.from('abcd')),
      'artifact/log': bundle.keep(Buffer.from('a log')),
    };
    stage.objects = {
      ...(stage.objects as object),
      ...(stage === first ? kept : {}),
      capture: bundle.keep(canonicalBytes(said)),
    };
  }
  signalsOf(bundle, 6).oom_kill = false;
}

function objectsOf(bundle: LooseBundle, n: number): Record<string, string> {
  return stageOf(bundle, slotAt(bundle, n), 'generate').objects as Record<string, string>;
}

function recapture(bundle: LooseBundle, n: number, change: (capture: object) => object): void {
  const objects = objectsOf(bundle, n);
  const said = JSON.parse(bundle.object(objects.capture).toString()) as object;
  objects.capture = bundle.keep(canonicalBytes(change(said) as never));
}

function signalsOf(bundle: LooseBundle, n: number, stage = 'generate'): Record<string, unknown> {
  return resultOf(stageOf(bundle, slotAt(bundle, n), stage)).signals as Record<string, unknown>;
}

/** The slot that was interrupted in grading: its grader had been ended by SIGTERM, and then the host. */
function shutDown(bundle: LooseBundle): void {
  const slot = slotAt(bundle, 7);
  entryOf(bundle, slot, 'attempt.recovered').found = 'end';
  const stage = stageOf(bundle, slot, 'grade');
  const { attempt } = stage;
  const signals = {
    stage: 'grade',
    phase: 'running',
    cause: 'killed_by_signal',
    http_status: null,
    embedded_status: null,
    exit_status: null,
    signal: 'SIGTERM',
    service_alive: null,
    host_event: 'boot_changed',
    exception: null,
    text: null,
  };
  stage.result = { kind: 'failure', signals };
  stage.objects = {};
  entryOf(bundle, slot, 'attempt.finished').outcome = 'failure';
  const attribution: Loose = {
    type: 'attribution.recorded',
    attempt,
    slot,
    attribution: 'undetermined',
    by: 'rule',
    rule: 'shut-down',
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
