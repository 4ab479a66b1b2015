import type { Digest } from '../core/digest.js';
import type { JsonValue } from '../core/json.js';
import type { LedgerHead } from '../ledger/reader.js';
import type { QueueCounts } from '../ledger/slot-book.js';
import type { Finding } from './finding.js';
import type { ProvedTimes } from './order.js';

/** What an audit says: a pure function of manifest, ledger and objects (law 10). It holds no outcome (law 8). */
export interface AuditResult {
  readonly schema: 'boundbook/audit/1';
  readonly verdict: 'clean' | 'findings';
  readonly manifest: {
    readonly digest: Digest | null;
    readonly name: string | null;
    readonly revision: number | null;
    readonly file: string;
  };
  /** Which bundle was audited; null for a workspace. */
  readonly bundle: {
    readonly name: string;
    readonly form: 'folder' | 'tar';
    readonly digest: Digest;
  } | null;
  readonly ledger: { readonly name: string; readonly head: LedgerHead };
  /** null when the plan could not be rebuilt. */
  readonly coverage: readonly QueueCounts[] | null;
  readonly findings: readonly Finding[];
  /** Findings that were counted and are not listed. */
  readonly omitted: number;
  /** What was recomputed, with its extent. */
  readonly checked: readonly string[];
  /** What is no breach and still worth knowing. */
  readonly remarks: readonly string[];
  /** The order in time that the ledger proves. */
  readonly order: readonly string[];
  /** The same as far as verified time stamps prove it. */
  readonly times: ProvedTimes;
  /** law 11 */
  readonly notChecked: readonly string[];
}

export function toJson(result: AuditResult): JsonValue {
  return {
    schema: result.schema,
    verdict: result.verdict,
    manifest: { ...result.manifest },
    bundle: result.bundle === null ? null : { ...result.bundle },
    ledger: { name: result.ledger.name, head: { ...result.ledger.head } },
    coverage: result.coverage === null ? null : result.coverage.map((queue) => ({ ...queue })),
    findings: result.findings.map((finding) => ({ ...finding, where: { ...finding.where } })),
    omitted: result.omitted,
    checked: [...result.checked],
    remarks: [...result.remarks],
    order: [...result.order],
    times: {
      ...result.times,
      entries_no_later_than: result.times.entries_no_later_than.map((each) => ({ ...each })),
    },
    not_checked: [...result.notChecked],
  };
}
