import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { failureSignals } from '../../src/attempts/signals.js';
import { type AttemptKind, attemptId } from '../../src/attempts/slot-state.js';
import { type Digest, digestOf } from '../../src/core/digest.js';
import { makeFolder } from '../../src/core/files.js';
import { type Book, openOrCreateBook } from '../../src/ledger/book.js';
import type { DraftOf, EntryDraft, EntryType } from '../../src/ledger/entries/entry.js';
import { LedgerFold } from '../../src/ledger/fold.js';
import { type LedgerObject, toObject } from '../../src/ledger/objects.js';
import { type PlanContext, slotRules } from '../../src/ledger/plan-index.js';
import { LedgerStore, type StoreOptions } from '../../src/ledger/store.js';
import { sealManifest } from '../../src/manifest/manifest.js';
import { IGNORE_RULE } from '../../src/manifest/names.js';
import { requiredBindings } from '../../src/manifest/required.js';
import { type Binding, MANIFEST_FORMAT } from '../../src/manifest/schema.js';
import { treeOf } from '../../src/manifest/tree.js';
import { MANIFEST_FOLDER, type StoredManifest, storeManifest } from '../../src/manifest/workspace.js';
import { type Protocol, protocolSchema } from '../../src/protocol/schema/protocol.js';
import { expandSlots, planDigest, type TaskIds } from '../../src/slots/plan.js';
import type { Slot } from '../../src/slots/slot.js';

/** A tiny protocol: arms O (seeds 1, 2) and base, 2 tasks × 2 reps confirmatory, 2 × 1 exploratory: 18 slots. */
export const PROTOCOL_VALUE = {
  boundbook: 1,
  name: 'tiny',
  revision: 1,
  title: 'A tiny evaluation',
  due: '2026-12-31',
  task_sets: { two: { file: 'tasks/two.jsonl', id: 'id', count: 2 } },
  models: {
    O: { training_seeds: [1, 2], weights: 'models/O-{seed}', tokenizer: 'models/O-{seed}/tokenizer.json' },
    base: { weights: 'models/base' },
  },
  conditions: {
    default: {
      prompt: { user: '{question}' },
      decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 },
      grader: { kind: 'integer', answer: 'answer' },
    },
  },
  arms: { O: { model: 'O', condition: 'default' }, base: { model: 'base', condition: 'default' } },
  queues: {
    broad: { tasks: 'two', reps: 1, arms: ['O', 'base'], role: 'exploratory' },
    main: { tasks: 'two', reps: 2, arms: ['O', 'base'], role: 'confirmatory' },
  },
  sampling: { namespace: 'tiny', bits: 31 },
  order: { group_by: ['queue', 'arm', 'training_seed'], within: 'hash' },
  runner: {
    adapter: 'openai',
    endpoint: 'chat',
    service: {
      argv: ['node', 'server.js', '--weights', '{weights}', '--port', '{port}'],
      ready: { path: '/health', timeout_s: 10 },
      restarts: 1,
      stop_grace_s: 2,
      gpus: 2,
    },
    limits: { request_s: 10, queue_wait_s: 10, response_bytes: 100_000 },
    sources: { server: 'server.js' },
  },
  attempts: {
    replacements: 1,
    regrades: 1,
    breaker: 3,
    rules: [
      { id: 'lost', when: { cause: 'connection_lost' }, attribute: 'infrastructure', sufficient: true },
      { id: 'grader', when: { cause: 'grader_fault' }, attribute: 'infrastructure', sufficient: true },
      { id: 'malformed', when: { cause: 'body_malformed' }, attribute: 'model', sufficient: true },
    ],
  },
  blinding: 'masked',
  analysis: {
    scores: [{ id: 'main-scores', queue: 'main' }],
    contrasts: [{ id: 'O-base', minuend: 'O', subtrahend: 'base', queue: 'main', role: 'primary' }],
    interval: { method: 'two_way_bootstrap', resamples: 100, seed: 1, level: 0.95 },
  },
  pending: [],
};

export const TASK_FILE =
  '{"answer":"3","id":"t1","question":"1+2"}\n{"answer":"7","id":"t2","question":"3+4"}\n';

