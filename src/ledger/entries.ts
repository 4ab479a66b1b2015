import { z } from 'zod';
import type { SlotEvent } from '../attempts/machine.js';
import type { Digest } from '../core/digest.js';
import { CAUSES, HOST_EVENTS, OPERATORS_WORD, PHASES, STAGES } from '../protocol/schema.js';
import { FRACTION } from './recheck-sample.js';

/**
 * What a ledger can hold (DESIGN §8). An entry is the canonical JSON of one of these, with `seq`, `prev` and `time`
 * filled in by the store. Entries are small (< 60 KB): everything large is an object, named by its digest.
 */

const digest = z.custom<Digest>(
  (value) => typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value),
  'not a digest',
);
const hex32 = z.string().regex(/^[0-9a-f]{32}$/);
const seconds = z.number().min(0);

const signals = z.strictObject({
  stage: z.enum(STAGES),
  phase: z.enum(PHASES),
  cause: z.enum(CAUSES),
  http_status: z.int().nullable(),
  embedded_status: z.int().nullable(),
  exit_status: z.int().nullable(),
  signal: z.string().nullable(),
  service_alive: z.boolean().nullable(),
  /** Absent when no control group was watched. */
  oom_kill: z.boolean().exactOptional(),
  host_event: z.enum(HOST_EVENTS).exactOptional(),
  exception: z.string().nullable(),
  text: z.string().nullable(),
  first_token: z.boolean().exactOptional().describe('of a streamed answer: whether any token had come'),
});

const slotKey = z.strictObject({
  queue: z.string(),
  arm: z.string(),
  training_seed: z.int().nullable(),
  evaluation_seed: z.int(),
  task: z.string(),
  rep: z.int().min(0),
});

const mismatch = z.strictObject({
  binding: z.string(),
  path: z.string(),
  expected: z.string().nullable(),
  actual: z.string().nullable(),
  reason: z.string(),
});

const basis = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('report'), attempt: hex32, report: digest }),
  z.strictObject({ kind: z.literal('model_failure'), attempt: hex32 }),
]);

const hex64 = z.string().regex(/^[0-9a-f]{64}$/);
const alias = z.string().regex(/^[0-9a-f]{16}$/);
const attribution = z.enum(['infrastructure', 'model', 'undetermined']);

const unresolvedReason = z.enum(['undetermined', 'limit_reached']);

/** The state of a ledger after its first `size` entries. */
const ledgerState = z.strictObject({
  size: z.int().min(1),
  root: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe('root of the tree over those entries'),
});

/** A set of slots: their ids ascending, one a line. */
const slotSet = z.strictObject({ count: z.int().min(0), digest });

/** How a stage ended. */
const ended = {
  objects: z.record(z.string(), digest).describe('response, stdout, stderr … by name'),
  usage: z
    .strictObject({ prompt_tokens: z.int().nullable(), completion_tokens: z.int().nullable() })
    .nullable(),
  finish_reason: z.string().nullable(),
  seconds,
  queue_seconds: seconds.describe('waiting for a busy server before the first token; part of seconds'),
  first_token_seconds: seconds
    .exactOptional()
    .describe('of a streamed answer: from its request to its first token'),
} as const;

