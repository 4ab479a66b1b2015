import { z } from 'zod';
import { canonicalBytes } from '../core/canonical-json.js';
import { type Digest, digestOf, isDigest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';

const digest = z.custom<Digest>(isDigest, 'is not a digest');
const count = z.int().min(0);
const hash = z.string().regex(/^[0-9a-f]{64}$/, 'is not 64 hexadecimal digits');

/** What a report says of itself. Figures are not read here: whether they follow from the book is for the audit. */
const identitySchema = z.looseObject({
  schema: z.literal('boundbook/report/1'),
  protocol: z.looseObject({ name: z.string().min(1), revision: z.int().min(1) }),
  manifest: z.looseObject({ digest }),
  plan: z.looseObject({ slots: count, digest }),
  ledger: z.looseObject({
    name: z.string().regex(/^[0-9a-f]{32}$/, 'is not the name of a ledger; was anything run?'),
    entries: z.int().min(1),
    leaf: hash,
    root: hash,
  }),
  visibility: z.enum(['blinded', 'unblinded', 'unblinded_partially']),
  coverage: z.looseObject({
    total: z.strictObject({ planned: count, settled: count, unresolved: count, pending: count }),
  }),
  results: z.array(z.unknown()).nullable(),
});

export interface ReportIdentity {
  /** Of the file. */
  readonly digest: Digest;
  readonly name: string;
  readonly revision: number;
  readonly manifest: Digest;
  /** `size` entries were read, `root` is the tree head over them. */
  readonly ledger: { readonly id: string; readonly size: number; readonly root: Digest };
  readonly slots: {
    readonly planned: number;
    readonly settled: number;
    readonly unresolved: number;
    readonly pending: number;
  };
  readonly unblinded: boolean;
}

/**
 * Reads a JSON report as `boundbook report --format json --out FILE` writes it: canonical JSON and nothing else.
 *
 * @throws {BoundbookError} REPORT_INVALID with all faults of form.
 */
export function readReport(bytes: Uint8Array, name: string): ReportIdentity {
  const value = readJson(bytes, name);
  const parsed = identitySchema.safeParse(value);
  if (!parsed.success) {
    throw invalid(`${name} is not a report as Boundbook writes it`, {
      faults: parsed.error.issues.map((issue) => ({
        where: `/${issue.path.map(String).join('/')}`,
        message: issue.message,
      })),
    });
  }
  if (!canonicalBytes(value).equals(bytes)) {
    throw invalid(`${name} was edited or formatted: its bytes are not the canonical form of its content`);
  }
  const { protocol, manifest, ledger, coverage, visibility, results } = parsed.data;
  if ((visibility === 'blinded') !== (results === null)) {
    throw invalid(`${name} contradicts itself: results and visibility do not go together`);
  }
  return {
    digest: digestOf(bytes),
    name: protocol.name,
    revision: protocol.revision,
    manifest: manifest.digest,
    ledger: { id: ledger.name, size: ledger.entries, root: `sha256:${ledger.root}` },
    slots: coverage.total,
    unblinded: visibility !== 'blinded',
  };
}

function readJson(bytes: Uint8Array, name: string): JsonValue {
  try {
    return parseStrictJson(bytes, name);
  } catch (error) {
    throw invalid(`${name} is not a JSON report`, { cause: error });
  }
}

function invalid(
  message: string,
  details: Partial<ConstructorParameters<typeof BoundbookError>[2]> = {},
): BoundbookError {
  return new BoundbookError('REPORT_INVALID', message, {
    hint: 'Write it with `boundbook report --format json --out FILE` and leave it as it is.',
    ...details,
  });
}
