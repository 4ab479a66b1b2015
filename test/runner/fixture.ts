import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { VERSION } from '../../src/core/version.js';
import { openBook } from '../../src/ledger/book.js';
import type { Entry, EntryOf, EntryType } from '../../src/ledger/entries/entry.js';
import { freezeProtocol } from '../../src/manifest/freeze.js';
import type { Product } from '../../src/manifest/product.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import { runSession } from '../../src/runner/run.js';
import type { RunOptions } from '../../src/runner/run-options.js';
import type { RunSummary } from '../../src/runner/summary.js';

export const STUB = join(import.meta.dirname, 'stub-server.mjs');

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-run-'));
  folders.push(folder);
  return folder;
}

export function put(root: string, path: string, content: string | Uint8Array): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** A safetensors file of one tensor. */
function weights(fill: number): Buffer {
  const header = Buffer.from(JSON.stringify({ w: { dtype: 'F32', shape: [8], data_offsets: [0, 32] } }));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([prefix, header, Buffer.alloc(32, fill)]);
}

export interface PlanSetting {
  /** Tasks by id; the prompt of each, whose first word is the server's mode. */
  readonly prompts: Readonly<Record<string, string>>;
  /** Further fields of every task, as JSON. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Further files of the workspace. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly reps?: number;
  readonly models?: readonly string[];
  readonly seeds?: readonly number[];
  readonly revision?: number;
  readonly blinding?: 'masked' | 'none';
  /** Contrasts of the analysis, as YAML. */
  readonly contrasts?: string;
  readonly runner?: string;
  readonly grader?: string;
  readonly attempts?: string;
  readonly groupBy?: string;
  /** Further arguments of the stub server. */
  readonly service?: readonly string[];
  readonly restarts?: number;
  /** Further keys of the service: one line of YAML. */
  readonly serviceKeys?: string;
  /** In place of a service that the gate starts. */
  readonly external?: { readonly origin: unknown; readonly accepted: string; readonly api_key_env?: string };
  readonly limits?: string;
  readonly readyS?: number;
  readonly stopGraceS?: number;
  /** Whether answers are streamed. */
  readonly stream?: boolean;
  /** A stop rule, as YAML. */
  readonly loopStop?: string;
}

export const RULES = `[
    { id: dead, when: { service_alive: false }, attribute: infrastructure, sufficient: true },
    { id: connection, when: { cause: [connection_refused, connection_lost] }, attribute: infrastructure, sufficient: true },
    { id: queue, when: { cause: queue_limit }, attribute: infrastructure, sufficient: true },
    { id: server, when: { http_status: [429, 5xx] }, attribute: infrastructure, sufficient: true },
    { id: embedded, when: { embedded_status: [429, 5xx] }, attribute: infrastructure, sufficient: true } ]`;

function openaiRunner(log: string, setting: PlanSetting): string {
  const { service = [], restarts = 2, readyS = 20, stopGraceS = 1 } = setting;
  const limits = setting.limits ?? 'request_s: 2, queue_wait_s: 3, response_bytes: 1000000';
  if (setting.external !== undefined) {
    return `
  adapter: openai
  endpoint: chat${setting.stream === true ? '\n  stream: true' : ''}
  service:
    external: ${JSON.stringify(setting.external)}
    ready: { path: /health, timeout_s: ${readyS} }
    gpus: 2
    ${setting.serviceKeys ?? ''}
  limits: { ${limits} }
  sources: { stub: runner }`;
  }
  const argv = [
    'node',
    'runner/stub-server.mjs',
    ...['--weights', '{weights}', '--port', '{port}', '--host', '{host}', '--model', '{model}', '--log', log],
    ...service,
  ];
  return `
  adapter: openai
  endpoint: chat${setting.stream === true ? '\n  stream: true' : ''}
  service:
    argv: ${JSON.stringify(argv)}
    ready: { path: /health, timeout_s: ${readyS} }
    restarts: ${restarts}
    stop_grace_s: ${stopGraceS}
    gpus: 1
    ${setting.serviceKeys ?? ''}
  limits: { ${limits} }
  sources: { stub: runner }`;
}

