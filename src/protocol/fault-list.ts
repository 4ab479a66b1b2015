import { BoundbookError, type Fault } from '../core/errors.js';
import { type Path, pointerOf } from './json-pointer.js';
import type { LineIndex } from './lines.js';

/** A fault of a protocol before its line is known: the place in the value, or an offset of the text. */
export interface ProtocolFault {
  readonly path: Path;
  /** Offset of the text in UTF-16 code units, when it is known better than by the path. */
  readonly offset?: number;
  /** The fault lies in the key at the path, not in its value. */
  readonly onKey?: boolean;
  readonly message: string;
  readonly hint: string;
}

/** More are counted but not listed. */
const MAX_LISTED = 100;

/** Where a path lies in the text, as an offset; null when it has no place. */
export type Locate = (path: Path, onKey: boolean) => number | null;

/**
 * One error for all faults of a protocol, in the order of the text.
 *
 * @returns a BoundbookError PROTOCOL_INVALID, to be thrown.
 */
export function protocolError(
  name: string,
  faults: readonly ProtocolFault[],
  lines: LineIndex,
  locate: Locate,
): BoundbookError {
  const placed = faults
    .map((fault) => ({ fault, offset: fault.offset ?? locate(fault.path, fault.onKey === true) ?? 0 }))
    .sort((a, b) => a.offset - b.offset);
  const listed: Fault[] = placed.slice(0, MAX_LISTED).map(({ fault, offset }) => ({
    where: pointerOf(fault.path) || '/',
    message: fault.message,
    hint: fault.hint,
    ...lines.at(offset),
  }));
  const count = faults.length;
  const more = count > MAX_LISTED ? `; the first ${MAX_LISTED} are listed` : '';
  return new BoundbookError(
    'PROTOCOL_INVALID',
    `${name} has ${count === 1 ? 'a fault' : `${count} faults`}${more}`,
    {
      hint: 'Correct the file and run `boundbook check` again; `boundbook schema` prints its JSON Schema.',
      evidence: { total: count },
      faults: listed,
    },
  );
}
