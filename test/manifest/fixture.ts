import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach } from 'vitest';
import { placeAmendment, prepareAmendment } from '../../src/manifest/amend.js';
import type { Surroundings } from '../../src/manifest/freeze.js';
import type { Product } from '../../src/manifest/product.js';
import { type StoredManifest, storeManifestSync } from '../../src/manifest/workspace.js';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A fresh folder, removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-test-'));
  folders.push(folder);
  return folder;
}

export function put(root: string, path: string, content: string | Uint8Array): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** A safetensors file of F32 tensors: 8 bytes of header length, the header, the data. */
export function safetensors(tensors: Readonly<Record<string, number>>, fill = 1): Buffer {
  let at = 0;
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  for (const [name, count] of Object.entries(tensors)) {
    header[name] = { dtype: 'F32', shape: [count], data_offsets: [at, at + 4 * count] };
    at += 4 * count;
  }
  return withHeader(Buffer.from(JSON.stringify(header)), Buffer.alloc(at, fill));
}

export function withHeader(header: Uint8Array, data: Uint8Array, length = header.length): Buffer {
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(length));
  return Buffer.concat([prefix, header, data]);
}

export const PROTOCOL = `boundbook: 1
name: tiny
revision: 1
title: Two models, four tasks
due: "2026-12-31"
task_sets:
  all4: { file: tasks/all.jsonl, id: id, count: 4 }
  two: { subset_of: all4, ids: tasks/two.txt, count: 2 }
models:
  M: { training_seeds: [42, 7], weights: "models/M-{seed}", tokenizer: "models/M-{seed}/tokenizer.json" }
  base: { weights: models/base }
conditions:
  default:
    prompt: { user: "{question}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    grader: { kind: report, reward: { min: 0, max: 1 }, report_schema: runner-report.json }
arms:
  M: { model: M, condition: default }
  base: { model: base, condition: default }
queues:
  main: { tasks: all4, reps: 2, arms: [M, base], role: confirmatory }
  side: { tasks: two, reps: 1, arms: [M], role: exploratory }
sampling: { namespace: tiny-test, bits: 31 }
order: { group_by: [arm, training_seed], within: hash }
runner:
  adapter: command
  generate: { argv: [node, runner/generate.js, "{request}", "{output}"], wall_s: 10, output_bytes: 10000 }
  grade: { argv: [node, runner/grade.js, "{candidate}", "{output}"], wall_s: 10, output_bytes: 10000 }
  grace_s: 1
  candidate: answer.txt
  gpus: 0
  sources: { entry: runner }
attempts: { replacements: 1, regrades: 1, breaker: 5, rules: [] }
blinding: masked
analysis:
  scores: [{ id: main, queue: main }]
  contrasts: [{ id: M-base, minuend: M, subtrahend: base, queue: main, role: primary }]
  interval: { method: two_way_bootstrap, resamples: 100, seed: 1, level: 0.95 }
pending: []
`;

export const TASKS = ['a', 'b', 'c', 'd']
  .map((id, i) => `{"id":"${id}","question":"${i}+1?","answer":"${i + 1}"}\n`)
  .join('');

/** Slots of {@link PROTOCOL}: main (2 + 1 seeds) × 4 tasks × 2 reps, side 2 seeds × 2 tasks. */
export const SLOTS = 28;

export interface Workplace {
  readonly root: string;
  readonly surroundings: Surroundings & { readonly product: Product };
}

/** A workspace that holds everything that {@link PROTOCOL} binds, and a program folder of its own. */
export function workplace(protocol = PROTOCOL): Workplace {
  const root = temporaryFolder();
  put(root, 'protocol/tiny.yaml', protocol);
  put(root, 'tasks/all.jsonl', TASKS);
  put(root, 'tasks/two.txt', 'a\nc\n');
  put(root, 'runner/generate.js', 'console.log(1)\n');
  put(root, 'runner/grade.js', '');
  put(root, 'runner-report.json', '{"type":"object"}\n');
  for (const [i, name] of ['M-42', 'M-7', 'base'].entries()) putModel(root, name, i + 1);
  const program = temporaryFolder();
  put(program, 'dist/cli.js', '// the program\n');
  const product: Product = {
    tool: { name: 'boundbook', version: '0.1.0', dependencies: { zod: '4.6.7' } },
    folder: join(program, 'dist'),
    shown: 'dist',
  };
  let minute = 0;
  const now = (): string => new Date(Date.UTC(2026, 8, 27, 12, minute++)).toISOString();
  return { root, surroundings: { root, now, product } };
}

export function putModel(root: string, name: string, fill: number): void {
  put(root, `models/${name}/model.safetensors`, safetensors({ 'a.weight': 4, 'b.weight': 2 }, fill));
  put(root, `models/${name}/config.json`, '{"layers":1}\n');
  put(root, `models/${name}/tokenizer.json`, '{"model":{}}\n');
}

/** Amends a plan that never ran. */
export async function amendPlainly(path: string, surroundings: Surroundings): Promise<StoredManifest> {
  const { root } = surroundings;
  const prepared = await prepareAmendment(path, 'a reason', undefined, surroundings);
  const exposure = { slots_run: 0, settled: 0, unblinded: false, bounds: {}, declared: null };
  return placeAmendment(root, prepared, exposure, (sealed) => storeManifestSync(root, sealed));
}
