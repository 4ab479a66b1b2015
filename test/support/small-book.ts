import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { nextAction } from '../../src/attempts/next-action.js';
import { type FailureSignals, failureSignals } from '../../src/attempts/signals.js';
import { attemptId, PLANNED } from '../../src/attempts/slot-state.js';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { digestOf } from '../../src/core/digest.js';
import { isAnswerGrader } from '../../src/grading/answer.js';
import { ledgerFolder } from '../../src/ledger/book.js';
import type { DraftOf, EntryDraft } from '../../src/ledger/entries/entry.js';
import { CompactRange } from '../../src/ledger/merkle.js';
import { type LedgerObject, toObject } from '../../src/ledger/objects.js';
import { LedgerStore } from '../../src/ledger/store.js';
import { freezeProtocol } from '../../src/manifest/freeze.js';
import { bindingOf } from '../../src/manifest/manifest.js';
import type { Product } from '../../src/manifest/product.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import { servedModels } from '../../src/protocol/setting-checks.js';
import { resolveTaskSets, taskFiles } from '../../src/protocol/tasks.js';
import { gradeText } from '../../src/runner/adapters/answer-grading.js';
import { CommandAdapter } from '../../src/runner/adapters/command.js';
import { buildRequest } from '../../src/runner/adapters/openai-request.js';
import {
  conclusions,
  generateRecord,
  gradeRecord,
  type Recorded,
  stateAfter,
} from '../../src/runner/drafts.js';
import { type Job, jobOf } from '../../src/runner/plan-queue.js';
import { expandSlots } from '../../src/slots/plan.js';
import { SmallServices } from './small-services.js';
import { smallTrialRequest, type TrialSite, type TrialStory, trialStages } from './small-trials.js';

/**
 * A small book for tests of audits and bundles: eleven slots of an openai runner, every kind of life among them, made in
 * this process without a server. The same options give the same bytes: clock, ids and answers are fixed.
 *
 * ```ts
 * const book = await makeSmallBook(temporaryFolder());           // unblinded, 11 slots, two sessions
 * await exportBundle(book.root, undefined, { out: 'bundle' });   // report built in
 * const loose = LooseBundle.read(join(book.root, 'bundle'));     // test/support/loose-bundle.ts: edit, write, audit
 * ```
 *
 * `LIVES` says what happens to each slot in the order of the plan; hand in other lives for another story.
 */

/** What comes of one attempt. */
export type Step =
  /** The service answers this text; it is graded. */
  | { readonly answer: string }
  /** The service says these texts, one a chunk, and the stop rule fires at the last. Only where answers are streamed. */
  | { readonly looped: readonly string[] }
  /** It answers, and the attempt's process is gone before the answer is graded; the second session grades it. */
  | { readonly interrupted: string }
  /** Generating fails with these signals; `body` is what was kept of an answer. */
  | { readonly failure: Partial<FailureSignals> & Pick<FailureSignals, 'cause'>; readonly body?: string }
  /** A candidate is made, and grading it fails with these signals. Only with a command. */
  | { readonly ungraded: string; readonly failure: FailureOfGrading }
  /** A Harbor trial. Only with such a runner, here and below. */
  | { readonly trial: TrialStory }
  /** A trial whose attempt's process is gone; the second session finds its whole result. */
  | { readonly adopted: TrialStory }
  /** A regrade whose process is gone; the second session begins it anew. */
  | { readonly lost: TrialStory }
  /** The attempt's process is gone; the second session finds nothing. */
  | 'crash';

export type Life = readonly Step[];

type FailureOfGrading = Partial<FailureSignals> & Pick<FailureSignals, 'cause' | 'phase'>;

