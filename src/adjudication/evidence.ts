import { isUtf8 } from 'node:buffer';
import type { Digest } from '../core/digest.js';
import type { JsonValue } from '../core/json.js';
import type { Entry } from '../ledger/entries/entry.js';
import type { LedgerReader } from '../ledger/reader.js';
import type { EvidenceMask } from './mask.js';

/** A part of what is known of an item, masked. */
export interface EvidencePiece {
  readonly name: string;
  readonly text: string;
}

/** Bytes of an object that are shown; what is cut is said. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * What the attempts of one slot left, up to the one that is judged, masked. Positions and times of entries are left out:
 * a plan runs arm by arm, so that they tell.
 *
 * @param entries that name the slot, in order
 * @param attempt the last one that counts
 */
export function evidenceOf(
  entries: readonly Entry[],
  attempt: string,
  reader: Pick<LedgerReader, 'getObject'>,
  mask: EvidenceMask,
): readonly EvidencePiece[] {
  const pieces: EvidencePiece[] = [];
  const numbers = new Map<string, number>();
  const add = (name: string, text: string) => pieces.push({ name, text: mask.text(text) });
  const addObject = (name: string, digest: Digest) =>
    pieces.push({ name, text: shown(reader, digest, mask) });
  for (const entry of entries) {
    if (!('attempt' in entry)) continue;
    if (entry.type === 'attempt.started') {
      // The attempt after the one that is judged belongs to what came of an earlier verdict.
      if (numbers.has(attempt)) break;
      numbers.set(entry.attempt, numbers.size + 1);
      add(label(numbers, entry, 'start'), lines({ kind: entry.kind }));
      if (entry.request !== null) addObject(label(numbers, entry, 'request'), entry.request);
      if (entry.candidate !== null) addObject(label(numbers, entry, 'candidate'), entry.candidate);
    } else if (entry.type === 'stage.finished') {
      const { stage, result, usage, finish_reason, seconds, queue_seconds } = entry;
      const signals = result.kind === 'failure' ? result.signals : {};
      const said = { ended_in: result.kind, ...signals, finish_reason, ...usage, seconds, queue_seconds };
      add(label(numbers, entry, stage), lines(said));
      for (const name of Object.keys(entry.objects).sort()) {
        const digest = entry.objects[name];
        if (digest !== undefined) addObject(label(numbers, entry, `${stage}, ${name}`), digest);
      }
      if (result.kind !== 'failure') addObject(label(numbers, entry, 'candidate'), result.candidate);
    } else if (entry.type === 'attempt.recovered') {
      add(label(numbers, entry, 'recovery'), lines({ found: entry.found, reason: entry.evidence.reason }));
    } else if (entry.type === 'attribution.recorded' && entry.by === 'rule') {
      add(label(numbers, entry, 'rule'), lines({ attribution: entry.attribution, rule: entry.rule }));
    }
  }
  return pieces;
}

function label(numbers: ReadonlyMap<string, number>, { attempt }: { attempt: string }, what: string): string {
  return `attempt ${numbers.get(attempt) ?? '?'}: ${what}`;
}

function lines(values: Readonly<Record<string, JsonValue | undefined>>): string {
  return Object.entries(values)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

function shown(reader: Pick<LedgerReader, 'getObject'>, digest: Digest, mask: EvidenceMask): string {
  const bytes = reader.getObject(digest);
  if (bytes.length === 0) return '(empty)';
  if (bytes.includes(0)) return '(binary: not shown)';
  const text = bytes.subarray(0, MAX_BYTES).toString('utf8');
  const cut = bytes.length > MAX_BYTES ? '\n(cut here)' : '';
  return `${isUtf8(bytes) ? '' : '(not all of it is UTF-8)\n'}${mask.text(text)}${cut}`;
}

/** Where a text stands in the evidence. */
export interface Hit {
  readonly piece: string;
  /** 1-based. */
  readonly line: number;
  readonly text: string;
}

const MAX_HITS = 200;

/** Lines that hold a text, without regard to case; at most 200. What is masked cannot be found. */
export function searchEvidence(pieces: readonly EvidencePiece[], sought: string): readonly Hit[] {
  const hits: Hit[] = [];
  const wanted = sought.toLowerCase();
  if (wanted === '') return hits;
  for (const { name, text } of pieces) {
    for (const [i, line] of text.split('\n').entries()) {
      if (!line.toLowerCase().includes(wanted)) continue;
      hits.push({ piece: name, line: i + 1, text: line.slice(0, 500) });
      if (hits.length === MAX_HITS) return hits;
    }
  }
  return hits;
}
