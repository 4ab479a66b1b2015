import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Pool } from 'undici';
import { atLeast, type Figure, median } from './figure.js';
import { runWorkspace, SERVER } from './run-workspace.js';
import { settledRate } from './settled-rate.js';

const CONCURRENCY = 64;
const SIZE = { tasks: 500, reps: 8 } as const;
const ATTEMPTS = SIZE.tasks * SIZE.reps;
const ROUNDS = 5;

/**
 * Attempts per second through `run` against a server that answers at once, beside a bare loop that makes the same HTTP
 * call and one durable insert of an entry's size for each answer, with the same concurrency and in the same folder.
 * The two take turns. Start-up (gate, service) is not counted for either.
 */
export async function runBench(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-bench-'));
  const rates = { run: [] as number[], bare: [] as number[] };
  try {
    const server = join(folder, 'server.mjs');
    writeFileSync(server, SERVER);
    for (let round = 0; round <= ROUNDS; round++) {
      const bare = await bareRate(server, join(folder, `bare-${round}.sqlite`));
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
    `attempts a second at concurrency ${CONCURRENCY}: run ${median(rates.run).toFixed(0)}, bare loop ${median(rates.bare).toFixed(0)}\n`,
  );
  return [
    atLeast('attempts through run, against a bare loop of the same calls and one insert each', ratio, 0.6),
    atLeast('attempts a second through run at concurrency 64', median(rates.run), 1000),
  ];
}

/** Attempts per second of a whole plan, from the first attempt's entry to the last settlement. */
async function runRate(root: string): Promise<number> {
  const stored = await runWorkspace(root, { ...SIZE, server: SERVER, workers: CONCURRENCY });
  return settledRate(root, stored, ATTEMPTS);
}

async function bareRate(server: string, file: string): Promise<number> {
  const port = await freePort();
  const child = spawn(process.execPath, [server, '--port', String(port)], { stdio: 'ignore' });
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONCURRENCY, pipelining: 1 });
  const db = new Database(file);
  try {
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.exec('CREATE TABLE entry (seq INTEGER PRIMARY KEY, body BLOB) STRICT');
    const insert = db.prepare('INSERT INTO entry VALUES (?, ?)');
    await untilReady(pool);
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < ATTEMPTS) {
        const seq = next++;
        const { body } = await pool.request({
          method: 'POST',
          path: '/v1/chat/completions',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(requestBody(seq)),
        });
        insert.run(seq, Buffer.from(await body.text()));
      }
    };
    const from = performance.now();
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return (1000 * ATTEMPTS) / (performance.now() - from);
  } finally {
    db.close();
    await pool.destroy();
    child.kill('SIGKILL');
  }
}

function requestBody(seed: number): object {
  return {
    model: 'M',
    messages: [{ role: 'user', content: `${seed % SIZE.tasks}+1=` }],
    temperature: 1,
    top_p: 1,
    top_k: -1,
    min_p: 0,
    max_tokens: 8,
    seed,
    n: 1,
    stream: false,
  };
}

async function untilReady(pool: Pool): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    try {
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/health' });
      await body.dump();
      if (statusCode === 200) return;
    } catch {
      // It does not listen yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('the server did not come up');
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        typeof address === 'object' && address !== null ? resolve(address.port) : reject(),
      );
    });
  });
}