export function protocolText(log: string, setting: PlanSetting): string {
  const { models = ['M'], seeds = [42], reps = 1, prompts, groupBy = '[arm, training_seed]' } = setting;
  const each = (line: (model: string) => string) => models.map(line).join('\n');
  const attempts = setting.attempts ?? `{ replacements: 1, regrades: 1, breaker: 50, rules: ${RULES} }`;
  return `boundbook: 1
name: trial
revision: ${setting.revision ?? 1}
title: A plan for tests
task_sets:
  all: { file: tasks/all.jsonl, id: id, count: ${Object.keys(prompts).length} }
models:
${each((model) => `  ${model}: { training_seeds: [${seeds.join(', ')}], weights: "models/${model}-{seed}", tokenizer: "models/${model}-{seed}/tokenizer.json" }`)}
conditions:
  default:
    prompt: { user: "{prompt}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    reasoning: off
    grader: ${setting.grader ?? '{ kind: integer, answer: answer }'}${setting.loopStop === undefined ? '' : `\n    loop_stop: ${setting.loopStop}`}
arms:
${each((model) => `  ${model}: { model: ${model}, condition: default }`)}
queues:
  main: { tasks: all, reps: ${reps}, arms: [${models.join(', ')}], role: confirmatory }
sampling: { namespace: trial, bits: 31 }
order: { group_by: ${groupBy}, within: hash }
runner: ${setting.runner ?? openaiRunner(log, setting)}
attempts: ${attempts}
blinding: ${setting.blinding ?? 'masked'}
analysis:
  scores: [{ id: main, queue: main }]
  contrasts: ${setting.contrasts ?? '[]'}
  interval: { method: two_way_bootstrap, resamples: 100, seed: 1, level: 0.95 }
pending: []
`;
}

export interface Trial {
  readonly root: string;
  readonly log: string;
  readonly product: Product;
  readonly stored: StoredManifest;
  readonly ledger: string;
  /** Prompts that the server saw, in order. */
  readonly requests: () => readonly { readonly prompt: string; readonly seed: number }[];
  readonly run: (options?: Partial<RunOptions>) => Promise<RunSummary>;
  readonly entries: () => Promise<readonly Entry[]>;
  readonly of: <T extends EntryType>(type: T) => Promise<readonly EntryOf<T>[]>;
  /** What the audit finds against the book; a lawful run leaves nothing. */
  readonly findings: () => Promise<readonly unknown[]>;
  /** What the session said on the way. */
  readonly lines: string[];
}

export const EVERYTHING = { shard: null, only: new Map() } as const;

/** A frozen plan in a workspace of its own. */
export async function trial(setting: PlanSetting, product: Product = dummyProduct()): Promise<Trial> {
  const root = temporaryFolder();
  const log = join(root, 'requests.log');
  const tasks = Object.entries(setting.prompts).map(
    ([id, prompt]) => `${JSON.stringify({ id, prompt, answer: '7', ...setting.fields })}\n`,
  );
  put(root, 'tasks/all.jsonl', tasks.join(''));
  put(root, 'runner/stub-server.mjs', readFileSync(STUB));
  for (const name of ['command-generate.mjs', 'command-grade.mjs', 'container.mjs']) {
    put(root, `runner/${name}`, readFileSync(join(import.meta.dirname, name)));
  }
  for (const [path, content] of Object.entries(setting.files ?? {})) put(root, path, content);
  for (const [i, model] of (setting.models ?? ['M']).entries()) {
    for (const seed of setting.seeds ?? [42]) {
      put(root, `models/${model}-${seed}/model.safetensors`, weights(i + 1 + (seed % 100)));
      put(root, `models/${model}-${seed}/config.json`, '{"model_type":"stub"}');
      put(root, `models/${model}-${seed}/tokenizer.json`, `{"model":${i}}`);
    }
  }
  put(root, 'protocol/trial.yaml', protocolText(log, setting));
  const now = () => new Date().toISOString();
  const stored = await freezeProtocol('protocol/trial.yaml', { root, now, product });
  mkdirSync(join(root, 'ledger'), { recursive: true });
  const lines: string[] = [];
  const run = (options: Partial<RunOptions> = {}) =>
    runSession({
      root,
      workers: 4,
      selection: EVERYTHING,
      limit: null,
      terminal: false,
      progress: (line) => lines.push(line),
      signal: new AbortController().signal,
      now,
      product,
      ...options,
    });
  const entries = async () => {
    const book = await openBook(root, stored, 'read');
    try {
      return [...book.store.entries()].map(({ entry }) => entry);
    } finally {
      book.close();
    }
  };
  return {
    root,
    log,
    product,
    stored,
    ledger: join(root, 'ledger', stored.file.replace(/\.json$/, '')),
    requests: () => readLog(log),
    run,
    entries,
    of: async (type) => (await entries()).filter((entry) => entry.type === type) as never,
    findings: async () => (await audit(root, stored.file)).findings,
    lines,
  };
}

export function dummyProduct(): Product {
  const folder = temporaryFolder();
  put(folder, 'dist/cli.js', '// the program\n');
  return productAt(join(folder, 'dist'));
}

export function productAt(folder: string): Product {
  const tool = { name: 'boundbook', version: VERSION, dependencies: pinned() } as const;
  return { tool, folder, shown: basename(folder) };
}

function pinned(): Record<string, string> {
  const file = join(import.meta.dirname, '../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { dependencies: Record<string, string> }).dependencies;
}

function readLog(file: string): { prompt: string; seed: number }[] {
  try {
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as never);
  } catch {
    return [];
  }
}
