import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attemptId, PLANNED } from '../src/attempts/slot-state.js';
import { type Book, openBook, openOrCreateBook } from '../src/ledger/book.js';
import type { EntryDraft } from '../src/ledger/entries/entry.js';
import { type LedgerObject, toObject } from '../src/ledger/objects.js';
import type { LedgerStore } from '../src/ledger/store.js';
import { freezeProtocol } from '../src/manifest/freeze.js';
import type { StoredManifest } from '../src/manifest/workspace.js';
import { gradeText } from '../src/runner/adapters/answer-grading.js';
import { buildRequest } from '../src/runner/adapters/openai-request.js';
import { conclusions, generateRecord, gradeRecord, stateAfter } from '../src/runner/drafts.js';
import { type Job, jobOf } from '../src/runner/plan-queue.js';
import { expandSlots } from '../src/slots/plan.js';
import type { Slot } from '../src/slots/slot.js';

export const ENTRIES_PER_SLOT = 5;
const TASKS = 1250;
const SLOTS_PER_COMMIT = 1000;
const SESSION = '5'.repeat(32);

export interface WrittenLedger {
  readonly stored: StoredManifest;
  /** The ledger's SQLite file. */
  readonly file: string;
  readonly entries: number;
}

/**
 * Makes a workspace with a ledger of about so many entries: a run of the whole plan as the runner would have recorded it,
 * every third answer wrong, with a checkpoint after each thousand attempts.
 *
 * @param entries a multiple of 12,500 (five for each slot of two arms and 1,250 tasks)
 * @param left this number of slots is left pending, and as many follow the last checkpoint: the run died there
 */
export async function writeLedger(root: string, entries: number, left = 0): Promise<WrittenLedger> {
  writeWorkspace(root, entries / ENTRIES_PER_SLOT / TASKS / 2);
  const stored = await freezeProtocol('protocol.yaml', { root, now });
  const tasks = new Map([['tasks/all', Buffer.from(taskFile())]]);
  const book = await openOrCreateBook(root, stored, tasks, now);
  const { plan, protocol, taskIds } = book.context;
  const slots = expandSlots(protocol, taskIds);
  book.store.append([
    {
      type: 'gate.passed',
      session: SESSION,
      manifest: stored.digest,
      files: 3,
      bytes: 1000,
      process: { boot_id: 'bench', pid: 1, started: '1' },
      host: { node: process.version, platform: process.platform, arch: process.arch },
      selection: {},
    },
  ]);
  for (let done = 0; done < plan.count - 2 * left; done += SLOTS_PER_COMMIT) {
    writeSlots(book, slots, Math.min(SLOTS_PER_COMMIT, plan.count - 2 * left - done));
    const { size, root: tree } = book.head();
    book.store.append([{ type: 'checkpoint', size, root: tree, note: null, timestamps: [] }]);
  }
  book.close();
  const { file } = book.store;
  if (left === 0) return { stored, file, entries: book.head().size };
  const died = await openBook(root, stored, 'write', now);
  writeSlots(died, slots, left);
  died.close();
  return { stored, file, entries: died.head().size };
}

/** The lives of the next `count` slots, in one transaction. */
function writeSlots(book: Book<LedgerStore>, slots: Iterator<Slot>, count: number): void {
  const drafts: EntryDraft[] = [];
  const objects: LedgerObject[] = [];
  for (let i = 0; i < count; i++) {
    const { value, done } = slots.next();
    const job = done === true ? null : jobOf(book.context.protocol, book.tasks.tasks, value);
    if (job === null) throw new Error('a slot without a task');
    const life = lifeOf(job, i % 3 === 0 ? '1' : job.work.fields.answer);
    drafts.push(...life.drafts);
    objects.push(...life.objects);
  }
  book.store.append(drafts, objects);
}

function now(): string {
  return new Date().toISOString();
}

