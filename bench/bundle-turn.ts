import { createHash, hash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { auditBundle } from '../src/audit/audit.js';
import { bareLoop } from './bare-loop.js';
import { peakMemory } from './memory.js';

/** One turn of the bundle bench, in a process of its own: `node bundle-turn.js bare|audit BUNDLE` prints a {@link Turn}. */
export interface Turn {
  readonly entries: number;
  readonly ms: number;
  /** Time of all threads on the processors. */
  readonly cpuMs: number;
  /** The most that was resident, in bytes. */
  readonly rss: number;
}

const CHUNK_BYTES = 1 << 20;

/**
 * Reads everything that a bundle holds once and hashes it piece by piece, as an auditor must at least: each line of
 * `entries.jsonl`, each object of the pack, the body of each row of the database, each other file as a whole. One thread,
 * no piece twice, nothing looked at.
 *
 * @returns the number of entries
 */
function hashBundle(bundle: string): number {
  let entries = 0;
  for (const file of readdirSync(bundle, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const path = join(file.parentPath, file.name);
    if (file.name === 'entries.jsonl') entries = hashPieces(path, endOfLine);
    else if (file.name === 'objects.pack') hashPieces(path, endOfRecord);
    else if (file.name === 'ledger.sqlite') bareLoop(path);
    else hashFile(path);
  }
  return entries;
}

/** Where the piece that begins at `at` ends, and where the next one begins; null when more must be read. */
type PieceEnd = (bytes: Buffer, at: number) => { readonly from: number; readonly to: number } | null;

function endOfLine(bytes: Buffer, at: number) {
  const to = bytes.indexOf(0x0a, at);
  return to < 0 ? null : { from: at, to };
}

function endOfRecord(bytes: Buffer, at: number) {
  const header = bytes.indexOf(0x0a, at);
  if (header < 0) return null;
  const from = header + 1;
  const to = from + Number(bytes.toString('latin1', at + 65, header));
  return to < bytes.length ? { from, to } : null;
}

function hashPieces(path: string, endOf: PieceEnd): number {
  let rest: Buffer = Buffer.alloc(0);
  let pieces = 0;
  for (const chunk of chunksOf(path)) {
    const bytes = Buffer.concat([rest, chunk]);
    let at = 0;
    for (let piece = endOf(bytes, at); piece !== null; piece = endOf(bytes, at)) {
      hash('sha256', bytes.subarray(piece.from, piece.to));
      at = piece.to + 1;
      pieces++;
    }
    rest = bytes.subarray(at);
  }
  return pieces;
}

function hashFile(path: string): void {
  const sum = createHash('sha256');
  for (const chunk of chunksOf(path)) sum.update(chunk);
  sum.digest();
}

function* chunksOf(path: string): Generator<Buffer> {
  const file = openSync(path, 'r');
  const buffer = Buffer.alloc(CHUNK_BYTES);
  try {
    for (let count = readSync(file, buffer); count > 0; count = readSync(file, buffer)) {
      yield buffer.subarray(0, count);
    }
  } finally {
    closeSync(file);
  }
}

async function auditClean(bundle: string): Promise<number> {
  const { findings, ledger } = await auditBundle(bundle);
  const [finding] = findings;
  if (finding !== undefined) throw new Error(`the bundle is not clean: ${finding.message}`);
  return ledger.head.size;
}

const [, , what, bundle = ''] = process.argv;
const from = performance.now();
const before = process.cpuUsage();
const entries = what === 'audit' ? await auditClean(bundle) : hashBundle(bundle);
const used = process.cpuUsage(before);
const turn: Turn = {
  entries,
  ms: performance.now() - from,
  cpuMs: (used.user + used.system) / 1000,
  rss: peakMemory(),
};
process.stdout.write(JSON.stringify(turn));