export const PROTOCOL: Protocol = protocolSchema.parse(PROTOCOL_VALUE);
export const TASK_IDS: TaskIds = new Map([['two', ['t1', 't2']]]);
export const MANIFEST_BYTES = '{"stands":"for a manifest"}';

/** The plan of {@link PROTOCOL}, under another protocol if one is given. */
export function planContext(protocol: Protocol = PROTOCOL, taskIds: TaskIds = TASK_IDS): PlanContext {
  return { manifest: digestOf(MANIFEST_BYTES), protocol, taskIds, plan: planDigest(protocol, taskIds) };
}

export const CONTEXT = planContext();
export const SLOTS: readonly Slot[] = [...expandSlots(PROTOCOL, TASK_IDS)];
export const SESSION = '5'.repeat(32);

/** The i-th planned slot, or of one queue. */
export function slotAt(i: number, queue?: string): Slot {
  const slots = queue === undefined ? SLOTS : SLOTS.filter((slot) => slot.queue === queue);
  const slot = slots[i];
  if (slot === undefined) throw new Error(`there is no slot ${i}`);
  return slot;
}

/** A folder that is removed when the test is over. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A clock that starts on 30 November 2026 and advances by `stepMs` with every reading. */
export function testClock(stepMs = 1_000): () => string {
  let time = Date.UTC(2026, 10, 30);
  return () => {
    const text = new Date(time).toISOString();
    time += stepMs;
    return text;
  };
}

export function openedDraft(context: PlanContext = CONTEXT): DraftOf<'ledger.opened'> {
  return {
    type: 'ledger.opened',
    ledger: '1'.repeat(32),
    incarnation: 1,
    carries: null,
    restored: null,
    manifest: context.manifest,
    manifest_object: digestOf(MANIFEST_BYTES),
    plan: { ...context.plan },
    task_objects: { 'tasks/two': digestOf(TASK_FILE) },
    tool: { name: 'boundbook', version: '0.0.0' },
  };
}

/** A new ledger in a temporary folder, with its first entry. It is closed when the test is over. */
export async function newLedger(
  options: Partial<StoreOptions> & { readonly folder?: string; readonly context?: PlanContext } = {},
): Promise<LedgerStore> {
  const folder = options.folder ?? join(tempFolder(), 'ledger');
  const objects = [toObject(MANIFEST_BYTES), toObject(TASK_FILE)];
  const draft = openedDraft(options.context);
  const store = await LedgerStore.create(folder, { draft, objects }, { now: testClock(), ...options });
  onTestFinished(() => store.close());
  return store;
}

export function gateDraft(session = SESSION, pid = 100): DraftOf<'gate.passed'> {
  return {
    type: 'gate.passed',
    session,
    manifest: CONTEXT.manifest,
    files: 3,
    bytes: 1234,
    process: { boot_id: 'boot-1', pid, started: '4242' },
    host: { node: 'v20.19.0', platform: 'linux', arch: 'x64' },
    selection: {},
  };
}

export function pausedDraft(
  reason: DraftOf<'run.paused'>['reason'],
  session = SESSION,
): DraftOf<'run.paused'> {
  return { type: 'run.paused', session, reason, detail: null };
}

type Cause = 'connection_lost' | 'grader_fault' | 'body_malformed' | 'time_limit';

const ATTRIBUTIONS = {
  connection_lost: { attribution: 'infrastructure', rule: 'lost' },
  grader_fault: { attribution: 'infrastructure', rule: 'grader' },
  body_malformed: { attribution: 'model', rule: 'malformed' },
  time_limit: { attribution: 'undetermined', rule: null },
} as const;

/** Writes the entries of one slot's life, with the objects they name. */
export class SlotScript {
  readonly slot: Slot;
  readonly session: string;
  readonly drafts: EntryDraft[] = [];
  readonly objects: LedgerObject[] = [];
  #attempts = 0;
  #candidate: Digest | null = null;
  #report: Digest | null = null;
  #value = 0;

  constructor(slot: Slot, session = SESSION) {
    this.slot = slot;
    this.session = session;
  }

