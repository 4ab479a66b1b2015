import type { Digest } from '../core/digest.js';
import type { NoteFile } from '../ledger/note-files.js';
import type { Attestations } from '../manifest/attestations.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import type { Findings } from './finding.js';
import type { LedgerAudit } from './ledger-audit.js';
import type { ObjectShelf } from './objects.js';
import type { ReportFile } from './report-audit.js';
import type { LedgerSource } from './row-source.js';

/** The ledger of a plan that another one supersedes (P22). */
export interface PredecessorSource {
  readonly manifest: IdentifiedManifest;
  /** How findings name it. */
  readonly name: string;
  readonly ledger: LedgerSource;
  /** Looks at what lies beside the entries, once these were replayed. */
  conclude(shelf: ObjectShelf): void;
}

/** What is to be audited. The same judges look at all of it, whatever it is read from. */
export interface AuditSource {
  /** null when no manifest can be read; then only the chain is judged. */
  readonly identified: IdentifiedManifest | null;
  /** The manifest's file name. */
  readonly manifestFile: string;
  readonly ledgerName: string;
  readonly ledger: LedgerSource;
  /** The manifests that it was bound from or that its plan supersedes, as far as they are at hand. */
  readonly lineage: readonly IdentifiedManifest[];
  /** The manifest that took the plan's place, when it is at hand. */
  readonly successor: IdentifiedManifest | null;
  /** The ledger of a manifest of the lineage; null when there is none here. What hinders reading it is a finding. */
  predecessor(manifest: Digest, findings: Findings): PredecessorSource | null;
  /** Checkpoint notes beside the ledger, as they lie there. */
  readonly notes: readonly NoteFile[];
  /** Further files that say how far the ledger had come, and are published: its `.head`, or a bundle's index. */
  readonly states: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  /** Signatures and time stamps beside manifest and ledger, as they lie there. */
  readonly attestations: Attestations;
  /** Reports that lie beside manifest and ledger, in forms that can be rebuilt. */
  readonly reports: readonly ReportFile[];
  /** null for a workspace. */
  readonly bundle: BundleFacts | null;
  /** Names in the work folder; those that belong to an attempt or a session are removed while the entries go by. */
  readonly workFolders: Set<string>;
  /** Looks at what lies beside the entries, once these were replayed. */
  conclude(audit: LedgerAudit, shelf: ObjectShelf, findings: Findings): Surroundings | Promise<Surroundings>;
  close(): void | Promise<void>;
}

/** Which bundle is audited. */
export interface BundleFacts {
  /** File or folder name. */
  readonly name: string;
  readonly form: 'folder' | 'tar';
  /** Its identity: the digest of its index. */
  readonly digest: Digest;
  /** Files among its reports that cannot be rebuilt. */
  readonly otherReports: readonly string[];
}

/** What was met beside the entries that is no finding. */
export interface Surroundings {
  readonly remarks: readonly string[];
  readonly checked: readonly string[];
  readonly notChecked: readonly string[];
  /** The ledger grew while it was audited. */
  readonly grown: boolean;
}
