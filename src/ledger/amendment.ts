import { BoundbookError, type Fault } from '../core/errors.js';
import { type PreparedAmendment, placeAmendment, prepareAmendment, readDocument } from '../manifest/amend.js';
import type { Surroundings } from '../manifest/freeze.js';
import type { Manifest } from '../manifest/manifest.js';
import { sameValue } from '../manifest/same-value.js';
import type { Exposure } from '../manifest/schema.js';
import { readWorkspace, type StoredManifest, storeManifestSync } from '../manifest/workspace.js';
import { type Book, openBook } from './book.js';
import { type CarryPlan, carryObstacle, planCarry } from './carry.js';
import { EXPORTED_BLINDED } from './deviations.js';
import type { EntryOf } from './entries/entry.js';
import { amendedDraft, completeAmendment, findPredecessor, toPredecessor } from './predecessor.js';
import type { Session } from './sessions.js';
import type { LedgerStore } from './store.js';

export interface AmendmentRequest {
  /** Path of the new protocol. */
  readonly protocol: string;
  readonly reason: string;
  /** The plan that is superseded; by default the newest of the protocol's name. */
  readonly superseded: string | undefined;
  /** What the author says was known of outcomes, beyond what the ledger shows. */
  readonly declared: Partial<Pick<Exposure, 'slots_run' | 'settled' | 'unblinded' | 'declared'>>;
}

/** What an amendment needs to know that lies above the ledger. */
export interface AmendmentHooks {
  /** What the superseded plan and its ledger show was known of outcomes (P22). */
  readonly exposureOf: (superseded: Manifest, book: Book | null) => Exposure;
  readonly isAlive: (process: Session['process']) => boolean;
}

export interface Amendment {
  readonly stored: StoredManifest;
  readonly superseded: StoredManifest;
  readonly exposure: Exposure;
  /** The entry in the superseded plan's ledger; null when it never ran. */
  readonly entry: EntryOf<'amended'> | null;
  /** What the first run will make of the closed slots; null without a ledger, or while a task file is missing. */
  readonly carry: CarryPlan | null;
}

/**
 * Writes the next revision of a plan and, in the same step, the entry that seals the old ledger (P22). The manifest is
 * made durable inside the transaction of that entry: no attempt can come between what is said of the exposure and the seal.
 * A crash between the two leaves the manifest, and the entry is completed by the next `amend` or `run`.
 *
 * @throws {BoundbookError} AMEND_REFUSED while a session is at work or slots of the new revision are under way, and for
 * less exposure than the ledger shows; LEDGER_BUSY when the ledger grew meanwhile; and as `prepareAmendment`,
 * `placeAmendment` and `openBook`.
 */
export async function amendPlan(
  request: AmendmentRequest,
  surroundings: Surroundings,
  hooks: AmendmentHooks,
): Promise<Amendment> {
  const { root, now } = surroundings;
  const resumed = await resumeAmendment(request, surroundings);
  if (resumed !== null) return resumed;
  const prepared = await prepareAmendment(request.protocol, request.reason, request.superseded, surroundings);
  const { superseded } = prepared;
  const { manifests } = await readWorkspace(root);
  const predecessor = await findPredecessor(root, superseded.manifest, manifests);
  if (predecessor !== null) await completeAmendment(root, predecessor, manifests, now);
  const book = await openExisting(root, superseded, now);
  try {
    const carry = await previewCarry(root, prepared, book, predecessor);
    if (book !== null) assertQuiet(book, carry, hooks);
    assertNotTwice(carry);
    const shown = hooks.exposureOf(superseded.manifest, book);
    const exposure = withExports(declareExposure(shown, request.declared), book);
    const size = book?.fold.size ?? 0;
    let entry: EntryOf<'amended'> | null = null;
    const stored = await placeAmendment(root, prepared, exposure, (sealed) => {
      if (book === null) return storeManifestSync(root, sealed);
      const { entries, result } = book.store.transact(() => {
        assertUnchanged(book, size);
        const written = storeManifestSync(root, sealed);
        return { drafts: [amendedDraft(written)], result: written };
      });
      entry = entries.find((one) => one.type === 'amended') ?? null;
      return result;
    });
    return { stored, superseded, exposure, entry, carry };
  } finally {
    book?.close();
  }
}

/** An amendment whose manifest was made durable and whose entry was kept out by a crash: asking again completes it. */
async function resumeAmendment(
  { protocol: path, superseded: selector }: AmendmentRequest,
  { root, now }: Surroundings,
): Promise<Amendment | null> {
  const { protocol } = await readDocument(path, root);
  const { manifests } = await readWorkspace(root);
  const stored = manifests.find(
    ({ manifest }) => manifest.supersedes !== null && sameValue(manifest.protocol, protocol),
  );
  const superseded = manifests.find(({ digest }) => digest === stored?.manifest.supersedes);
  if (stored === undefined || superseded === undefined || selector !== undefined) return null;
  const { exposure } = stored.manifest;
  const book = await openExisting(root, superseded, now);
  try {
    if (book === null || exposure === null || book.fold.amended !== null) return null;
    const [entry] = book.store.append([amendedDraft(stored)]);
    return { stored, superseded, exposure, entry: entry?.type === 'amended' ? entry : null, carry: null };
  } finally {
    book?.close();
  }
}

