import type { Entry } from '../../src/ledger/entries/entry.js';

/** How each task's slot came out, in a few words: its failures in order, then its end. */
export function ends(entries: readonly Entry[]): Record<string, string> {
  const tasks = new Map<string, string>();
  const words = new Map<string, string[]>();
  for (const entry of entries) {
    if (entry.type === 'attempt.started') {
      tasks.set(entry.slot, entry.key.task);
      words.set(entry.slot, [
        ...(words.get(entry.slot) ?? []),
        ...(entry.kind === 'first' ? [] : [entry.kind]),
      ]);
    } else if (entry.type === 'stage.finished' && entry.result.kind === 'failure') {
      const { stage, phase, cause, exception } = entry.result.signals;
      words
        .get(entry.slot)
        ?.push([stage, phase, cause, ...(exception === null ? [] : [exception])].join(' '));
    } else if (entry.type === 'attempt.recovered') words.get(entry.slot)?.push(`lost with ${entry.found}`);
    else if (entry.type === 'attribution.recorded') words.get(entry.slot)?.push(entry.attribution);
    else if (entry.type === 'slot.settled') words.get(entry.slot)?.push(`settled ${entry.value}`);
    else if (entry.type === 'slot.unresolved') words.get(entry.slot)?.push(`unresolved ${entry.reason}`);
  }
  return Object.fromEntries([...tasks].map(([slot, task]) => [task, words.get(slot)?.join(', ') ?? '']));
}
