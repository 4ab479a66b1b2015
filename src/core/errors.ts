import { ERROR_CODES, type ErrorCode, type ExitCode } from './error-codes.js';
import type { JsonValue } from './json.js';

/** One fault among several that are reported together: where it lies, what is wrong, what to do. */
export interface Fault {
  /** A JSON pointer, a file name or `file:line:column`. */
  readonly where: string;
  readonly message: string;
  readonly hint?: string;
  readonly line?: number;
  readonly column?: number;
}

interface ErrorDetails {
  /** What the user can do about it. */
  readonly hint?: string;
  /** What was found: values, digests, positions. */
  readonly evidence?: JsonValue;
  /** All faults that were found in one pass, when there can be several. */
  readonly faults?: readonly Fault[];
  readonly cause?: unknown;
}

/** The one error class of the product. Its code is one of {@link ERROR_CODES}; its exit code follows from it. */
export class BoundbookError extends Error {
  override readonly name = 'BoundbookError';
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly evidence: JsonValue | undefined;
  readonly faults: readonly Fault[];

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.hint = details.hint;
    this.evidence = details.evidence;
    this.faults = details.faults ?? [];
  }

  get exitCode(): ExitCode {
    return ERROR_CODES[this.code].exit;
  }

  /** The form in which `--json` prints an error. */
  toJson(): JsonValue {
    return {
      error: {
        code: this.code,
        message: this.message,
        hint: this.hint ?? null,
        exit: this.exitCode,
        faults: this.faults.map((fault) => ({
          where: fault.where,
          message: fault.message,
          ...(fault.hint === undefined ? {} : { hint: fault.hint }),
          ...(fault.line === undefined ? {} : { line: fault.line }),
          ...(fault.column === undefined ? {} : { column: fault.column }),
        })),
        ...(this.evidence === undefined ? {} : { evidence: this.evidence }),
      },
    };
  }
}

/** The `code` of a Node system error (`ENOENT`), or undefined. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
