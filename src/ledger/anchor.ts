import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { z } from 'zod';
import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError, systemCode } from '../core/errors.js';
import { readError, writeError } from '../core/files.js';
import { parseStrictJson } from '../core/strict-json.js';

/**
 * What is remembered of a ledger outside its folder: `<folder>.head`, one line of canonical JSON. A chain whose end
 * is cut off verifies (F-111), as does a copy without its log (F-99) or an older copy put back; the anchor says how
 * long the chain was. It may lag behind the ledger, never lead: it is written after the commit.
 */
export interface Anchor {
  readonly size: number;
  /** Leaf of the entry at `size - 1`, 64 hexadecimal digits. */
  readonly leaf: string;
  readonly time: string;
}

const anchorSchema = z.strictObject({
  size: z.int().min(1),
  leaf: z.string().regex(/^[0-9a-f]{64}$/),
  time: z.string(),
});

export function anchorPath(ledgerFolder: string): string {
  return `${ledgerFolder.replace(/\/+$/, '')}.head`;
}

/**
 * The anchor beside a ledger's folder; null when there is none.
 *
 * @throws {BoundbookError} LEDGER_DAMAGED when it cannot be understood; FILE_UNREADABLE.
 */
export function readAnchor(ledgerFolder: string): Anchor | null {
  const path = anchorPath(ledgerFolder);
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw readError(path, error);
  }
  try {
    if (!fstatSync(file).isFile() || fstatSync(file).size > 4096) throw malformed(path);
    return parseAnchor(readFileSync(file), path);
  } catch (error) {
    throw error instanceof BoundbookError ? error : malformed(path, error);
  } finally {
    closeSync(file);
  }
}

/** @throws {BoundbookError} LEDGER_DAMAGED when it is not the head of a ledger. */
export function parseAnchor(bytes: Buffer, path: string): Anchor {
  try {
    return anchorSchema.parse(parseStrictJson(bytes, path));
  } catch (error) {
    throw malformed(path, error);
  }
}

/**
 * Replaces the anchor as far as that is possible. An old anchor is still true, so a full disk or a lost right is no reason
 * to fail: the ledger itself is durable already.
 */
export function writeAnchor(ledgerFolder: string, anchor: Anchor): void {
  try {
    replaceAnchor(ledgerFolder, anchor);
  } catch {
    // The old one stays.
  }
}

/** Replaces the anchor. @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE. */
export function replaceAnchor(ledgerFolder: string, anchor: Anchor): void {
  const path = anchorPath(ledgerFolder);
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = openSync(temporary, 'wx');
    try {
      writeSync(file, `${canonicalText({ ...anchor })}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    try {
      unlinkSync(temporary);
    } catch {
      // Not made.
    }
    throw writeError(path, error);
  }
}

/** @throws {BoundbookError} LEDGER_DAMAGED when the ledger is shorter than its anchor, or another one. */
export function assertAnchored(
  anchor: Anchor,
  ledger: { readonly size: number; readonly leaf: string | null },
  file: string,
): void {
  if (ledger.size >= anchor.size && ledger.leaf === anchor.leaf) return;
  const short = ledger.size < anchor.size;
  throw new BoundbookError(
    'LEDGER_DAMAGED',
    short
      ? `${file} has ${ledger.size} entries, but had ${anchor.size} at ${anchor.time}: its end is missing`
      : `${file} holds another entry at position ${anchor.size - 1} than at ${anchor.time}: it was rewritten`,
    {
      hint: short
        ? 'An older copy, or one without its -wal file. Restore the newest whole copy of the folder; where there is none, `boundbook run --restored FILE --reason TEXT` goes on with this one, on the record.'
        : 'Restore the newest whole copy of the folder.',
      evidence: { anchor: { ...anchor }, size: ledger.size, leaf: ledger.leaf },
    },
  );
}

function malformed(path: string, cause?: unknown): BoundbookError {
  return new BoundbookError('LEDGER_DAMAGED', `${path} is not the head of a ledger`, {
    hint: 'It says how long the ledger was. Restore it together with the ledger it belongs to.',
    cause,
  });
}