  get attempt(): string {
    return attemptId(this.slot.id, this.#attempts);
  }

  start(kind: AttemptKind = 'first'): this {
    const of = this.#attempts === 0 ? null : this.attempt;
    this.#attempts++;
    const { queue, arm, trainingSeed, evaluationSeed, task, rep } = this.slot;
    return this.#add({
      type: 'attempt.started',
      session: this.session,
      attempt: this.attempt,
      slot: this.slot.id,
      key: { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep },
      kind,
      of,
      sampling_seed: slotRules(PROTOCOL, this.slot).samplingSeed,
      candidate: kind === 'regrade' ? this.#candidate : null,
      request: this.#object(`request of ${this.attempt}`),
    });
  }

  generated(tokens: number | null = 5, seconds = 2): this {
    this.#candidate = this.#object(`candidate of ${this.attempt}`);
    const response = this.#object(`response to ${this.attempt}`);
    return this.#add({
      ...this.#stage('generate', seconds),
      result: { kind: 'candidate', candidate: this.#candidate },
      objects: { response },
      usage: { prompt_tokens: 3, completion_tokens: tokens },
      finish_reason: 'stop',
      queue_seconds: 0.5,
    });
  }

  graded(value: number): this {
    if (this.#candidate === null) throw new Error('nothing to grade');
    this.#report = this.#object(`report of ${this.attempt}: ${value}`);
    this.#value = value;
    const result = { kind: 'report' as const, candidate: this.#candidate, report: this.#report, value };
    return this.#add({ ...this.#stage('grade', 0.25), result });
  }

  failed(stage: 'generate' | 'grade', cause: Cause): this {
    const signals = failureSignals({ stage, phase: stage === 'generate' ? 'body' : 'collect', cause });
    return this.#add({ ...this.#stage(stage, 1), result: { kind: 'failure', signals } }).#attribute(cause);
  }

  finished(outcome: 'report' | 'failure'): this {
    return this.#add({
      type: 'attempt.finished',
      attempt: this.attempt,
      slot: this.slot.id,
      outcome,
      seconds: 3,
    });
  }

  settled(): this {
    const { attempt } = this;
    const value = this.#report === null ? 0 : this.#value;
    const basis =
      this.#report === null
        ? { kind: 'model_failure' as const, attempt }
        : { kind: 'report' as const, attempt, report: this.#report };
    return this.#add({ type: 'slot.settled', slot: this.slot.id, value, basis });
  }

  unresolved(reason: DraftOf<'slot.unresolved'>['reason'] = 'undetermined'): this {
    return this.#add({ type: 'slot.unresolved', slot: this.slot.id, reason });
  }

  recovered(found: 'candidate' | 'nothing' | 'end', session: string): this {
    return this.#add({
      type: 'attempt.recovered',
      attempt: this.attempt,
      slot: this.slot.id,
      session,
      found,
      evidence: { reason: 'process_gone', boot_id: 'boot-1', pid: 100 },
    });
  }

  verdict(attribution: DraftOf<'attribution.recorded'>['attribution'], late = false): this {
    const { attempt } = this;
    const reason = 'looked at the log';
    return this.#add({
      type: 'attribution.recorded',
      attempt,
      slot: this.slot.id,
      attribution,
      by: 'adjudicator',
      rule: null,
      late,
      reason,
    });
  }

  /** From the first start to a settled value. */
  whole(value: number): this {
    return this.start().generated().graded(value).finished('report').settled();
  }

  #attribute(cause: Cause): this {
    const { attempt } = this;
    return this.#add({
      type: 'attribution.recorded',
      attempt,
      slot: this.slot.id,
      ...ATTRIBUTIONS[cause],
      by: 'rule',
      late: false,
      reason: null,
    });
  }

  #stage(stage: 'generate' | 'grade', seconds: number) {
    const { attempt } = this;
    return {
      type: 'stage.finished' as const,
      attempt,
      slot: this.slot.id,
      stage,
      objects: {},
      usage: null,
      finish_reason: null,
      seconds,
      queue_seconds: 0,
    };
  }

  #object(text: string): Digest {
    const object = toObject(text);
    this.objects.push(object);
    return object.digest;
  }

  #add(draft: EntryDraft): this {
    this.drafts.push(draft);
    return this;
  }
}

