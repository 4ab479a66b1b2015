import type { Entry } from '../ledger/entries/entry.js';
import type { Findings } from './finding.js';

/**
 * A failure may carry the event that the host was started anew only when it was durable before that and is recorded by the
 * session that recovered it: in the entries that directly follow the recovery.
 */
export class HostEventCheck {
  /** The slot that was recovered, and the position at which its next end may stand. */
  #after: { readonly slot: string; readonly seq: number } | null = null;

  check(entry: Entry, findings: Findings): void {
    if (entry.type === 'attempt.recovered') {
      const { found, evidence, slot, seq } = entry;
      this.#after = found === 'end' && evidence.reason === 'boot_changed' ? { slot, seq: seq + 1 } : null;
    }
    if (entry.type !== 'stage.finished') return;
    const follows = this.#after?.slot === entry.slot && this.#after.seq === entry.seq;
    this.#after = follows ? { slot: entry.slot, seq: entry.seq + 1 } : null;
    const { result } = entry;
    if (follows || result.kind !== 'failure' || result.signals.host_event === undefined) return;
    findings.add({
      code: 'RECOVERY_UNFOUNDED',
      where: { seq: entry.seq, slot: entry.slot, pointer: '/result/signals/host_event' },
      message: 'a failure under a change of the boot, which no recovery before it shows',
    });
  }
}