const LOST = { failure: { cause: 'connection_lost', phase: 'body' } } as const satisfies Step;
const BUSY = {
  failure: { cause: 'http_status', phase: 'headers', http_status: 503 },
} as const satisfies Step;
const HTML = {
  failure: { cause: 'body_not_json', phase: 'body', http_status: 200 },
  body: '<html>busy</html>',
} as const satisfies Step;
const MALFORMED = {
  failure: { cause: 'body_malformed', phase: 'body', http_status: 200 },
  body: '{"model":',
} as const satisfies Step;

/** Settled right and wrong, replaced, unresolved in both ways, a model's own fault, interrupted, crashed. */
export const LIVES: readonly Life[] = [
  [{ answer: '12' }],
  [{ answer: 'twelve' }],
  [LOST, { answer: '7' }],
  [LOST, BUSY],
  [HTML],
  [MALFORMED],
  [{ interrupted: '7' }],
  ['crash', { answer: '12' }],
  [{ answer: '-30' }],
  [{ answer: '' }],
  [{ answer: '0012' }],
];

export interface SmallBookOptions {
  /** One for each slot, in the order of the plan; fewer leave slots pending. */
  readonly lives?: readonly Life[];
  /** Whether the book ends with an unblinding; true when absent. */
  readonly unblind?: boolean;
  readonly revision?: number;
  /** Changes of the protocol's text before it is frozen. */
  readonly protocol?: (text: string) => string;
  /** Lines of the task file; those of {@link TASKS} when absent. */
  readonly tasks?: readonly object[];
}

export interface SmallBook {
  /** The workspace. */
  readonly root: string;
  readonly stored: StoredManifest;
  /** The ledger's folder. */
  readonly ledger: string;
  readonly product: Product;
  /** The clock of the book, which goes on. */
  readonly now: () => string;
}

export const TASKS = [
  { id: 'sum-1', question: '5+7=', answer: 12 },
  { id: 'sum-2', question: '3+4=', answer: '7' },
  { id: 'sum-3', question: '10-40=', answer: -30 },
];

export const PROTOCOL = `boundbook: 1
name: small
revision: 1
title: A small evaluation
task_sets:
  all: { file: tasks/all.jsonl, id: id, count: 3 }
  two: { subset_of: all, ids: tasks/two.txt, count: 2 }
models:
  M: { training_seeds: [42], weights: "models/M-{seed}" }
  base: { weights: models/base }
conditions:
  default:
    prompt: { system: "Answer with a number.", user: "{question}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    reasoning: off
    grader: { kind: integer, answer: answer }
arms:
  M: { model: M, condition: default }
  base: { model: base, condition: default }
queues:
  main: { tasks: two, reps: 2, arms: [M, base], role: confirmatory }
  wide: { tasks: all, reps: 1, arms: [M], role: exploratory }
sampling: { namespace: small, bits: 31 }
order: { group_by: [arm, training_seed], within: hash }
runner:
  adapter: openai
  endpoint: chat
  service:
    argv: [node, runner/server.js, "{weights}", "{port}"]
    ready: { path: /health, timeout_s: 10 }
    restarts: 1
    stop_grace_s: 1
    gpus: 1
  limits: { request_s: 10, queue_wait_s: 10, response_bytes: 100000 }
  sources: { server: runner }
attempts:
  replacements: 1
  regrades: 1
  breaker: 10
  rules:
    - { id: lost, when: { cause: connection_lost }, attribute: infrastructure, sufficient: true }
    - { id: busy, when: { http_status: [429, 5xx] }, attribute: infrastructure, sufficient: true }
    - { id: malformed, when: { cause: body_malformed }, attribute: model, sufficient: true }
blinding: masked
analysis:
  scores: [{ id: main, queue: main }]
  contrasts: [{ id: M-base, minuend: M, subtrahend: base, queue: main, role: primary }]
  tables: [{ id: parts, queue: wide, partitions: [two], role: secondary }]
  interval: { method: two_way_bootstrap, resamples: 100, seed: 1, level: 0.95 }
pending: []
`;

const FIRST = '1'.repeat(32);
const SECOND = '2'.repeat(32);
const LEDGER = 'a'.repeat(32);