function lifeOf(job: Job, text: unknown): { drafts: EntryDraft[]; objects: LedgerObject[] } {
  const { work, rules } = job;
  const { id, queue, arm, trainingSeed, evaluationSeed, task, rep } = work.slot;
  const names = { attempt: attemptId(id, 1), slot: id };
  const request = toObject(buildRequest('chat', work.condition, work.model, work.fields, rules.samplingSeed));
  const start: EntryDraft = {
    ...names,
    type: 'attempt.started',
    session: SESSION,
    key: { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep },
    kind: 'first',
    of: null,
    sampling_seed: rules.samplingSeed,
    candidate: null,
    request: request.digest,
  };
  const bytes = Buffer.from(String(text));
  const candidate = toObject(bytes);
  const generated = generateRecord(names, {
    kind: 'candidate',
    bytes,
    objects: { response: Buffer.from(response(work.model, String(text), id)) },
    usage: { prompt_tokens: 9, completion_tokens: 4 },
    finishReason: 'stop',
    seconds: 0.0123,
    queueSeconds: 0,
  });
  const { grader } = work.condition;
  if (grader.kind === 'report' || grader.kind === 'reward') throw new Error('another grader');
  const graded = gradeText(grader, work, bytes);
  if (graded.kind !== 'report') throw new Error('no report');
  const report = gradeRecord(names, candidate.digest, graded);
  const before = [start, generated.draft, report.draft];
  const after = conclusions(stateAfter(PLANNED, before, rules), rules, 0.0125);
  return { drafts: [...before, ...after], objects: [request, ...generated.objects, ...report.objects] };
}

/** What a server of the common kind answers. */
function response(model: string, content: string, id: string): string {
  return JSON.stringify({
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created: 1_790_000_000,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
  });
}

function taskFile(): string {
  return Array.from({ length: TASKS }, (_, i) => {
    const [a, b] = [100 + (i % 900), 100 + ((i * 7) % 900)];
    return `${JSON.stringify({ id: `add-${String(i).padStart(4, '0')}`, question: `${a}+${b}=`, answer: a + b })}\n`;
  }).join('');
}

function writeWorkspace(root: string, reps: number): void {
  put(root, 'tasks.jsonl', taskFile());
  put(root, 'runner/server.js', '// stands for a server\n');
  for (const model of ['M', 'B']) {
    put(root, `models/${model}/model.safetensors`, safetensors());
    put(root, `models/${model}/config.json`, '{"model_type":"bench"}');
  }
  put(root, 'protocol.yaml', protocolText(reps));
}

function put(root: string, path: string, content: string | Uint8Array): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function safetensors(): Buffer {
  const header = Buffer.from('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}');
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([size, header, Buffer.alloc(4)]);
}

const protocolText = (reps: number): string => `boundbook: 1
name: bench
revision: 1
title: Additions
task_sets:
  all: { file: tasks.jsonl, id: id, count: ${TASKS} }
models:
  M: { weights: models/M }
  B: { weights: models/B }
conditions:
  default:
    prompt: { user: "{question}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    reasoning: off
    grader: { kind: integer, answer: answer }
arms:
  M: { model: M, condition: default }
  B: { model: B, condition: default }
queues:
  main: { tasks: all, reps: ${reps}, arms: [M, B], role: confirmatory }
sampling: { namespace: bench, bits: 31 }
order: { group_by: [arm], within: hash }
runner:
  adapter: openai
  endpoint: chat
  service:
    argv: [node, runner/server.js, "{weights}", "{port}"]
    ready: { path: /health, timeout_s: 10 }
    restarts: 0
    stop_grace_s: 1
    gpus: 0
  limits: { request_s: 10, queue_wait_s: 10, response_bytes: 100000 }
  sources: { server: runner }
attempts:
  replacements: 1
  regrades: 1
  breaker: 10
  rules: []
blinding: masked
analysis:
  scores: [{ id: main, queue: main }]
  contrasts: []
  interval: { method: two_way_bootstrap, resamples: 100, seed: 1, level: 0.95 }
pending: []
`;
