import { attestationKind } from '../../manifest/attestations.js';
import { readManifestFileName } from '../../manifest/manifest.js';

/** The paths that a bundle can hold (docs/formats/bundle.md). A closed set: no other path is ever opened. */

export const BUNDLE_FORMAT = 'boundbook/bundle/1';
export const INDEX_FILE = 'bundle.json';

/** Members of the part that holds a ledger: `ledger`, or `predecessors/<ledger id>`. */
export const ENTRIES_FILE = 'entries.jsonl';
export const PACK_FILE = 'objects.pack';
export const TASK_IDS_FILE = 'task-ids.json';
export const SQLITE_FILE = 'ledger.sqlite';
export const LEDGER_PART = 'ledger';

export const LEDGER_ID = /^[0-9a-f]{32}$/;
const REPORT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const NOTE_NAME = /^(0|[1-9][0-9]{0,15})\.note$/;

export function predecessorPart(ledger: string): string {
  return `predecessors/${ledger}`;
}

/** Whether a file of a bundle may have this name in `report/`. */
export function isReportName(name: string): boolean {
  return REPORT_NAME.test(name);
}

/** The size that a note's file name in `checkpoints/` says; null for any other name. */
export function noteSize(name: string): number | null {
  const size = Number(NOTE_NAME.exec(name)?.[1] ?? Number.NaN);
  return Number.isSafeInteger(size) ? size : null;
}

/** Whether a bundle can hold a file of this path. */
export function isBundlePath(path: string): boolean {
  const [folder = '', name, file, ...more] = path.split('/');
  if (more.length > 0) return false;
  if (folder === 'predecessors') {
    return LEDGER_ID.test(name ?? '') && [ENTRIES_FILE, PACK_FILE, TASK_IDS_FILE].includes(file ?? '');
  }
  if (name === undefined || file !== undefined) return path === INDEX_FILE;
  switch (folder) {
    case 'ledger':
      return [ENTRIES_FILE, PACK_FILE, TASK_IDS_FILE, SQLITE_FILE].includes(name);
    case 'manifests':
      return readManifestFileName(name) !== null;
    case 'checkpoints':
      return noteSize(name) !== null;
    case 'attestations':
      return attestationKind(name) !== null;
    case 'report':
      return isReportName(name);
    default:
      return false;
  }
}

/** Whether a bundle can hold a folder of this path. */
export function isBundleFolder(path: string): boolean {
  const [folder = '', name, ...more] = path.split('/');
  if (folder === 'predecessors') return more.length === 0 && (name === undefined || LEDGER_ID.test(name));
  const folders = ['ledger', 'manifests', 'checkpoints', 'attestations', 'report'];
  return name === undefined && folders.includes(folder);
}
