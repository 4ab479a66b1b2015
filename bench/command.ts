import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freezeProtocol } from '../src/manifest/freeze.js';
import { runSession } from '../src/runner/run.js';
import { atLeast, type Figure, median } from './figure.js';
import { settledRate } from './settled-rate.js';

const CONCURRENCY = 4;
const ATTEMPTS = 60;
const ROUNDS = 5;

/**
 * Attempts per second of two commands each through `run`, beside a bare loop that starts the same two programs one after
 * the other with the same concurrency, reads what they print and waits for their end. Both programs are Node scripts: they
 * take some 50 ms of a processor each, nearly all of it to come up. The two take turns. The gate is not counted.
 */
export async function commandBench(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-bench-'));
  const rates = { run: [] as number[], bare: [] as number[] };
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const bare = await bareRate(join(folder, `bare-${round}`));
      const run = await runRate(join(folder, `workspace-${round}`));
      // The first round warms up.
      if (round === 0) continue;
      rates.bare.push(bare);
      rates.run.push(run);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const ratio = median(rates.run.map((rate, i) => rate / (rates.bare[i] ?? Number.NaN)));
  process.stderr.write(
    `attempts of two commands a second at concurrency ${CONCURRENCY}: run ${median(rates.run).toFixed(1)}, bare spawns ${median(rates.bare).toFixed(1)}\n`,
  );
  return [atLeast('attempts of two commands, against bare spawns of the same programs', ratio, 0.8)];
}

/** Attempts per second of a whole plan, from the first attempt's entry to the last settlement. */
async function runRate(root: string): Promise<number> {
  const now = () => new Date().toISOString();
  writeWorkspace(root);
  const stored = await freezeProtocol('protocol.yaml', { root, now });
  await runSession({
    root,
    workers: CONCURRENCY,
    selection: { shard: null, only: new Map() },
    limit: null,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    now,
  });
  return settledRate(root, stored, ATTEMPTS);
}

async function bareRate(folder: string): Promise<number> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'generate.mjs'), GENERATE);
  writeFileSync(join(folder, 'grade.mjs'), GRADE);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < ATTEMPTS) {
      const home = join(folder, String(next++));
      mkdirSync(home);
      const request = join(home, 'request.json');
      writeFileSync(request, JSON.stringify({ task: { id: 't' }, prompt: { user: '1+1=' } }));
      await run([join(folder, 'generate.mjs'), request, home], home);
      await run([join(folder, 'grade.mjs'), request, join(home, 'answer.txt'), home], home);
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return (1000 * ATTEMPTS) / (performance.now() - from);
}

function run(args: readonly string[], cwd: string): Promise<void> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('node', args, {
    cwd,
    // What a command is given.
    env: { PATH, HOME },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  child.stdout.resume();
  child.stderr.resume();
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`a program ended with ${code}`)),
    );
  });
}

const GENERATE = `
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
const [request, output] = process.argv.slice(2);
const { prompt } = JSON.parse(readFileSync(request, 'utf8'));
writeFileSync(join(output, 'answer.txt'), String(prompt.user.length));
process.stdout.write('made an answer\\n');
`;

const GRADE = `
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
const [request, file, output] = process.argv.slice(2);
const { task } = JSON.parse(readFileSync(request, 'utf8'));
const candidate = 'sha256:' + createHash('sha256').update(readFileSync(file)).digest('hex');
writeFileSync(join(output, 'report.json'), JSON.stringify({ task: task.id, candidate, tests: {}, reward: 1 }));
process.stdout.write('graded it\\n');
`;

function writeWorkspace(root: string): void {
  const put = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const tasks = Array.from({ length: ATTEMPTS }, (_, i) => `{"id":"t${i}","question":"${i}+1="}\n`);
  const header = '{"w":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}}';
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  put('tasks.jsonl', tasks.join(''));
  put('runner/generate.mjs', GENERATE);
  put('runner/grade.mjs', GRADE);
  put('weights/model.safetensors', Buffer.concat([length, Buffer.from(header), Buffer.alloc(32)]));
  put('weights/config.json', '{"model_type":"bench"}');
  put('protocol.yaml', PROTOCOL);
  mkdirSync(join(root, 'ledger'), { recursive: true });
}

const PROTOCOL = `boundbook: 1
name: bench
revision: 1
title: A plan for the bench
task_sets:
  all: { file: tasks.jsonl, id: id, count: ${ATTEMPTS} }
models:
  M: { weights: weights }
conditions:
  default:
    prompt: { user: "{question}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    grader: { kind: report, reward: { min: 0, max: 1 } }
arms:
  M: { model: M, condition: default }
queues:
  main: { tasks: all, reps: 1, arms: [M], role: confirmatory }
sampling: { namespace: bench, bits: 31 }
order: { group_by: [arm, training_seed], within: hash }
runner:
  adapter: command
  generate: { argv: [node, runner/generate.mjs, "{request}", "{output}"], wall_s: 60, output_bytes: 100000 }
  grade: { argv: [node, runner/grade.mjs, "{request}", "{candidate}", "{output}"], wall_s: 60, output_bytes: 100000 }
  grace_s: 1
  candidate: answer.txt
  gpus: 0
  sources: { runner: runner }
attempts: { replacements: 1, regrades: 1, breaker: 5, rules: [] }
blinding: masked
analysis:
  scores: [{ id: main, queue: main }]
  contrasts: []
  interval: { method: two_way_bootstrap, resamples: 100, seed: 1, level: 0.95 }
pending: []
`;
