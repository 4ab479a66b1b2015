import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import type { Entry, EntryOf } from '../../ledger/entries/entry.js';
import type { LedgerFold } from '../../ledger/fold.js';
import { type PrmlMapping, prmlBytes } from './canonical.js';
import type { PrmlClaim } from './claim.js';
import { linkageFinal, linkageStart } from './linkage.js';

/** The linkage record of a ledger's run: before unblinding the start alone, afterwards what was observed too (law 8). */
export interface RunRecord {
  readonly kind: 'start' | 'final';
  readonly bytes: Buffer;
}

/**
 * @param entries of the ledger, at least up to its first gate
 * @param result what the report gives, and the report's digest; null while outcomes are blinded
 * @throws {BoundbookError} CLAIM_UNSUPPORTED before the first run; CLAIM_INVALID
 */
export function runRecord(
  claim: PrmlClaim,
  fold: LedgerFold,
  entries: Iterable<Entry>,
  result: { readonly observed: number; readonly report: Digest } | null,
): RunRecord {
  const { opened, unblinded } = fold;
  const gate = firstGate(entries);
  if (opened === null || gate === null) {
    throw new BoundbookError('CLAIM_UNSUPPORTED', 'there is no run yet that a record could be about', {
      hint: 'Write the claim alone now, and the record after `boundbook run`.',
    });
  }
  const { node, platform, arch } = gate.host;
  const start = {
    claim,
    receipt: null,
    run: {
      id: opened.ledger,
      startedAt: opened.time,
      environment: `boundbook ${opened.tool.version}, node ${node}, ${platform}/${arch}`,
      modelVersion: claim.model?.id ?? null,
    },
  };
  const record: PrmlMapping =
    result === null || unblinded === null
      ? linkageStart(start)
      : linkageFinal(start, {
          observed: result.observed,
          digest: result.report,
          finishedAt: unblinded.time,
        });
  return { kind: 'start_hash' in record ? 'final' : 'start', bytes: prmlBytes(record) };
}

function firstGate(entries: Iterable<Entry>): EntryOf<'gate.passed'> | null {
  for (const entry of entries) if (entry.type === 'gate.passed') return entry;
  return null;
}