async function openExisting(
  root: string,
  stored: StoredManifest,
  now: () => string,
): Promise<Book<LedgerStore> | null> {
  if (stored.manifest.plan === null) return null;
  try {
    return await openBook(root, stored, 'write', now);
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'LEDGER_NOT_FOUND') return null;
    throw error;
  }
}

/** What becomes of the slots that are closed by now; when the superseded plan never ran, of those of the plan before. */
async function previewCarry(
  root: string,
  { draft, tasks }: PreparedAmendment,
  book: Book | null,
  predecessor: StoredManifest | null,
): Promise<CarryPlan | null> {
  if (tasks === null) return null;
  const after = { manifest: draft, tasks };
  const { manifests } = await readWorkspace(root);
  if (book !== null) return planCarry(await toPredecessor(root, book, manifests), after);
  if (predecessor === null) return null;
  const before = await openBook(root, predecessor, 'read');
  try {
    return planCarry(await toPredecessor(root, before, manifests), after);
  } finally {
    before.close();
  }
}

/** Nothing is at work, and nothing that the new revision may plan is under way. */
function assertQuiet({ fold }: Book, carry: CarryPlan | null, { isAlive }: AmendmentHooks): void {
  const live = [...fold.sessions.all()].filter(({ end, process }) => end === null && isAlive(process));
  if (live.length > 0) {
    throw new BoundbookError('AMEND_REFUSED', 'a run of the plan that is superseded is at work', {
      hint: 'Stop it with Ctrl-C, wait for its attempts in flight, and amend then.',
      evidence: { sessions: live.map(({ id, process }) => ({ session: id, pid: process.pid })) },
    });
  }
  const round = fold.adjudications.open;
  if (round !== null) {
    throw new BoundbookError('AMEND_REFUSED', 'a round of adjudication is open: its verdicts would be lost', {
      hint: 'End it with `boundbook adjudicate --close`, and amend then.',
      evidence: { round: round.round, committed: round.judged.length },
    });
  }
  if (carry !== null) return;
  // Without the new revision's tasks, any slot may be one of them.
  const open = [...fold.slots.open()].map(({ slot }) => slot);
  if (open.length === 0) return;
  throw new BoundbookError('AMEND_REFUSED', `${open.length} slots are under way: started, and not closed`, {
    hint: 'Finish them with `boundbook run --limit 0`, or put the new task files in place, which tell whether they are planned at all.',
    evidence: { slots: open.slice(0, 20) },
  });
}

function assertNotTwice(carry: CarryPlan | null): void {
  const obstacle = carry === null ? null : carryObstacle(carry);
  if (obstacle === null) return;
  const { message, hint, slots } = obstacle;
  throw new BoundbookError('AMEND_REFUSED', message, { hint, evidence: { slots } });
}

/** More may be declared than the ledger shows, never less. */
function declareExposure(shown: Exposure, declared: AmendmentRequest['declared']): Exposure {
  const faults: Fault[] = [];
  for (const part of ['slots_run', 'settled'] as const) {
    const claim = declared[part];
    if (claim !== undefined && claim < shown[part]) {
      faults.push({ where: part, message: `declared ${claim}, the ledger shows ${shown[part]}` });
    }
  }
  if (declared.unblinded === false && shown.unblinded)
    faults.push({ where: 'unblinded', message: 'declared false, the ledger shows true' });
  const settled = declared.settled ?? shown.settled;
  const slotsRun = Math.max(declared.slots_run ?? shown.slots_run, shown.slots_run);
  if (settled > slotsRun)
    faults.push({ where: 'settled', message: `declared ${settled}, where ${slotsRun} slots were run` });
  if (faults.length > 0) {
    throw new BoundbookError('AMEND_REFUSED', 'the declared exposure is less than the ledger shows', {
      hint: 'Leave the flags away to take what the ledger shows; they can only add to it.',
      faults,
    });
  }
  return {
    slots_run: slotsRun,
    settled,
    unblinded: shown.unblinded || declared.unblinded === true,
    bounds: shown.bounds,
    declared: declared.declared ?? shown.declared,
  };
}

/** A bundle that left the blinded ledger showed every outcome by arm to whoever opened it: nobody can say it was not read. */
function withExports(exposure: Exposure, book: Book | null): Exposure {
  const [first] = (book?.fold.noted ?? []).filter(
    ({ text, afterUnblinding }) => !afterUnblinding && text.startsWith(EXPORTED_BLINDED),
  );
  if (first === undefined) return exposure;
  const words = `the blinded ledger was exported with its outcomes (entry ${first.seq})`;
  const { declared } = exposure;
  return { ...exposure, unblinded: true, declared: declared === null ? words : `${declared}; ${words}` };
}

function assertUnchanged({ fold }: Book, size: number): void {
  if (fold.size === size) return;
  throw new BoundbookError('LEDGER_BUSY', 'the ledger of the superseded plan grew while it was amended', {
    hint: 'Find what writes to it, and amend again.',
    evidence: { before: size, now: fold.size },
  });
}
