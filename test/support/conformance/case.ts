import { canonicalText } from '../../../src/core/canonical-json.js';
import { CompactRange, leafHash } from '../../../src/ledger/merkle.js';
import type { Loose, LooseBundle } from '../loose-bundle.js';
import type { BaseName } from './bases.js';

/** One bundle of the conformance folder, as a change of a sound one. */
export interface Case {
  /** Of its folder; ends in `_fail` when an audit must find something. */
  readonly name: string;
  /** One line: what was done, and by which rule it is or is not found. */
  readonly why: string;
  readonly base?: BaseName;
  /** The work of somebody who hashes everything anew afterwards. */
  readonly edit?: (bundle: LooseBundle) => void;
  /** What is broken in the files that were written, without hashing anew unless it does so itself. */
  readonly after?: (folder: string) => void;
  /** Positions, links and checkpoint roots are left as the edit made them. */
  readonly asWritten?: boolean;
  /** Verifier keys that the reader of the bundle trusts; they lie beside it, in `keys`, one a line. */
  readonly keys?: readonly string[];
  /** Lines of the reader's policy, in `policy`. */
  readonly policy?: readonly string[];
}

/** Makes positions, links and the roots in checkpoints follow from the entries. */
export function chainAnew(entries: readonly Loose[]): void {
  const range = new CompactRange();
  let prev: string | null = null;
  for (const [seq, entry] of entries.entries()) {
    entry.seq = seq;
    entry.prev = prev;
    if (entry.type === 'checkpoint' && entry.forged !== true) {
      entry.size = seq;
      entry.root = range.root().toString('hex');
    }
    delete entry.forged;
    const leaf = leafHash(Buffer.from(canonicalText(entry)));
    range.append(leaf);
    prev = leaf.toString('hex');
  }
}

/** The report says what the shorter or longer ledger does not: without one, only the book is judged. */
export function dropReports(bundle: LooseBundle): void {
  for (const path of [...bundle.files.keys()]) if (path.startsWith('report/')) bundle.files.delete(path);
}

/** Changes `report.json` alone. */
export function editReport(bundle: LooseBundle, edit: (report: never) => void): void {
  const report = JSON.parse(bundle.files.get('report/report.json')?.toString('utf8') ?? 'null') as never;
  dropReports(bundle);
  edit(report);
  bundle.files.set('report/report.json', Buffer.from(canonicalText(report)));
}

/** The slots in the order in which they were begun. */
export function slotAt(bundle: LooseBundle, n: number): string {
  const slots = bundle.entries.filter(({ type, kind }) => type === 'attempt.started' && kind === 'first');
  const slot = slots[n]?.slot;
  if (typeof slot !== 'string') throw new Error(`no slot ${n}`);
  return slot;
}

/** The n-th entry of a type within a slot. */
export function entryOf(bundle: LooseBundle, slot: string, type: string, n = 0): Loose {
  const found = bundle.of(slot).filter((entry) => entry.type === type)[n];
  if (found === undefined) throw new Error(`no ${type} ${n} of ${slot}`);
  return found;
}

/** The stage of an attempt. */
export function stageOf(bundle: LooseBundle, slot: string, stage: string, n = 0): Loose {
  const found = bundle.of(slot).filter((entry) => entry.type === 'stage.finished' && entry.stage === stage)[
    n
  ];
  if (found === undefined) throw new Error(`no ${stage} ${n} of ${slot}`);
  return found;
}

export function resultOf(entry: Loose): Record<string, unknown> {
  return entry.result as Record<string, unknown>;
}

/** Where an entry stands. */
export function at(bundle: LooseBundle, entry: Loose): number {
  return bundle.entries.indexOf(entry);
}

export function copyOf(entry: Loose): Loose {
  return structuredClone(entry);
}
