import { expect, test } from 'vitest';
import { Findings } from '../../src/audit/finding.js';
import { checkSession } from '../../src/audit/sessions.js';
import type { DraftOf } from '../../src/ledger/entries/entry.js';
import { foldOf, gateDraft, SESSION, SlotScript, slotAt } from '../ledger/support.js';

const OTHER = '6'.repeat(32);

type Process = DraftOf<'gate.passed'>['process'];
type Evidence = DraftOf<'attempt.recovered'>['evidence'];

const HOLDER: Process = { boot_id: 'boot-1', pid: 100, started: '4242' };

/** Codes for a recovery by a session in some process, of an attempt that a session in {@link HOLDER} had. */
function judge(finder: Process, evidence: Partial<Evidence>, session = OTHER): readonly string[] {
  const script = new SlotScript(slotAt(0)).start();
  const gate = { ...gateDraft(OTHER), process: finder };
  const { fold, violations } = foldOf([...script.drafts, gate]);
  expect(violations).toEqual([]);
  const findings = new Findings();
  const entry = {
    type: 'attempt.recovered',
    attempt: script.attempt,
    slot: script.slot.id,
    session,
    found: 'nothing',
    evidence: { reason: 'process_gone', boot_id: HOLDER.boot_id, pid: HOLDER.pid, ...evidence },
    seq: 4,
    prev: null,
    time: '2026-11-30T00:00:09.000Z',
  } as const;
  checkSession(entry, fold, findings);
  return findings.list(true).map(({ code }) => code);
}

const UNFOUNDED = ['RECOVERY_UNFOUNDED'];
const elsewhere = { ...HOLDER, pid: 200 };
const rebooted = { boot_id: 'boot-2', pid: 100, started: '4242' };

test.each<[string, Process, Partial<Evidence>, string, readonly string[]]>([
  ['a process that is gone', elsewhere, {}, OTHER, []],
  ['one whose number went to another', elsewhere, { reason: 'pid_reused' }, OTHER, []],
  ['one before the last boot', rebooted, { reason: 'boot_changed' }, OTHER, []],
  ['an earlier session of the same process', HOLDER, { reason: 'same_process' }, OTHER, []],
  ['its own attempt, given up', elsewhere, { reason: 'abandoned' }, SESSION, []],
  ["another session's attempt, given up", elsewhere, { reason: 'abandoned' }, OTHER, UNFOUNDED],
  ['given up by another session of the same process', HOLDER, { reason: 'abandoned' }, OTHER, UNFOUNDED],
  ['gone, and the same', HOLDER, {}, OTHER, UNFOUNDED],
  ['gone, and before the last boot', rebooted, {}, OTHER, UNFOUNDED],
  ['a boot that did not change', elsewhere, { reason: 'boot_changed' }, OTHER, UNFOUNDED],
  ['the same process, and another', elsewhere, { reason: 'same_process' }, OTHER, UNFOUNDED],
  ['evidence about another process', elsewhere, { pid: 101 }, OTHER, UNFOUNDED],
  ['evidence about another boot', elsewhere, { boot_id: 'boot-2' }, OTHER, UNFOUNDED],
])('a recovery by the evidence of %s', (_, finder, evidence, session, codes) => {
  expect(judge(finder, evidence, session)).toEqual(codes);
});