/** @param root an empty folder, which becomes the workspace */
export async function makeSmallBook(root: string, options: SmallBookOptions = {}): Promise<SmallBook> {
  const now = fixedClock();
  const product = smallProduct(root);
  writeWorkspace(root, options.protocol ?? ((text) => text), options.tasks ?? TASKS);
  const stored = await freezeProtocol('protocol/small.yaml', { root, now, product });
  const ledger = ledgerFolder(root, stored.file);
  const store = await createStore(root, stored, ledger, now);
  try {
    const writer = new Writer(store, stored, root);
    writer.run(options.lives ?? LIVES, options.unblind ?? true);
  } finally {
    store.close();
  }
  return { root, stored, ledger, product, now };
}

/** Ten seconds between two readings. */
export function fixedClock(start = Date.UTC(2026, 10, 30)): () => string {
  let time = start;
  return () => {
    time += 10_000;
    return new Date(time).toISOString();
  };
}

/** A program of one file, the same everywhere. */
export function smallProduct(root: string): Product {
  put(root, '.program/cli.js', '// the program\n');
  const tool = { name: 'boundbook', version: '0.1.0', dependencies: {} } as const;
  return { tool, folder: join(root, '.program'), shown: 'program' };
}

function writeWorkspace(root: string, edit: (text: string) => string, tasks: readonly object[]): void {
  put(root, 'protocol/small.yaml', edit(PROTOCOL));
  put(root, 'tasks/all.jsonl', tasks.map((task) => `${JSON.stringify(task)}\n`).join(''));
  put(root, 'tasks/two.txt', 'sum-1\nsum-2\n');
  put(root, 'runner/server.js', '// stands for a server\n');
  put(root, 'schemas/report.json', '{"type":"object","required":["reward"]}\n');
  for (const [i, model] of ['M-42', 'base'].entries()) {
    put(root, `models/${model}/model.safetensors`, weights(i));
    put(root, `models/${model}/config.json`, '{"model_type":"small"}');
  }
}

function weights(fill: number): Buffer {
  const header = Buffer.from('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}');
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([size, header, Buffer.alloc(4, fill)]);
}

function put(root: string, path: string, content: string | Uint8Array): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function fileObjects(root: string, { manifest }: StoredManifest): ReadonlyMap<string, LedgerObject> {
  const files: Readonly<Record<string, string>> = {
    'tasks/all': 'tasks/all.jsonl',
    'tasks/two': 'tasks/two.txt',
  };
  return new Map(
    taskFiles(manifest.protocol).map(({ binding }) => {
      const object = toObject(readFileSync(join(root, files[binding] ?? '')));
      if (bindingOf(manifest, binding)?.digest !== object.digest) throw new Error(`${binding} in ${root}`);
      return [binding, object];
    }),
  );
}

function createStore(
  root: string,
  stored: StoredManifest,
  folder: string,
  now: () => string,
): Promise<LedgerStore> {
  const manifest = toObject(canonicalBytes(stored.manifest));
  const tasks = fileObjects(root, stored);
  const { plan } = stored.manifest;
  if (plan === null) throw new Error('no plan');
  const draft: DraftOf<'ledger.opened'> = {
    type: 'ledger.opened',
    ledger: LEDGER,
    incarnation: 1,
    carries: null,
    restored: null,
    manifest: stored.digest,
    manifest_object: manifest.digest,
    plan: { ...plan },
    task_objects: Object.fromEntries([...tasks].map(([binding, { digest }]) => [binding, digest])),
    tool: { name: 'boundbook', version: '0.1.0' },
  };
  return LedgerStore.create(folder, { draft, objects: [manifest, ...tasks.values()] }, { now });
}

/** What one slot is about, and whether a command makes its candidate. */
interface SmallJob extends Job {
  readonly isCommand: boolean;
  readonly streams: boolean;
  /** What a Harbor trial of an attempt belongs to; null with another runner. */
  readonly site: ((attempt: string) => TrialSite) | null;
}

