import { type Digest, digestOfJson } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { bindingOf, type IdentifiedManifest, type Manifest } from '../../manifest/manifest.js';
import type { Decision } from '../../protocol/schema/analysis.js';
import type { Protocol } from '../../protocol/schema/protocol.js';
import type { TaskIds } from '../../slots/plan.js';
import { pairArms } from '../pairs.js';
import { conditionOf, evaluationSeedsOf, type PlanView, queueOf, tasksOf } from '../plan-view.js';
import { ownAmendment } from '../revisions.js';
import type { Report } from '../value.js';
import { contrastEstimand } from '../words.js';
import type { ClaimSource, ReportedBound } from './decision.js';

/**
 * What a manifest says about one of its decisions, for a claim.
 *
 * @param taskIds of the plan
 * @param producer domain name, ORCID or account of who makes the claim
 * @throws {BoundbookError} USAGE for a decision that is not declared; CLAIM_UNSUPPORTED when nothing pairs, or a task file
 * is not bound
 */
export function claimSource(
  { manifest, digest }: IdentifiedManifest,
  taskIds: TaskIds,
  decision: string,
  producer: string,
): ClaimSource {
  const { protocol } = manifest;
  const { comparator, threshold, contrast: metric } = decisionOf(protocol, decision);
  const contrast = contrastOf(protocol, metric);
  const view: PlanView = { protocol, taskIds, demoted: false };
  const { tasks: set, reps } = queueOf(view, contrast.queue);
  const { pairs, pairing } = pairArms(protocol, contrast.minuend, contrast.subtrahend);
  if (pairing === 'none') {
    throw new BoundbookError('CLAIM_UNSUPPORTED', `the arms of ${metric} share no training seed`, {
      hint: 'Nothing can be claimed about a comparison that the plan cannot make.',
    });
  }
  const tasks = tasksOf(view, set);
  const seeds = evaluationSeedsOf(view, contrast.queue);
  const cells = cellsOf(pairs, contrast);
  const [seed] = seeds;
  return {
    createdAt: manifest.created,
    producer,
    decision,
    metric,
    comparator,
    threshold,
    estimand: contrastEstimand({ ...contrast, tasks }, pairing, pairs.length),
    grader: graderOf(view, contrast),
    plannedSlots: cells.length * tasks.length * reps * seeds.length,
    tasks: { name: set, digest: taskDigest(manifest, set) },
    model: onlyModel(manifest, cells),
    seed: seed === undefined || seeds.length > 1 ? null : BigInt(seed),
    protocol: manifest.protocol_source.raw_digest,
    manifest: digest,
    amendment: ownAmendment(manifest),
  };
}

/** The bound that a report gives for a contrast; null while outcomes are blinded (law 8) or nothing pairs. */
export function reportedBound(report: Pick<Report, 'results'>, contrast: string): ReportedBound | null {
  const found = report.results?.flatMap(({ contrasts }) => contrasts).find(({ id }) => id === contrast);
  const bound = found?.bound ?? null;
  return bound === null ? null : { lower: bound.lower.exact, upper: bound.upper.exact };
}

type Contrast = Protocol['analysis']['contrasts'][number];

/** One set of weights of one arm. */
interface Cell {
  readonly arm: string;
  readonly seed: number | null;
}

/** @throws {BoundbookError} USAGE for a decision that is not declared. */
function decisionOf({ analysis }: Protocol, id: string): Decision {
  const found = analysis.decisions?.find((one) => one.id === id);
  if (found !== undefined) return found;
  const declared = (analysis.decisions ?? []).map((one) => one.id);
  throw new BoundbookError('USAGE', `the protocol declares no decision ${JSON.stringify(id)}`, {
    hint: declared.length === 0 ? 'It declares none.' : `It declares: ${declared.join(', ')}.`,
  });
}

function contrastOf({ analysis }: Protocol, id: string): Contrast {
  const found = analysis.contrasts.find((one) => one.id === id);
  if (found !== undefined) return found;
  throw new BoundbookError('INTERNAL', `the plan has no contrast ${JSON.stringify(id)}`);
}

/** The sets of weights that are compared, each once: a fixed arm is met by several seeds. */
function cellsOf(
  pairs: readonly { readonly minuend: number | null; readonly subtrahend: number | null }[],
  contrast: Contrast,
): readonly Cell[] {
  const cells = new Map<string, Cell>();
  for (const { minuend, subtrahend } of pairs) {
    for (const cell of [
      { arm: contrast.minuend, seed: minuend },
      { arm: contrast.subtrahend, seed: subtrahend },
    ]) {
      cells.set(JSON.stringify([cell.arm, cell.seed]), cell);
    }
  }
  return [...cells.values()];
}

function graderOf(view: PlanView, { minuend, subtrahend }: Contrast): string {
  const kinds = [minuend, subtrahend].map((arm) => conditionOf(view, arm).grader.kind);
  return [...new Set(kinds)].join(' and ');
}

/** The file's digest; of a union the digest of the canonical JSON of its parts' digests, in their order. */
function taskDigest(manifest: Manifest, set: string): Digest {
  const declared = manifest.protocol.task_sets[set];
  if (declared !== undefined && 'union_of' in declared) {
    return digestOfJson(declared.union_of.map((part) => taskDigest(manifest, part)));
  }
  const binding = bindingOf(manifest, `tasks/${set}`);
  if (binding !== null) return binding.digest;
  throw new BoundbookError('CLAIM_UNSUPPORTED', `the task set ${set} is not bound yet`, {
    hint: 'Bind it first: boundbook bind.',
  });
}

/** The weights, when all of the comparison is about one set of them. */
function onlyModel(manifest: Manifest, cells: readonly Cell[]): ClaimSource['model'] {
  const names = new Set(
    cells.map(({ arm, seed }) => {
      const model = manifest.protocol.arms[arm]?.model ?? '';
      return seed === null ? model : `${model}@${seed}`;
    }),
  );
  const [name] = names;
  const binding = name === undefined || names.size > 1 ? null : bindingOf(manifest, `weights/${name}`);
  return name === undefined || binding === null ? null : { name, digest: binding.digest };
}