const drafts = {
  /** First entry of every ledger: what it belongs to. */
  'ledger.opened': z.strictObject({
    type: z.literal('ledger.opened'),
    ledger: hex32.describe('random name of this ledger'),
    incarnation: z.int().min(1).describe('1; one more each time an older copy was put back, see `restored`'),
    manifest: digest,
    manifest_object: digest.describe('the manifest file, kept as an object'),
    plan: z.strictObject({ count: z.int(), digest }),
    task_objects: z
      .record(z.string(), digest)
      .describe('binding name of each task file and its bytes as an object'),
    carries: ledgerState
      .extend({
        manifest: digest,
        ledger: hex32,
        again: z
          .int()
          .min(0)
          .describe(
            'slots that were closed there and are planned here under other conditions: they are executed again',
          ),
        dropped: z.int().min(0).describe('slots that were closed there and are not planned here'),
      })
      .nullable()
      .describe('the ledger of the superseded plan whose closed slots are carried over'),
    restored: z
      .strictObject({
        size: z.int().min(1),
        root: ledgerState.shape.root.nullable(),
        leaf: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .nullable()
          .describe('of the last entry; a head beside the folder knows it in place of the root'),
        note: z.string().max(16_384).nullable(),
        reason: z.string().min(1).max(4000),
      })
      .nullable()
      .describe(
        'the last state known outside, when an older copy was put back: what it had and this copy lacks is lost',
      ),
    tool: z.strictObject({ name: z.literal('boundbook'), version: z.string() }),
  }),
  /** Closed in the ledger that `ledger.opened` carries; never executed again here. */
  'slot.carried': z.strictObject({
    type: z.literal('slot.carried'),
    slot: hex32,
    key: slotKey,
    closed_by: z
      .int()
      .min(0)
      .describe('position of the settlement, or of the last entry that left it unresolved'),
    attempts: z.int().min(1).describe('attempts that were started there'),
    outcome: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('settled'), value: z.number(), basis }),
      z.strictObject({ kind: z.literal('unresolved'), reason: unresolvedReason }),
    ]),
  }),
  /** A session may execute: everything was re-hashed and agrees. */
  'gate.passed': z.strictObject({
    type: z.literal('gate.passed'),
    session: hex32,
    manifest: digest,
    files: z.int(),
    bytes: z.int(),
    process: z.strictObject({
      boot_id: z.string(),
      pid: z.int(),
      started: z.string().describe('start time as the kernel counts it'),
    }),
    host: z.strictObject({
      node: z.string(),
      platform: z.string(),
      arch: z.string(),
      slurm_job: z.string().max(100).optional().describe('the Slurm job that the session runs in'),
    }),
    heartbeat_s: z
      .int()
      .min(1)
      .optional()
      .describe('the session promises an entry at least this often; absent: it promises nothing'),
    selection: z.record(z.string(), z.union([z.string(), z.int()])),
  }),
  'gate.refused': z.strictObject({
    type: z.literal('gate.refused'),
    manifest: digest,
    mismatches: z.array(mismatch).max(100),
    total: z.int().describe('number of mismatches; the list is cut at 100'),
  }),
  'service.started': z.strictObject({
    type: z.literal('service.started'),
    session: hex32,
    service: z.string().describe('model@seed and a counter'),
    model: z.string(),
    pid: z.int(),
    port: z.int(),
    start: z.int().describe('0 for the first start in this session, then counting restarts'),
    effective: digest.nullable().describe('what the service says of itself, as an object'),
    seconds: seconds.describe('from spawn to ready'),
  }),
  /** P10: a service that the gate did not start; what it serves rests on the operator's word. */
  'service.attached': z.strictObject({
    type: z.literal('service.attached'),
    session: hex32,
    service: z.string().describe('model@seed and a counter'),
    model: z.string(),
    origin: z.string(),
    accepted: z.literal(OPERATORS_WORD),
    effective: digest.nullable().describe('what the service says of itself, as an object'),
    seconds: seconds.describe('from the first question to ready'),
  }),
  /** What a service says of itself, beside what it, or an earlier one of its model, said before. */
  'service.described': z.strictObject({
    type: z.literal('service.described'),
    session: hex32,
    service: z.string(),
    model: z.string(),
    at: z
      .enum(['start', 'end'])
      .describe('`start`: against the first service of the model; `end`: against its own start'),
    effective: digest,
    compared_with: z.int().min(0).describe('position of the entry whose `effective` it is held against'),
    changed: z.array(z.string().max(1000)).max(50).describe('JSON pointers to what is different'),
    total: z.int().min(0).describe('number of differences; the list is cut at 50'),
  }),
  /** Answers to the fixed prompts of the protocol, to catch a service that changes. */
  'canary.recorded': z.strictObject({
    type: z.literal('canary.recorded'),
    session: hex32,
    service: z.string(),
    model: z.string(),
    at: z.enum(['start', 'end']),
    answers: digest,
    compared_with: z.int().min(0).nullable().describe('position of the reference; null for the reference'),
    verdict: z.enum(['reference', 'same', 'differs']),
    largest_logprob_difference: z.number().min(0).nullable(),
  }),
  'service.stopped': z.strictObject({
    type: z.literal('service.stopped'),
    session: hex32,
    service: z.string(),
    model: z.string(),
    reason: z.enum(['done', 'died', 'run_ended', 'bindings_changed', 'unresponsive']),
    exit_status: z.int().nullable(),
    signal: z.string().nullable(),
    seconds: seconds.describe('from spawn to end'),
    gpus: z.int(),
  }),
  /** law 2: durable before the attempt touches a model. */
  'attempt.started': z.strictObject({
    type: z.literal('attempt.started'),
    session: hex32,
    attempt: hex32,
    slot: hex32,
    key: slotKey,
    kind: z.enum(['first', 'replacement', 'regrade']),
    of: hex32.nullable(),
    sampling_seed: z.int().min(0),
    candidate: digest.nullable(),
    request: digest.nullable().describe('the request as it will be sent'),
  }),
  'stage.finished': z.strictObject({
    type: z.literal('stage.finished'),
    attempt: hex32,
    slot: hex32,
    stage: z.enum(STAGES),
    result: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('candidate'), candidate: digest }),
      z.strictObject({ kind: z.literal('report'), candidate: digest, report: digest, value: z.number() }),
      z.strictObject({ kind: z.literal('failure'), signals }),
    ]),
    ...ended,
  }),
  'attempt.finished': z.strictObject({
    type: z.literal('attempt.finished'),
    attempt: hex32,
    slot: hex32,
    outcome: z.enum(['report', 'failure']),
    seconds,
  }),
  'attempt.recovered': z.strictObject({
    type: z.literal('attempt.recovered'),
    attempt: hex32,
    slot: hex32,
    session: hex32.describe('the session that found it'),
    found: z
      .enum(['candidate', 'nothing', 'end'])
      .describe('`end`: the end of a stage, which the next entry records'),
    evidence: z.strictObject({
      reason: z
        .enum(['boot_changed', 'process_gone', 'pid_reused', 'same_process', 'abandoned'])
        .describe('`abandoned`: the session itself gave it up on a second stop'),
      boot_id: z.string(),
      pid: z.int(),
    }),
  }),
  'attribution.recorded': z.strictObject({
    type: z.literal('attribution.recorded'),
    attempt: hex32,
    slot: hex32,
    attribution,
    by: z.enum(['rule', 'adjudicator']),
    rule: z.string().nullable(),
    late: z.boolean(),
    reason: z.string().max(4000).nullable(),
  }),
  'slot.settled': z.strictObject({ type: z.literal('slot.settled'), slot: hex32, value: z.number(), basis }),
  'slot.unresolved': z.strictObject({
    type: z.literal('slot.unresolved'),
    slot: hex32,
    reason: unresolvedReason,
  }),
  /** Nothing happened for a while, and the session is at work (B8). */
  'session.alive': z.strictObject({ type: z.literal('session.alive'), session: hex32 }),
  /** P21: what a scheduler says that a job was given. */
  'account.recorded': z.strictObject({
    type: z.literal('account.recorded'),
    source: z.literal('slurm'),
    job: z.string().min(1).max(100),
    seconds: z.int().min(0).describe('elapsed time of the allocation'),
    gpus: z.int().min(0).describe('devices that were allocated'),
    object: digest.describe("the scheduler's own words"),
  }),
  /** B6: outputs are graded again with a corrected grader, beside what they settled on. */
  'regrading.opened': z.strictObject({
    type: z.literal('regrading.opened'),
    regrading: hex32,
    grader: digest.describe('canonical JSON of the grader, as an object'),
    conditions: z.array(z.string()).min(1).max(1000),
    reason: z.string().min(1).max(4000),
    slots: z.strictObject({
      count: z.int().min(1),
      digest: digest.describe(
        'file digest of the ids of all slots that a report settled, ascending, one a line',
      ),
    }),
  }),
  'regrading.recorded': z.strictObject({
    type: z.literal('regrading.recorded'),
    regrading: hex32,
    slot: hex32,
    candidate: digest,
    before: z.strictObject({ value: z.number(), report: digest }).describe('what the slot settled on'),
    result: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('graded'), value: z.number(), report: digest }),
      z.strictObject({ kind: z.literal('truncated') }),
    ]),
  }),
  'regrading.closed': z.strictObject({
    type: z.literal('regrading.closed'),
    regrading: hex32,
    changed: z.int().min(0),
    same: z.int().min(0),
    truncated: z.int().min(0),
  }),
  /** B10: a sample of the outputs that the stop rule ended is generated again without it, beside what they settled on. */
  'recheck.declared': z.strictObject({
    type: z.literal('recheck.declared'),
    recheck: hex32,
    session: hex32,
    fraction: z.string().regex(FRACTION),
    stopped: slotSet.describe('slots that settled on an output that the stop rule ended'),
    sample: slotSet.describe('those of them that are generated again'),
  }),
  /** Durable before the request is sent. */
  'recheck.started': z.strictObject({
    type: z.literal('recheck.started'),
    recheck: hex32,
    session: hex32,
    slot: hex32,
    request: digest,
  }),
  'recheck.finished': z.strictObject({
    type: z.literal('recheck.finished'),
    recheck: hex32,
    session: hex32.describe('the session that sent it, or one that found it gone'),
    slot: hex32,
    result: z.discriminatedUnion('kind', [
      z.strictObject({
        kind: z.literal('graded'),
        candidate: digest,
        report: digest,
        value: z.number(),
        before: z.number().describe('the value that the slot settled on'),
      }),
      z.strictObject({ kind: z.literal('failure'), signals }),
    ]),
    ...ended,
  }),
  'recheck.closed': z.strictObject({
    type: z.literal('recheck.closed'),
    recheck: hex32,
    recovered: z.int().min(0).describe('outputs with a higher value than before'),
    not_recovered: z.int().min(0),
    failed: z.int().min(0),
  }),
  /** The end of a session: why nothing more is started. */
  'run.paused': z.strictObject({
    type: z.literal('run.paused'),
    session: hex32,
    reason: z.enum([
      'finished',
      'limit',
      'signal',
      'breaker',
      'disk_full',
      'service_failed',
      'service_changed',
      'bindings_changed',
      'fault',
    ]),
    detail: z.string().max(2000).nullable(),
  }),
  unblinded: z.strictObject({
    type: z.literal('unblinded'),
    partial: z.boolean(),
    planned: z.int(),
    settled: z.int(),
    unresolved: z.int(),
    pending: z.int(),
  }),
  /** The tree over all entries before this one, as it is published. */
  checkpoint: z.strictObject({
    type: z.literal('checkpoint'),
    size: z.int().min(1).describe('number of entries before this one, so its own position'),
    root: z.string().regex(/^[0-9a-f]{64}$/),
    note: z.string().max(16_384).nullable().describe('the signed note; null when no key was given'),
    timestamps: z
      .array(digest)
      .max(100)
      .describe(
        'time-stamp tokens, as objects, that lay beside the manifest or the ledger and no entry named before',
      ),
  }),
  /** B9: a change made in mid-run and the slots that it touches. */
  'deviation.noted': z.strictObject({
    type: z.literal('deviation.noted'),
    text: z.string().min(1).max(4000),
    selector: z
      .record(z.string(), z.array(z.string()))
      .describe('field and accepted values; empty: all slots'),
    slots: z.strictObject({
      count: z.int().min(1),
      digest: digest.describe('file digest of the selected slot ids, ascending, one a line'),
    }),
  }),
  /** The plan was amended; nothing more is started here. */
  amended: z.strictObject({
    type: z.literal('amended'),
    successor: digest.describe('the manifest that supersedes this one'),
    revision: z.int().min(1),
    reason: z.string().min(1).max(4000),
  }),
  /** P14: verdicts are given under aliases from here on. */
  'adjudication.opened': z.strictObject({
    type: z.literal('adjudication.opened'),
    round: hex32,
    commitment: digest.describe('to the secret from which aliases, order and duplicates follow'),
    items: z.int().min(1).describe('slots that wait for a verdict'),
    duplicates: z.int().min(0).describe('how many of them are put twice'),
    revises: z.boolean().describe('whether slots that an adjudicator judged before are among them'),
  }),
  'verdict.committed': z.strictObject({
    type: z.literal('verdict.committed'),
    round: hex32,
    alias,
    commitment: digest.describe('to verdict, reason and nonce'),
  }),
  /** No verdict is given any more: the secret shows whose the aliases are. */
  'adjudication.revealed': z.strictObject({
    type: z.literal('adjudication.revealed'),
    round: hex32,
    secret: hex64,
  }),
  'verdict.opened': z.strictObject({
    type: z.literal('verdict.opened'),
    round: hex32,
    alias,
    attempt: hex32,
    slot: hex32,
    copy: z.int().min(0).max(1).describe('1 for the duplicate of an item'),
    verdict: attribution,
    reason: z.string().min(1).max(4000),
    nonce: hex64,
  }),
  'adjudication.closed': z.strictObject({
    type: z.literal('adjudication.closed'),
    round: hex32,
    verdicts: z.int().min(0).describe('verdicts that were opened'),
    pairs: z.int().min(0).describe('items of which both copies were judged'),
    agreeing: z.int().min(0).describe('pairs with the same verdict: the intra-rater figure'),
    abandoned: z
      .string()
      .min(1)
      .max(1000)
      .nullable()
      .describe('why commitments were never opened; null when all of them were'),
  }),
} as const;