class Writer {
  readonly #store: LedgerStore;
  readonly #stored: StoredManifest;
  readonly #jobs: readonly SmallJob[];
  readonly #counts = { settled: 0, unresolved: 0 };
  /** null where services neither describe themselves nor answer a canary. */
  readonly #services: SmallServices | null;

  constructor(store: LedgerStore, stored: StoredManifest, root: string) {
    this.#store = store;
    this.#stored = stored;
    const { protocol } = stored.manifest;
    const files = new Map([...fileObjects(root, stored)].map(([binding, { bytes }]) => [binding, bytes]));
    const { ids, tasks } = resolveTaskSets(protocol, files);
    this.#jobs = [...expandSlots(protocol, ids)].map((slot) => {
      const job = jobOf(protocol, tasks, slot);
      if (job === null) throw new Error('a slot without a task');
      const { runner } = protocol;
      const streams = runner.adapter === 'openai' && runner.stream === true;
      const site =
        runner.adapter === 'harbor'
          ? (attempt: string) => ({ runner, manifest: stored.digest, work: job.work, attempt })
          : null;
      return { ...job, isCommand: runner.adapter === 'command', streams, site };
    });
    const { runner } = protocol;
    const served =
      runner.adapter === 'openai' && ('external' in runner.service || runner.service.canary !== undefined);
    this.#services = served
      ? new SmallServices(runner, servedModels(protocol), (drafts, objects) => {
          return this.#store.append(drafts, objects)[0]?.seq ?? 0;
        })
      : null;
  }

  /** The first session works through the plan and crashes; the second finishes what was left. */
  run(lives: readonly Life[], unblind: boolean): void {
    const paired = lives.map((life, i) => ({ life, job: this.#jobs[i] as SmallJob }));
    this.#begin(FIRST, 'boot-1', 100);
    const crashed = paired.filter(({ life }) => life.some(isCrash));
    for (const { life, job } of paired) this.#live(job, life, FIRST);
    if (crashed.length > 0) {
      this.#begin(SECOND, 'boot-2', 200);
      for (const { life, job } of crashed) this.#recover(job, life);
    }
    this.#end(crashed.length > 0 ? SECOND : FIRST);
    if (unblind) this.#unblind(lives.length);
  }

  #begin(session: string, boot: string, pid: number): void {
    const effective = toObject(`{"object":"list","session":"${session}"}`);
    this.#store.append([
      {
        type: 'gate.passed',
        session,
        manifest: this.#stored.digest,
        files: 6,
        bytes: 300,
        process: { boot_id: boot, pid, started: String(pid) },
        host: { node: 'v20', platform: 'linux', arch: 'x64' },
        selection: {},
      },
    ]);
    this.#store.append([{ type: 'checkpoint', ...this.#head(), note: null, timestamps: [] }]);
    if (this.#stored.manifest.protocol.runner.adapter !== 'openai') return;
    if (this.#services !== null) {
      this.#services.begin(session, pid);
      return;
    }
    this.#store.append(
      [
        {
          type: 'service.started',
          session,
          service: 'M@42/0',
          model: 'M@42',
          pid: pid + 1,
          port: 9000,
          start: 0,
          effective: effective.digest,
          seconds: 1.5,
        },
      ],
      [effective],
    );
  }

  #head(): { size: number; root: string } {
    const range = new CompactRange();
    for (const { leaf } of this.#store.entries()) range.append(leaf);
    return { size: range.size, root: range.root().toString('hex') };
  }

  #end(session: string): void {
    const stopped: EntryDraft = {
      type: 'service.stopped',
      session,
      service: 'M@42/0',
      model: 'M@42',
      reason: 'done',
      exit_status: 0,
      signal: null,
      seconds: 60,
      gpus: 1,
    };
    this.#services?.end(session);
    const isServed = this.#services === null && this.#stored.manifest.protocol.runner.adapter === 'openai';
    this.#store.append([
      ...(isServed ? [stopped] : []),
      { type: 'run.paused', session, reason: 'finished', detail: null },
    ]);
  }

  #unblind(lived: number): void {
    const planned = this.#jobs.length;
    const { settled, unresolved } = this.#counts;
    const pending = planned - settled - unresolved;
    this.#store.append([
      { type: 'unblinded', partial: lived < planned, planned, settled, unresolved, pending },
    ]);
  }

  #live(job: SmallJob, life: Life, session: string): void {
    const crash = life.findIndex(isCrash);
    this.#play(job, crash === -1 ? life : life.slice(0, crash + 1), session, []);
  }

  #recover(job: SmallJob, life: Life): void {
    const crash = life.findIndex(isCrash);
    const step = life[crash];
    const { id } = job.work.slot;
    const before = this.#draftsOf(id);
    const names = { attempt: attemptId(id, crash + 1), slot: id };
    const found = foundOf(step);
    const evidence = { reason: 'boot_changed', boot_id: 'boot-1', pid: 100 } as const;
    const drafts: EntryDraft[] = [{ ...names, type: 'attempt.recovered', session: SECOND, found, evidence }];
    const objects: LedgerObject[] = [];
    if (typeof step === 'object' && 'interrupted' in step) {
      const graded = gradeOf(job, names, step.interrupted);
      drafts.push(graded.draft);
      objects.push(...graded.objects);
    }
    for (const stage of step === undefined ? [] : recoveredStages(job, step, names, before)) {
      drafts.push(stage.draft);
      objects.push(...stage.objects);
    }
    drafts.push(...conclusions(stateAfter(PLANNED, [...before, ...drafts], job.rules), job.rules, 0.5));
    this.#store.append(drafts, objects);
    this.#play(job, life.slice(crash + 1), SECOND, [...before, ...drafts]);
  }

  #play(job: SmallJob, life: Life, session: string, earlier: readonly EntryDraft[]): void {
    const drafts = [...earlier];
    const objects: LedgerObject[] = [];
    for (const step of life) {
      const recorded = attemptOf(job, step, session, drafts);
      drafts.push(...recorded.drafts);
      objects.push(...recorded.objects);
    }
    this.#store.append(drafts.slice(earlier.length), objects);
    const last = drafts.at(-1)?.type;
    if (last === 'slot.settled') this.#counts.settled++;
    if (last === 'slot.unresolved') this.#counts.unresolved++;
  }

  #draftsOf(slot: string): EntryDraft[] {
    return [...this.#store.entries()].flatMap(({ entry }) =>
      'slot' in entry && entry.slot === slot ? [entry as EntryDraft] : [],
    );
  }
}

