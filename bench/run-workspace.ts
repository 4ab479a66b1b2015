import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freezeProtocol } from '../src/manifest/freeze.js';
import type { StoredManifest } from '../src/manifest/workspace.js';
import { runSession } from '../src/runner/run.js';

export interface Bench {
  readonly tasks: number;
  readonly reps: number;
  /** The server's program. */
  readonly server: string;
  readonly workers: number;
}

/** Freezes a plan of so many slots. */
export function freezeWorkspace(root: string, bench: Bench): Promise<StoredManifest> {
  writeWorkspace(root, bench);
  return freezeProtocol('protocol.yaml', { root, now });
}

/** Runs all of a frozen plan. */
export async function runPlan(root: string, workers: number): Promise<void> {
  await runSession({
    root,
    workers,
    selection: { shard: null, only: new Map() },
    limit: null,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    now,
  });
}

/** Freezes a plan of so many slots and runs all of them. */
export async function runWorkspace(root: string, bench: Bench): Promise<StoredManifest> {
  const stored = await freezeWorkspace(root, bench);
  await runPlan(root, bench.workers);
  return stored;
}

function now(): string {
  return new Date().toISOString();
}

/** Answers every question at once with the same few tokens. */
export const SERVER = `
import { createServer } from 'node:http';
const port = Number(process.argv[process.argv.indexOf('--port') + 1]);
const answer = JSON.stringify({
  id: 'x', object: 'chat.completion', created: 1, model: 'M',
  choices: [{ index: 0, message: { role: 'assistant', content: '7' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 6, completion_tokens: 2, total_tokens: 8 },
});
createServer((request, response) => {
  request.resume();
  const body = request.method === 'POST' ? answer : '{}';
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  request.on('end', () => response.writeHead(200, headers).end(body));
}).listen(port, '127.0.0.1');
`;

function writeWorkspace(root: string, { tasks: count, reps, server }: Bench): void {
  const put = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const tasks = Array.from({ length: count }, (_, i) => `{"id":"t${i}","question":"${i}+1=","answer":"7"}\n`);
  const header = '{"w":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}}';
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  put('tasks.jsonl', tasks.join(''));
  put('server/server.mjs', server);
  put('weights/model.safetensors', Buffer.concat([length, Buffer.from(header), Buffer.alloc(32)]));
  put('weights/config.json', '{"model_type":"bench"}');
  put('protocol.yaml', protocolText(count, reps));
  mkdirSync(join(root, 'ledger'), { recursive: true });
}

const protocolText = (tasks: number, reps: number) => `boundbook: 1
name: bench
revision: 1
title: A plan for the bench
task_sets:
  all: { file: tasks.jsonl, id: id, count: ${tasks} }
models:
  M: { weights: weights }
conditions:
  default:
    prompt: { user: "{question}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    reasoning: off
    grader: { kind: integer, answer: answer }
arms:
  M: { model: M, condition: default }
queues:
  main: { tasks: all, reps: ${reps}, arms: [M], role: confirmatory }
sampling: { namespace: bench, bits: 31 }
order: { group_by: [arm, training_seed], within: hash }
runner:
  adapter: openai
  endpoint: chat
  service:
    argv: [node, server/server.mjs, --port, "{port}", --weights, "{weights}"]
    ready: { path: /health, timeout_s: 20 }
    restarts: 0
    stop_grace_s: 1
    gpus: 0
  limits: { request_s: 600, queue_wait_s: 1, response_bytes: 100000 }
  sources: { server: server }
attempts: { replacements: 1, regrades: 1, breaker: 5, rules: [] }
blinding: masked
analysis:
  scores: [{ id: main, queue: main }]
  contrasts: []
  interval: { method: two_way_bootstrap, resamples: 100, seed: 1, level: 0.95 }
pending: []
`;
