import { attemptId } from '../attempts/slot-state.js';
import type { Digest } from '../core/digest.js';
import { hexOf } from '../core/digest.js';
import { type CarriedSlot, SettledSlot } from './slot-records.js';
import type { RecordForm } from './slot-table.js';

/**
 * Slots that nothing can happen to any more, as bytes: report (zeros when there is none), value, number in the plan, and
 * a word that the kind of record defines. Little-endian, on every machine.
 */
const REPORT_BYTES = 32;
const VALUE_AT = REPORT_BYTES;
const INDEX_AT = VALUE_AT + 8;
const WORD_AT = INDEX_AT + 4;
const BYTES = WORD_AT + 4;

interface Parts {
  readonly report: Digest | null;
  readonly value: number;
  readonly index: number;
  readonly word: number;
}

export const SETTLED_FORM: RecordForm<SettledSlot> = {
  bytes: BYTES,
  readIndex: (bytes, at) => bytes.readUInt32LE(at + INDEX_AT),
  write: (bytes, at, { index, value, report, history }) =>
    writeParts(bytes, at, { report, value, index, word: 2 * history + (report === null ? 0 : 1) }),
  read: (bytes, at) => {
    const word = bytes.readUInt32LE(at + WORD_AT);
    const { value, index, report } = readParts(bytes, at, word % 2 === 1);
    return new SettledSlot(index, value, report, Math.floor(word / 2));
  },
};

/** What the two lowest bits of a carried slot's word say; above them stands the number of attempts. */
const CARRIED_KINDS = ['report', 'model_failure', 'undetermined', 'limit_reached'] as const;

/** Behind the other parts: the position at which the slot was closed, as a double, which is exact for every position. */
const CLOSED_BY_AT = BYTES;

export const CARRIED_FORM: RecordForm<CarriedSlot> = {
  bytes: BYTES + 8,
  readIndex: (bytes, at) => bytes.readUInt32LE(at + INDEX_AT),
  write: (bytes, at, { index, closedBy, attempts, outcome }) => {
    const kind = outcome.kind === 'settled' ? outcome.basis.kind : outcome.reason;
    const report =
      outcome.kind === 'settled' && outcome.basis.kind === 'report' ? outcome.basis.report : null;
    const value = outcome.kind === 'settled' ? outcome.value : 0;
    const word = CARRIED_KINDS.length * attempts + CARRIED_KINDS.indexOf(kind);
    writeParts(bytes, at, { report, value, index, word });
    bytes.writeDoubleLE(closedBy, at + CLOSED_BY_AT);
  },
  read: (bytes, at, slot) => {
    const closedBy = bytes.readDoubleLE(at + CLOSED_BY_AT);
    const word = bytes.readUInt32LE(at + WORD_AT);
    const kind = CARRIED_KINDS[word % CARRIED_KINDS.length] ?? 'report';
    const attempts = Math.floor(word / CARRIED_KINDS.length);
    const { value, index, report } = readParts(bytes, at, kind === 'report');
    if (kind === 'undetermined' || kind === 'limit_reached') {
      return { index, closedBy, attempts, outcome: { kind: 'unresolved', reason: kind } };
    }
    // That the last of them is the basis was lawful to say and nothing else.
    const attempt = attemptId(slot, attempts);
    const basis =
      report === null
        ? ({ kind: 'model_failure', attempt } as const)
        : ({ kind: 'report', attempt, report } as const);
    return { index, closedBy, attempts, outcome: { kind: 'settled', value, basis } };
  },
};

function writeParts(bytes: Buffer, at: number, { report, value, index, word }: Parts): void {
  if (report === null) bytes.fill(0, at, at + REPORT_BYTES);
  else bytes.write(hexOf(report), at, 'hex');
  bytes.writeDoubleLE(value, at + VALUE_AT);
  bytes.writeUInt32LE(index, at + INDEX_AT);
  bytes.writeUInt32LE(word, at + WORD_AT);
}

function readParts(bytes: Buffer, at: number, hasReport: boolean): Omit<Parts, 'word'> {
  return {
    report: hasReport ? `sha256:${bytes.toString('hex', at, at + REPORT_BYTES)}` : null,
    value: bytes.readDoubleLE(at + VALUE_AT),
    index: bytes.readUInt32LE(at + INDEX_AT),
  };
}