/** The entries of one attempt, with what follows from its end. */
function attemptOf(job: SmallJob, step: Step, session: string, before: readonly EntryDraft[]): Recorded {
  const { work, rules } = job;
  const { id } = work.slot;
  const state = stateAfter(PLANNED, before, rules);
  const action = nextAction(state, rules);
  if (action?.do !== 'start') throw new Error('nothing to start');
  const { kind, of, candidate } = action;
  const names = { attempt: attemptId(id, state.attempts.length + 1), slot: id };
  const request = kind === 'regrade' ? null : toObject(requestOf(job, names.attempt));
  const { queue, arm, trainingSeed, evaluationSeed, task, rep } = work.slot;
  const drafts: EntryDraft[] = [
    {
      ...names,
      type: 'attempt.started',
      session,
      key: { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep },
      kind,
      of,
      sampling_seed: rules.samplingSeed,
      candidate,
      request: request?.digest ?? null,
    },
  ];
  const objects = request === null ? [] : [request];
  const stages =
    step === 'crash' || isLostTrial(step)
      ? []
      : 'trial' in step
        ? trialStages(
            siteOf(job, names),
            step.trial,
            candidate === null ? null : { candidate, takenOver: null },
          )
        : stagesOf(job, step, names).slice(kind === 'regrade' ? 1 : 0);
  for (const { draft, objects: more } of stages) {
    drafts.push(draft);
    objects.push(...more);
  }
  const reached = stateAfter(PLANNED, [...before, ...drafts], rules);
  return { drafts: [...drafts, ...conclusions(reached, rules, 2.25)], objects };
}

