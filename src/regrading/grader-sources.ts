import { isAbsolute, join, resolve } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import { changedSince, type WatchedBinding, watchedOf } from '../gate/watch.js';
import { compileReportSchema, type ReportSchema } from '../grading/report-schema.js';
import { type LedgerObject, toObject } from '../ledger/objects.js';
import type { RegradingCommand } from '../ledger/regradings.js';
import { bindingsOf, pathsOf } from '../manifest/gather.js';
import { type BindingRequest, observe } from '../manifest/observe.js';
import type { Binding } from '../manifest/schema.js';
import type { CommandGrader } from '../protocol/schema/command-grader.js';

const MAX_SCHEMA_BYTES = 2 ** 24;

/** The files of a grade command as they were hashed. */
export interface GraderSources {
  /** As `regrading.opened` has them. */
  readonly recorded: Omit<RegradingCommand, 'process'>;
  /** The verified place of each declared path. */
  readonly paths: ReadonlyMap<string, string>;
  readonly schema: { readonly object: LedgerObject; readonly check: ReportSchema } | null;
  readonly watched: readonly WatchedBinding[];
}

/**
 * Hashes everything that a grade command names, in the workspace.
 *
 * @throws {BoundbookError} BINDING_REFUSED; PROTOCOL_INVALID for a schema that is none; STOPPED
 */
export async function hashGrader(
  root: string,
  { sources, report_schema }: CommandGrader,
  signal: AbortSignal,
): Promise<GraderSources> {
  const requests = Object.entries(sources).map(
    ([name, path]): BindingRequest => ({
      name,
      path,
      absolute: placeOf(root, path),
      shape: 'either',
      content: 'source',
    }),
  );
  const observed = await observe(requests, { signal });
  const missing = observed.find(({ shape }) => shape === 'missing');
  if (missing !== undefined) {
    throw new BoundbookError('BINDING_REFUSED', `${missing.request.path} of the grader does not exist`, {
      hint: 'Paths of a grader start at the workspace.',
      evidence: { source: missing.request.name },
    });
  }
  const schema = report_schema === undefined ? null : await readSchema(root, report_schema);
  const places = pathsOf(observed);
  return {
    recorded: {
      ...(schema === null ? {} : { schema: schema.object.digest }),
      sources: Object.fromEntries(bindingsOf(observed).map((one) => [one.name, sourceOf(one)])),
    },
    paths: new Map(requests.map(({ name, path }) => [path, places.get(name) ?? ''])),
    schema,
    watched: watchedOf(observed),
  };
}

/** @throws {BoundbookError} REGRADE_REFUSED when a file of the grader was touched since it was hashed */
export async function assertUntouched({ watched }: GraderSources): Promise<void> {
  const [change] = await changedSince(watched);
  if (change === undefined) return;
  throw new BoundbookError(
    'REGRADE_REFUSED',
    `a file of the grader changed while it graded: ${change.path} ${change.reason}`,
    {
      hint: 'What was recorded stays. Restore the files to finish this regrading; other files are another grader.',
      evidence: { source: change.binding, path: change.path },
    },
  );
}

function sourceOf(binding: Binding): RegradingCommand['sources'][string] {
  const { kind, size, digest } = binding;
  return { kind, files: binding.kind === 'tree' ? binding.files : 1, size, digest };
}

async function readSchema(root: string, path: string): Promise<NonNullable<GraderSources['schema']>> {
  const bytes = await readFileBounded(placeOf(root, path), { maxBytes: MAX_SCHEMA_BYTES });
  return { object: toObject(bytes), check: compileReportSchema(bytes, path) };
}

function placeOf(root: string, path: string): string {
  return isAbsolute(path) ? path : join(resolve(root), path);
}
