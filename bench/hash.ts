import { spawnSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashTree } from '../src/manifest/hash.js';
import { atLeast, atMost, type Figure } from './figure.js';

const MEBIBYTE = 1 << 20;
/** 2 GiB in files of uneven sizes, as shards and their companions have. */
const SIZES = [512, 448, 384, 320, 192, 128, 48, 16];
const ROUNDS = 8;

/** Hashing a tree of 2 GiB against `openssl dgst -sha256` on the same files, one after the other, in turns. */
export async function hashBench(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-bench-hash-'));
  try {
    const files = writeFiles(folder);
    // The best time of each: other work on the machine only ever adds.
    let theirBest = Number.POSITIVE_INFINITY;
    let ourBest = Number.POSITIVE_INFINITY;
    let peak = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const theirs = timeOpenssl(files);
      const before = performance.now();
      const watch = setInterval(() => {
        peak = Math.max(peak, process.memoryUsage.rss());
      }, 20);
      const tree = await hashTree(folder, 'source');
      clearInterval(watch);
      ourBest = Math.min(ourBest, performance.now() - before);
      theirBest = Math.min(theirBest, theirs.ms);
      for (const entry of tree.entries) {
        if (theirs.digests.get(entry.path) !== entry.digest) throw new Error(`${entry.path}: digests differ`);
      }
    }
    return [
      atLeast('hashing a 2 GiB tree: openssl dgst time / our time', theirBest / ourBest, 1.6),
      atMost('hashing a 2 GiB tree: peak resident memory, MB', peak / 1e6, 250),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function writeFiles(folder: string): string[] {
  const block = Buffer.alloc(4 * MEBIBYTE);
  return SIZES.map((mebibytes, i) => {
    const file = join(folder, `shard-${i}.bin`);
    const fd = openSync(file, 'wx');
    for (let written = 0; written < mebibytes; written += 4) {
      randomFillSync(block);
      writeSync(fd, block);
    }
    closeSync(fd);
    return file;
  });
}

function timeOpenssl(files: readonly string[]): { ms: number; digests: Map<string, string> } {
  const before = performance.now();
  const run = spawnSync('openssl', ['dgst', '-sha256', '-r', ...files], { encoding: 'utf8' });
  const ms = performance.now() - before;
  if (run.status !== 0) throw new Error(`openssl dgst failed: ${run.error?.message ?? run.stderr}`);
  const lines = run.stdout.trim().split('\n');
  const digests = lines.map((line): [string, string] => {
    const [hex = '', file = ''] = line.split(/ \*/);
    return [file.slice(file.lastIndexOf('/') + 1), `sha256:${hex}`];
  });
  return { ms, digests: new Map(digests) };
}
