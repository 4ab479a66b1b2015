import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { compileReportSchema, type ReportSchema } from '../grading/report-schema.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { PlanContext } from '../ledger/plan-index.js';
import { bindingOf, type IdentifiedManifest, type Manifest } from '../manifest/manifest.js';
import { type PartialTaskSets, resolvePartialTaskSets } from '../protocol/partial-tasks.js';
import { resolveTaskSets, taskFiles } from '../protocol/tasks.js';
import { planDigest } from '../slots/plan.js';
import type { Findings } from './finding.js';
import type { ObjectShelf } from './objects.js';

/** The plan as it follows from the manifest and the task files that the ledger kept. */
export interface RebuiltPlan {
  readonly context: PlanContext;
  readonly tasks: PartialTaskSets;
}

/** Checks what a ledger says it was opened for against the manifest (law 1, P10). */
export function checkOpening(
  opened: EntryOf<'ledger.opened'>,
  { manifest, digest }: IdentifiedManifest,
  findings: Findings,
): void {
  const where = { seq: opened.seq };
  if (opened.manifest !== digest) {
    findings.add({
      code: 'MANIFEST_FOREIGN',
      where: { ...where, pointer: '/manifest' },
      message: `the ledger was opened for the manifest ${opened.manifest}, not for ${digest}`,
      evidence: { expected: digest, actual: opened.manifest },
    });
  }
  // A manifest file is its own canonical form, so that object and identity have one digest.
  if (opened.manifest_object !== opened.manifest) {
    findings.add({
      code: 'MANIFEST_FOREIGN',
      where: { ...where, pointer: '/manifest_object' },
      message: 'the manifest that was kept is not the one that is named',
      evidence: { expected: opened.manifest, actual: opened.manifest_object },
    });
  }
  checkTaskObjects(opened, manifest, findings);
  if (!manifest.execution_ready) {
    findings.add({
      code: 'MANIFEST_NOT_READY',
      where: { ...where, pointer: '/manifest' },
      message: `the ledger belongs to a manifest with ${manifest.pending.length} pending items`,
      evidence: { pending: manifest.pending.slice(0, 100) },
    });
  }
}

function checkTaskObjects(opened: EntryOf<'ledger.opened'>, manifest: Manifest, findings: Findings): void {
  const due = taskFiles(manifest.protocol).map(({ binding }) => binding);
  for (const binding of new Set([...due, ...Object.keys(opened.task_objects)])) {
    const expected = due.includes(binding) ? (bindingOf(manifest, binding)?.digest ?? null) : null;
    const actual = opened.task_objects[binding] ?? null;
    if (actual === expected) continue;
    findings.add({
      code: 'PLAN_DIFFERS',
      clause: 'P10',
      where: {
        seq: opened.seq,
        pointer: `/task_objects/${binding.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      },
      message: `${binding} is bound as ${expected ?? 'nothing'}; the ledger kept ${actual ?? 'nothing'}`,
      evidence: { expected, actual },
    });
  }
}

/**
 * Expands the plan from the task files that the ledger kept, and compares count and digest with the frozen ones.
 *
 * @param stated ids of task files that may be redacted, by task set
 * @returns null when the tasks are not there or make no plan, which is then a finding
 */
export function rebuildPlan(
  opened: EntryOf<'ledger.opened'>,
  { manifest, digest }: IdentifiedManifest,
  shelf: ObjectShelf,
  stated: ReadonlyMap<string, readonly string[]>,
  findings: Findings,
): RebuiltPlan | null {
  const { protocol } = manifest;
  const files = new Map<string, Uint8Array>();
  const ids = new Map<string, readonly string[]>();
  for (const { binding } of taskFiles(protocol)) {
    const object = opened.task_objects[binding];
    const bytes =
      object === undefined ? null : shelf.read(object, { seq: opened.seq, pointer: '/task_objects' });
    const set = binding.slice('tasks/'.length);
    const list = stated.get(set);
    if (bytes !== null) files.set(binding, bytes);
    else if (object !== undefined && shelf.isRedacted(object) && list !== undefined) ids.set(set, list);
  }
  try {
    const tasks =
      ids.size === 0
        ? { ...resolveTaskSets(protocol, files), bare: new Set<string>() }
        : resolvePartialTaskSets(protocol, files, ids);
    const plan = planDigest(protocol, tasks.ids);
    const frozen = manifest.plan;
    if (frozen?.count !== plan.count || frozen.digest !== plan.digest) {
      findings.add({
        code: 'PLAN_DIFFERS',
        where: { pointer: '/plan' },
        message: `the tasks make ${plan.count} slots with the digest ${plan.digest}`,
        evidence: { expected: frozen === null ? null : { ...frozen }, actual: { ...plan } },
      });
    }
    return { context: { manifest: digest, protocol, taskIds: tasks.ids, plan }, tasks };
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    findings.add({
      code: 'PLAN_DIFFERS',
      where: { pointer: '/plan' },
      message: `the plan cannot be expanded: ${error.message}`,
      evidence: error.faults.slice(0, 20).map(({ where, message }) => ({ where, message })),
    });
    return null;
  }
}

/** The declared report schemas, read from the workspace and used only when they have the bound digest. */
export class SchemaShelf {
  readonly #manifest: Manifest;
  readonly #files: ReadonlyMap<string, Uint8Array>;
  readonly #compiled = new Map<string, ReportSchema | null>();
  /** Conditions whose schema was not at hand: their reports were checked without it. */
  readonly missing = new Set<string>();

  /** @param files bytes by binding name; what differs from the binding is not used */
  constructor(manifest: Manifest, files: ReadonlyMap<string, Uint8Array>) {
    this.#manifest = manifest;
    this.#files = files;
  }

  /** The schema of a condition; null when it declares none, or it is not at hand. */
  of(condition: string): ReportSchema | null {
    const known = this.#compiled.get(condition);
    if (known !== undefined) return known;
    const schema = this.#compile(condition);
    this.#compiled.set(condition, schema);
    return schema;
  }

  #compile(condition: string): ReportSchema | null {
    const name = `report-schema/${condition}`;
    const bound: Digest | undefined = bindingOf(this.#manifest, name)?.digest;
    if (bound === undefined) return null;
    const bytes = this.#files.get(name);
    if (bytes !== undefined && digestOf(bytes) === bound) return compileReportSchema(bytes, name);
    this.missing.add(condition);
    return null;
  }
}
