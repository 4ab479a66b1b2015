import type { Closings } from '../ledger/carry.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import { checkCarried } from './carry-audit.js';
import type { Findings } from './finding.js';
import type { LedgerAudit } from './ledger-audit.js';
import { checkSuccessor } from './seal-audit.js';

/** A ledger that was audited, and where its slots were closed. */
export interface AuditedLedger {
  readonly manifest: IdentifiedManifest;
  readonly audit: LedgerAudit;
  readonly closings: Closings;
  /** Root of the tree at the size from which the ledger after it carries; null when it is shorter. */
  readonly rootCarried: string | null;
}

/**
 * Each ledger carries from the next one before it, or from none when there is none.
 *
 * @param ledgers the plan's own first, then those of the plans before it, the latest first
 */
export function checkChain(
  ledgers: readonly AuditedLedger[],
  all: readonly IdentifiedManifest[],
  findings: Findings,
  verdict: { readonly notChecked: string[] },
): void {
  for (const [i, ledger] of ledgers.entries()) {
    const place =
      i === 0 ? findings : findings.within(`the ledger of revision ${ledger.manifest.manifest.revision}`);
    const opened = ledger.audit.fold?.opened ?? null;
    const carries = opened?.carries ?? null;
    const before = ledgers[i + 1] ?? null;
    if (before === null) checkUncarried(ledger, carries, place, verdict);
    else if (carries === null) {
      const closed = before.audit.fold?.slots.total();
      if (closed === undefined || closed.settled + closed.unresolved === 0) continue;
      const message = `the superseded ledger of ${before.manifest.digest} has closed slots, and nothing is carried`;
      place.add({ code: 'CARRY_OMITTED', where: { seq: 0, pointer: '/carries' }, message });
    } else checkLink(ledger, carries, before, ledgers.slice(i + 2), all, place);
  }
}

function checkUncarried(
  { manifest }: AuditedLedger,
  carries: EntryOf<'ledger.opened'>['carries'],
  findings: Findings,
  verdict: { readonly notChecked: string[] },
): void {
  const { supersedes } = manifest.manifest;
  if (carries !== null) {
    const message =
      supersedes === null
        ? 'it carries from another ledger, although its plan supersedes none'
        : `the ledger ${carries.ledger} of ${carries.manifest} that it carries from is not at hand`;
    const code = supersedes === null ? 'CARRY_UNFOUNDED' : 'PREDECESSOR_DIFFERS';
    findings.add({ code, where: { seq: 0, pointer: '/carries' }, message });
  } else if (supersedes !== null) {
    verdict.notChecked.push(
      `whether the superseded plan ${supersedes} was ever run: no ledger of it is at hand, and none is carried`,
    );
  }
}

function checkLink(
  { manifest, audit }: AuditedLedger,
  carries: NonNullable<EntryOf<'ledger.opened'>['carries']>,
  before: AuditedLedger,
  earlier: readonly AuditedLedger[],
  all: readonly IdentifiedManifest[],
  findings: Findings,
): void {
  const { fold, head, tasks } = before.audit;
  const at = { seq: 0, pointer: '/carries' };
  const differs = (message: string) => findings.add({ code: 'PREDECESSOR_DIFFERS', where: at, message });
  if (carries.manifest !== before.manifest.digest)
    differs(
      `it carries from a ledger of ${carries.manifest}; the last that ran is ${before.manifest.digest}`,
    );
  if (fold === null || tasks === null || audit.fold === null || audit.tasks === null) return;
  if (fold.opened?.ledger !== carries.ledger)
    differs(
      `it carries from the ledger ${carries.ledger}; that of the plan is ${fold.opened?.ledger ?? 'none'}`,
    );
  const root = before.rootCarried;
  if (root !== carries.root)
    differs(
      `the first ${carries.size} of ${head.size} entries have the root ${root ?? 'none'}, not ${carries.root}`,
    );
  if (fold.amended !== null && fold.amended.seq >= carries.size)
    differs(
      `it carries from ${carries.size} entries, before the plan was amended with entry ${fold.amended.seq}`,
    );
  if (fold.amended !== null) checkSuccessor(fold.amended, manifest, all, findings);
  const predecessor = {
    manifest: before.manifest.manifest,
    tasks,
    fold,
    closings: before.closings,
    earlier: earlier.flatMap((one) => one.audit.fold ?? []),
  };
  checkCarried(
    audit.fold,
    carries,
    predecessor,
    { manifest: manifest.manifest, tasks: audit.tasks },
    findings,
  );
}