type Names = { readonly attempt: string; readonly slot: string };
const FIRST_TOKEN = 0.25;
const STAGE = { usage: null, finishReason: null, seconds: 1.25, queueSeconds: 0, objects: {} } as const;

function isCrash(step: Step): boolean {
  return step === 'crash' || 'interrupted' in step || isLostTrial(step);
}

function isLostTrial(
  step: Exclude<Step, 'crash'>,
): step is Extract<Step, { adopted: unknown } | { lost: unknown }> {
  return 'adopted' in step || 'lost' in step;
}

function foundOf(step: Step | undefined): 'nothing' | 'candidate' | 'end' {
  if (step === undefined || step === 'crash') return 'nothing';
  return 'adopted' in step ? 'end' : 'candidate';
}

function siteOf({ site }: SmallJob, { attempt }: Names): TrialSite {
  if (site === null) throw new Error('another runner');
  return site(attempt);
}

/** What the second session records of a trial that the first one had begun. */
function recoveredStages(
  job: SmallJob,
  step: Step,
  names: Names,
  before: readonly EntryDraft[],
): ReturnType<typeof trialStages> {
  if (step === 'crash') return [];
  if ('adopted' in step) return trialStages(siteOf(job, names), { ...step.adopted, unseen: true }, null);
  if (!('lost' in step)) return [];
  const state = stateAfter(PLANNED, before, job.rules);
  if (state.phase !== 'grading') throw new Error('no regrade');
  return trialStages(siteOf(job, names), step.lost, { candidate: state.candidate, takenOver: SECOND });
}

type Untried = Exclude<Step, 'crash' | { trial: unknown } | { adopted: unknown } | { lost: unknown }>;

function stagesOf(job: SmallJob, step: Untried, names: Names) {
  if ('ungraded' in step) {
    const signals = failureSignals({ stage: 'grade', ...step.failure });
    const failed = { kind: 'failure', signals, ...STAGE, finishReason: 'SIGKILL' } as const;
    const made = madeByCommand(names, step.ungraded);
    return [made, gradeRecord(names, digestOf(Buffer.from(step.ungraded)), failed)];
  }
  if ('failure' in step) {
    const signals = failureSignals({
      stage: 'generate',
      phase: 'body',
      service_alive: true,
      ...(job.streams ? { first_token: false } : {}),
      ...step.failure,
    });
    const kept = step.body === undefined ? {} : { response: Buffer.from(step.body) };
    const first = signals.first_token === true ? { firstTokenSeconds: FIRST_TOKEN } : {};
    return [generateRecord(names, { kind: 'failure', signals, ...STAGE, objects: kept, ...first })];
  }
  if ('looped' in step) {
    const bytes = Buffer.from(step.looped.join(''));
    const objects = {
      response: Buffer.from(toStream(chunksOf(job.work.model, step.looped, names.attempt))),
    };
    const ended = { ...STAGE, objects, finishReason: 'loop_stop', firstTokenSeconds: FIRST_TOKEN };
    const stopped = generateRecord(names, { kind: 'candidate', bytes, ...ended });
    return [stopped, gradeOf(job, names, step.looped.join(''))];
  }
  const text = 'answer' in step ? step.answer : step.interrupted;
  const generated = job.isCommand ? madeByCommand(names, text) : answered(job, names, text);
  return 'answer' in step ? [generated, gradeOf(job, names, text)] : [generated];
}