/** Appends the entries of several scripts, each with its objects. */
export function appendScripts(store: LedgerStore, scripts: readonly SlotScript[]): void {
  for (const { drafts, objects } of scripts) store.append(drafts, objects);
}

/** A draft without its type: shorthand for tables of tests. */
export function typesOf(drafts: readonly { readonly type: EntryType }[]): EntryType[] {
  return drafts.map(({ type }) => type);
}

/** Folds drafts as if a store had framed them, 1 s apart; the first entry and the gate come before them. */
export function foldOf(
  drafts: readonly EntryDraft[],
  options: { readonly context?: PlanContext; readonly bare?: boolean } = {},
) {
  const fold = new LedgerFold(options.context ?? CONTEXT);
  const all = options.bare === true ? drafts : [openedDraft(options.context), gateDraft(), ...drafts];
  const clock = testClock();
  const violations = all.flatMap((draft, seq) => fold.apply({ ...draft, seq, prev: null, time: clock() }));
  return { fold, violations };
}

export interface TestWorkspace {
  readonly root: string;
  readonly stored: StoredManifest;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** A binding of every item that a protocol asks for; none but the task file's is of a file that exists. */
function allBindings(protocol: Protocol): Binding[] {
  const digest = digestOf('x');
  return requiredBindings(protocol).map(({ name, path, shape, content }): Binding => {
    if (content === 'tasks') {
      return { kind: 'file', name, path, size: Buffer.byteLength(TASK_FILE), digest: digestOf(TASK_FILE) };
    }
    if (shape === 'file') return { kind: 'file', name, path, size: 1, digest };
    const tree = treeOf([{ path: 'x', size: 1, digest }]);
    return {
      kind: 'tree',
      name,
      path: path || 'dist',
      ignored: IGNORE_RULE,
      ...tree,
      entries: [...tree.entries],
    };
  });
}

/** A workspace with a manifest that binds everything, or what it is told to, and its task file's bytes. */
export async function newWorkspace(
  changes: Record<string, unknown> = {},
  isBound: (binding: string) => boolean = () => true,
): Promise<TestWorkspace> {
  const root = tempFolder();
  const protocol = protocolSchema.parse({ ...PROTOCOL_VALUE, ...changes });
  const bytes = Buffer.from(TASK_FILE);
  await makeFolder(join(root, MANIFEST_FOLDER));
  const sealed = sealManifest({
    format: MANIFEST_FORMAT,
    tool: { name: 'boundbook', version: '0.0.0', dependencies: {} },
    created: '2026-11-30T00:00:00.000Z',
    name: protocol.name,
    revision: protocol.revision,
    title: protocol.title,
    sequence: 1,
    previous: null,
    due: protocol.due ?? null,
    protocol,
    protocol_source: { raw_digest: digestOf('protocol'), parser: { name: 'test', version: '1' } },
    bindings: allBindings(protocol).filter(({ name }) => isBound(name)),
    plan: planDigest(protocol, TASK_IDS),
    pending_items: protocol.pending.map((item) => ({ item, evidence: null })),
    parent: null,
    supersedes: null,
    reason: null,
    exposure: null,
    task_use: [{ binding: 'tasks/two', digest: digestOf(bytes), plans: 0 }],
  });
  const stored = await storeManifest(root, sealed);
  return { root, stored, files: new Map([['tasks/two', bytes]]) };
}

/** {@link newWorkspace} with a ledger that holds the gate and the entries of some slots. */
export async function newBook(
  scripts: readonly SlotScript[] = [],
  changes: Record<string, unknown> = {},
): Promise<TestWorkspace & { readonly book: Book<LedgerStore> }> {
  const workspace = await newWorkspace(changes);
  const book = await openOrCreateBook(workspace.root, workspace.stored, workspace.files, testClock());
  onTestFinished(() => book.close());
  book.store.append([{ ...gateDraft(), manifest: workspace.stored.digest }]);
  appendScripts(book.store, scripts);
  return { ...workspace, book };
}