export const entryDraftSchema = z.discriminatedUnion('type', [
  drafts['ledger.opened'],
  drafts['gate.passed'],
  drafts['gate.refused'],
  drafts['service.started'],
  drafts['service.attached'],
  drafts['service.described'],
  drafts['canary.recorded'],
  drafts['service.stopped'],
  drafts['attempt.started'],
  drafts['stage.finished'],
  drafts['attempt.finished'],
  drafts['attempt.recovered'],
  drafts['attribution.recorded'],
  drafts['slot.settled'],
  drafts['slot.unresolved'],
  drafts['session.alive'],
  drafts['account.recorded'],
  drafts['regrading.opened'],
  drafts['regrading.recorded'],
  drafts['regrading.closed'],
  drafts['recheck.declared'],
  drafts['recheck.started'],
  drafts['recheck.finished'],
  drafts['recheck.closed'],
  drafts['run.paused'],
  drafts.unblinded,
  drafts.checkpoint,
  drafts['deviation.noted'],
  drafts.amended,
  drafts['slot.carried'],
  drafts['adjudication.opened'],
  drafts['verdict.committed'],
  drafts['adjudication.revealed'],
  drafts['verdict.opened'],
  drafts['adjudication.closed'],
]);

/** What a writer hands to the store. */
export type EntryDraft = z.infer<typeof entryDraftSchema>;
export type EntryType = EntryDraft['type'];
export type DraftOf<T extends EntryType> = Extract<EntryDraft, { type: T }>;