function answered(job: SmallJob, names: Names, text: string) {
  const respond = job.streams ? streamOf : responseOf;
  return generateRecord(names, {
    kind: 'candidate',
    bytes: Buffer.from(text),
    ...STAGE,
    objects: { response: Buffer.from(respond(job.work.model, text, names.attempt)) },
    ...(job.streams && text !== '' ? { firstTokenSeconds: FIRST_TOKEN } : {}),
    usage: { prompt_tokens: 9, completion_tokens: 4 },
    finishReason: 'stop',
  });
}

function madeByCommand(names: Names, text: string) {
  return generateRecord(names, {
    kind: 'candidate',
    bytes: Buffer.from(text),
    ...STAGE,
    objects: { stderr: Buffer.from('made\n') },
    finishReason: 'exit 0',
  });
}

function gradeOf({ work }: SmallJob, names: Names, text: string) {
  const { grader } = work.condition;
  const bytes = Buffer.from(text);
  const candidate = digestOf(bytes);
  if (grader.kind === 'report') {
    const report = canonicalBytes(reportOf(text, work.slot.task, candidate));
    const { reward } = JSON.parse(report.toString('utf8')) as { reward: number };
    const ended = { ...STAGE, finishReason: 'exit 0', seconds: 0.5 };
    return gradeRecord(names, candidate, { kind: 'report', bytes: report, value: reward, ...ended });
  }
  if (!isAnswerGrader(grader)) throw new Error('another grader');
  const end = gradeText(grader, work, bytes);
  if (end.kind !== 'report') throw new Error('no report');
  // Grading takes a time that differs from run to run.
  return gradeRecord(names, candidate, { ...end, seconds: 0.5 });
}

/** A grader of two tests: a candidate passes those that it names. */
function reportOf(text: string, task: string, candidate: string) {
  const passed = ['adds', 'carries'].filter((name) => text.includes(name));
  const tests = Object.fromEntries(
    ['adds', 'carries'].map((name) => [name, passed.includes(name) ? 'pass' : 'fail']),
  );
  return { task, candidate, tests, reward: passed.length / 2, log: 'free' };
}

function requestOf({ work, isCommand, streams, site }: SmallJob, attempt: string): Buffer {
  const { condition, model, fields, samplingSeed } = work;
  if (site !== null) return smallTrialRequest(site(attempt));
  if (!isCommand) return buildRequest('chat', condition, model, fields, samplingSeed, streams);
  const modelPaths = (model: string) => ({ weights: `/weights/${model}`, tokenizer: null });
  return new CommandAdapter({ modelPaths } as never).request(work, attempt);
}

/** What such a server streams: role, each character, finish reason, usage without a choice, the end. */
export function streamOf(model: string, content: string, id: string): string {
  const [first = {}, ...chunks] = chunksOf(model, [...content], id);
  return toStream([
    first,
    ...chunks,
    chunkOf(model, id, {}, 'stop'),
    { ...chunkFrame(model, id), choices: [], usage: { prompt_tokens: 9, completion_tokens: 4 } },
    '[DONE]',
  ]);
}

function chunksOf(model: string, texts: readonly string[], id: string): readonly object[] {
  const role = chunkOf(model, id, { role: 'assistant', content: '' });
  return [role, ...texts.map((content) => chunkOf(model, id, { content }))];
}

function chunkOf(model: string, id: string, delta: object, finish_reason: string | null = null): object {
  return { ...chunkFrame(model, id), choices: [{ index: 0, delta, logprobs: null, finish_reason }] };
}

function chunkFrame(model: string, id: string) {
  return { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1_790_000_000, model };
}

function toStream(events: readonly (object | string)[]): string {
  const lines = events.map((event) => (typeof event === 'string' ? event : JSON.stringify(event)));
  return lines.map((line) => `data: ${line}\n\n`).join('');
}

/** What a server of the common kind answers. */
export function responseOf(model: string, content: string, id: string): string {
  return JSON.stringify({
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created: 1_790_000_000,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
  });
}
