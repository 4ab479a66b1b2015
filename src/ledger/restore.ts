import { readdirSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { BoundbookError, systemCode } from '../core/errors.js';
import { makeFolder, readError, syncFolder, writeError } from '../core/files.js';
import { VERSION } from '../core/version.js';
import type { StoredManifest } from '../manifest/workspace.js';
import { readAnchor } from './anchor.js';
import { openLedger } from './book.js';
import type { LedgerRecord } from './chain.js';
import type { DraftOf, Entry } from './entries/entry.js';
import { LedgerFold } from './fold.js';
import { nextIncarnation, type Restoration } from './incarnations.js';
import { CompactRange } from './merkle.js';
import type { OutsideState } from './outside-state.js';
import type { PlanContext } from './plan-index.js';
import { damageOf } from './reader.js';
import { LedgerStore } from './store.js';

export interface RestoreRequest {
  /** Where {@link outside} was read, for messages. */
  readonly file: string;
  readonly outside: OutsideState;
  readonly reason: string;
}

/** Below a ledger's folder: one folder for each attempt, and for the services of each session. */
const WORK = 'work';

/**
 * Goes on with an older copy of a ledger on the record: another incarnation, whose opening quotes the last state known
 * outside. From then on the head beside the folder follows it. What lies in `work/` of entries that are lost is moved
 * aside, so that nothing of it is taken for something of the new incarnation. Repeating it after a kill completes it.
 *
 * @returns what was lost
 * @throws {BoundbookError} RESTORE_REFUSED when nothing was lost, when the state is of another ledger, or when more than
 * it says was known; LEDGER_DAMAGED when the copy itself is damaged, or another one than the state says; as `openLedger`
 * and `LedgerStore.openWriter`.
 */
export async function openIncarnation(
  root: string,
  stored: StoredManifest,
  request: RestoreRequest,
  now: () => string,
): Promise<Restoration> {
  const { reader, context, folder } = await openLedger(root, stored, 'GATE_REFUSED', false);
  try {
    const copy = new Copy(context, reader.file, request.outside.size);
    for (const record of reader.entries()) copy.take(record);
    if (!isQuoted(copy.fold, request)) assertLoss(copy, request, folder);
  } finally {
    reader.close();
  }
  const copy = new Copy(context, reader.file, request.outside.size);
  const lost = new Set(namesIn(join(folder, WORK)));
  const follow = (record: LedgerRecord) => {
    copy.take(record);
    strikeOut(lost, record.entry);
  };
  const store = LedgerStore.openWriter(folder, { now, follow, anchored: false });
  try {
    // Another process may have been faster with the same request.
    store.transact(() => ({
      drafts: isQuoted(copy.fold, request) ? [] : [openingDraft(copy.fold, request)],
      result: null,
    }));
    const restoration = copy.fold.restorations.at(-1);
    if (restoration === undefined) throw new BoundbookError('INTERNAL', 'an incarnation without its opening');
    await moveAside(folder, lost, restoration.incarnation);
    store.replaceAnchor();
    return restoration;
  } finally {
    store.close();
  }
}

/** A copy as its entries go by: lawful up to its end, and what it says of the state known outside. */
class Copy {
  readonly fold: LedgerFold;
  readonly file: string;
  readonly #at: number;
  readonly #range = new CompactRange();
  /** Last leaf and root at the size of the outside state; null when the copy is shorter. */
  known: { readonly leaf: string; readonly root: string } | null = null;

  constructor(context: PlanContext, file: string, at: number) {
    this.fold = new LedgerFold(context);
    this.file = file;
    this.#at = at;
  }

  take({ entry, leaf }: LedgerRecord): void {
    this.#range.append(leaf);
    if (this.#range.size === this.#at) {
      this.known = { leaf: leaf.toString('hex'), root: this.#range.root().toString('hex') };
    }
    const [violation] = this.fold.apply(entry);
    if (violation === undefined) return;
    const { seq, clause, message } = violation;
    throw damageOf(this.file, { seq, what: `against ${clause}: ${message}` });
  }
}

/** @throws {BoundbookError} RESTORE_REFUSED, LEDGER_DAMAGED. */
function assertLoss(copy: Copy, { file, outside }: RestoreRequest, folder: string): void {
  const { fold, known } = copy;
  const { size, identity } = outside;
  const ledger = fold.opened?.ledger ?? '';
  if (identity !== null && identity.ledger !== ledger) {
    throw refusal(`${file} is of the ledger ${identity.ledger}, this one is ${ledger}`, {
      hint: 'Name a checkpoint of this very ledger, or the .head file that lay beside it.',
      evidence: { expected: ledger, actual: identity.ledger },
    });
  }
  const anchor = readAnchor(folder);
  if (anchor !== null && anchor.size > size) {
    throw refusal(`${file} says ${size} entries, and there were ${anchor.size} at ${anchor.time}`, {
      hint: 'Name the latest state that is known: the .head file beside the folder, or a later checkpoint.',
      evidence: { anchor: { ...anchor }, size },
    });
  }
  if (known === null) return;
  const same = (outside.leaf ?? known.leaf) === known.leaf && (outside.root ?? known.root) === known.root;
  if (same) {
    throw refusal(`nothing was lost: the ledger has all of the ${size} entries that ${file} says`, {
      hint: 'Run without --restored.',
      evidence: { size: fold.size, known: size },
    });
  }
  throw damageOf(copy.file, {
    seq: size - 1,
    what: `up to here it holds other entries than ${file} says: it was rewritten, not shortened`,
  });
}

function refusal(message: string, details: ConstructorParameters<typeof BoundbookError>[2]): BoundbookError {
  return new BoundbookError('RESTORE_REFUSED', message, details);
}

/** Whether the latest opening quotes this very state already. */
function isQuoted({ reopened }: LedgerFold, { outside }: RestoreRequest): boolean {
  const restored = reopened.at(-1)?.restored ?? null;
  return (
    restored !== null &&
    restored.size === outside.size &&
    restored.root === outside.root &&
    restored.leaf === outside.leaf &&
    restored.note === outside.note
  );
}

function openingDraft(fold: LedgerFold, { outside, reason }: RestoreRequest): DraftOf<'ledger.opened'> {
  const { opened, identity } = fold;
  if (opened === null || identity === null) throw new BoundbookError('INTERNAL', 'a ledger without entries');
  const { ledger, manifest, manifest_object, plan, task_objects, carries } = opened;
  const { size, root, leaf, note } = outside;
  return {
    type: 'ledger.opened',
    ledger,
    incarnation: nextIncarnation(identity, outside.identity),
    manifest,
    manifest_object,
    plan,
    task_objects,
    carries,
    restored: { size, root, leaf, note, reason },
    tool: { name: 'boundbook', version: VERSION },
  };
}

/** Takes the work folders out that an entry accounts for. */
function strikeOut(names: Set<string>, entry: Entry): void {
  if (entry.type === 'attempt.started') names.delete(entry.attempt);
  if (entry.type === 'gate.passed') names.delete(`services-${entry.session}`);
}

/** Moves what no entry accounts for into `work/lost.<incarnation>/`. */
async function moveAside(folder: string, names: ReadonlySet<string>, incarnation: number): Promise<void> {
  const lost = [...names].filter((name) => /^(services-)?[0-9a-f]{32}$/.test(name));
  if (lost.length === 0) return;
  const target = join(folder, WORK, `lost.${incarnation}`);
  try {
    await makeFolder(target);
    for (const name of lost) await rename(join(folder, WORK, name), join(target, name));
    await syncFolder(target);
    await syncFolder(join(folder, WORK));
  } catch (error) {
    throw writeError(target, error);
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw readError(folder, error);
  }
}