/** What the store adds: position, link and time. */
export interface EntryFrame {
  /** 0-based position. */
  readonly seq: number;
  /** Leaf hash of the entry before, 64 hexadecimal digits; null for the first. */
  readonly prev: string | null;
  /** UTC, RFC 3339 with milliseconds. Never earlier than the entry before (the store sees to it). */
  readonly time: string;
}

export type Entry = EntryDraft & EntryFrame;
export type EntryOf<T extends EntryType> = Extract<Entry, { type: T }>;

/** The slot that an entry speaks of, and what it means for the slot's state machine; null for other entries. */
export function toSlotEvent(entry: EntryDraft): { readonly slot: string; readonly event: SlotEvent } | null {
  switch (entry.type) {
    case 'attempt.started':
      return { slot: entry.slot, event: startEvent(entry) };
    case 'stage.finished': {
      const { attempt, result } = entry;
      if (result.kind === 'failure')
        return { slot: entry.slot, event: { type: 'failed', attempt, signals: result.signals } };
      if (result.kind === 'candidate') {
        return { slot: entry.slot, event: { type: 'generated', attempt, candidate: result.candidate } };
      }
      const { candidate, report, value } = result;
      return { slot: entry.slot, event: { type: 'graded', attempt, candidate, report, value } };
    }
    case 'attempt.finished':
      return {
        slot: entry.slot,
        event: { type: entry.type, attempt: entry.attempt, outcome: entry.outcome },
      };
    case 'attempt.recovered':
      return { slot: entry.slot, event: { type: entry.type, attempt: entry.attempt, found: entry.found } };
    case 'attribution.recorded':
      return {
        slot: entry.slot,
        event: {
          type: entry.type,
          attempt: entry.attempt,
          attribution: entry.attribution,
          by: entry.by,
          rule: entry.rule,
          late: entry.late,
        },
      };
    case 'slot.settled':
      return { slot: entry.slot, event: { type: entry.type, value: entry.value, basis: entry.basis } };
    case 'slot.unresolved':
      return { slot: entry.slot, event: { type: entry.type, reason: entry.reason } };
    default:
      return null;
  }
}

export function startEvent(entry: DraftOf<'attempt.started'>): SlotEvent {
  const { attempt, kind, of, sampling_seed: samplingSeed, candidate } = entry;
  return { type: 'attempt.started', attempt, kind, of, samplingSeed, candidate };
}
