import { BoundbookError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import type { Mismatch } from '../manifest/compare.js';

/** The error for a host that does not hold what a manifest binds: each mismatch as a fault, all of them as evidence. */
export function gateError(manifest: string, mismatches: readonly Mismatch[]): BoundbookError {
  const count = mismatches.length === 1 ? 'one mismatch' : `${mismatches.length} mismatches`;
  return new BoundbookError('GATE_REFUSED', `${manifest} can't be executed here: ${count}`, {
    hint: mismatches.some(({ path }) => path === '')
      ? 'Close what is pending with `boundbook bind`; restore what differs.'
      : 'Restore the files that differ. A plan that needs other files is another revision.',
    faults: mismatches.map(({ binding, path, expected, actual, reason }) => ({
      where: path === '' ? binding : `${binding}: ${path}`,
      message:
        expected === null && actual === null
          ? reason
          : `${reason} (expected ${expected ?? 'nothing'}, found ${actual ?? 'nothing'})`,
    })),
    evidence: { mismatches: mismatches.map(mismatchJson) },
  });
}

export function mismatchJson({ binding, path, expected, actual, reason }: Mismatch): JsonObject {
  return { binding, path, expected, actual, reason };
}

/** A manifest that was edited or emptied is refused by the gate like everything else that differs (law 1). */
export function alteredManifestError(error: BoundbookError): BoundbookError {
  return new BoundbookError('GATE_REFUSED', error.message, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.evidence === undefined ? {} : { evidence: error.evidence }),
    faults: error.faults,
    cause: error,
  });
}
