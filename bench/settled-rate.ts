import { openBook } from '../src/ledger/book.js';
import type { StoredManifest } from '../src/manifest/workspace.js';

/** Slots settled per second, from the first attempt's entry to the last settlement. @throws when not all `due` were settled */
export async function settledRate(root: string, stored: StoredManifest, due: number): Promise<number> {
  const book = await openBook(root, stored, 'read');
  let first = '';
  let last = '';
  let settled = 0;
  for (const { entry } of book.store.entries()) {
    if (entry.type === 'attempt.started' && first === '') first = entry.time;
    if (entry.type === 'slot.settled') {
      last = entry.time;
      settled++;
    }
  }
  book.close();
  if (settled !== due) throw new Error(`${settled} slots were settled instead of ${due}`);
  return (1000 * due) / (Date.parse(last) - Date.parse(first));
}
