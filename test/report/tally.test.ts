import { describe, expect, it } from 'vitest';
import type { Entry, EntryDraft } from '../../src/ledger/entries/entry.js';
import { tallyEntries } from '../../src/report/tally.js';
import { PROTOCOL, SESSION, SLOTS, SlotScript, slotAt } from '../ledger/support.js';

function tally(drafts: readonly EntryDraft[]) {
  const entries = drafts.map(
    (draft, seq): Entry => ({ ...draft, seq, prev: null, time: '2026-12-01T00:00:00.000Z' }),
  );
  return tallyEntries(entries, (slot) => SLOTS.find(({ id }) => id === slot)?.arm ?? 'unknown', PROTOCOL);
}

describe('tallyEntries', () => {
  it('takes the last attribution of an attempt, and none that came late', () => {
    const slot = slotAt(0);
    const script = new SlotScript(slot)
      .start()
      .failed('generate', 'time_limit')
      .finished('failure')
      .unresolved();
    const failure = { arm: slot.arm, stage: 'generate', cause: 'time_limit', attempts: 1 };
    expect(tally(script.drafts).failures).toEqual([{ ...failure, attribution: 'undetermined' }]);
    script.verdict('model');
    expect(tally(script.drafts).failures).toEqual([{ ...failure, attribution: 'model' }]);
    script.verdict('infrastructure', true);
    const late = tally(script.drafts);
    expect(late.failures).toEqual([{ ...failure, attribution: 'model' }]);
    expect(late.incidents).toEqual([
      { what: 'attributions by an adjudicator', count: 1 },
      { what: 'attributions recorded after unblinding, which change nothing', count: 1 },
    ]);
  });

  it('counts a process that is gone as infrastructure', () => {
    const script = new SlotScript(slotAt(0)).start().recovered('nothing', SESSION);
    expect(tally(script.drafts).failures).toMatchObject([
      { cause: 'process_gone', attribution: 'infrastructure', attempts: 1 },
    ]);
    const kept = new SlotScript(slotAt(1)).start().generated().recovered('candidate', SESSION);
    expect(tally(kept.drafts).failures).toEqual([]);
  });

  it('counts what happened beside the plan, without detail', () => {
    const stopped = {
      type: 'service.stopped' as const,
      session: SESSION,
      service: 'O@1-0',
      model: 'O@1',
      exit_status: null,
      signal: 'SIGKILL',
      seconds: 3,
      gpus: 1,
    };
    const paused = { type: 'run.paused' as const, session: SESSION, detail: 'O@1 said no' };
    const { incidents } = tally([
      { ...stopped, reason: 'died' },
      { ...stopped, reason: 'died' },
      { ...stopped, reason: 'run_ended' },
      { ...paused, reason: 'breaker' },
      { ...paused, reason: 'signal' },
      { type: 'gate.refused', manifest: `sha256:${'0'.repeat(64)}`, mismatches: [], total: 1 },
    ]);
    expect(incidents).toEqual([
      { what: 'gate refusals', count: 1 },
      { what: 'services stopped: died', count: 2 },
      { what: 'sessions ended by breaker', count: 1 },
    ]);
  });
});
