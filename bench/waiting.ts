import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openBook } from '../src/ledger/book.js';
import { atLeast, atMost, type Figure } from './figure.js';
import { runWorkspace } from './run-workspace.js';

const WAITING = 10_000;

/** So many requests wait at the same time for a server that answers none before it has all of them. */
export async function waitingBench(): Promise<Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'boundbook-waiting-'));
  try {
    const held = join(root, 'held');
    const from = performance.now();
    const bench = { tasks: WAITING / 10, reps: 10, server: serverText(held), workers: WAITING };
    const stored = await runWorkspace(root, bench);
    const seconds = (performance.now() - from) / 1000;
    const book = await openBook(root, stored, 'read');
    const { settled } = book.fold.slots.total();
    let failed = 0;
    for (const { entry } of book.store.entries()) {
      if (entry.type === 'stage.finished' && entry.result.kind === 'failure') failed++;
    }
    book.close();
    const most = Number(readFileSync(held, 'utf8'));
    process.stderr.write(
      `${most} requests were held at once; all of it took ${seconds.toFixed(0)} s, ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MB\n`,
    );
    return [
      atLeast('requests that waited at the same time', most, WAITING),
      atLeast('of them settled', settled, WAITING),
      atMost('attempts that failed', failed, 0),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Holds every question until there are enough, or until no more came for a while. */
const serverText = (held: string) => `
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
const port = Number(process.argv[process.argv.indexOf('--port') + 1]);
const answer = JSON.stringify({
  id: 'x', object: 'chat.completion', created: 1, model: 'M',
  choices: [{ index: 0, message: { role: 'assistant', content: '7' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 6, completion_tokens: 2, total_tokens: 8 },
});
let waiting = [];
let most = 0;
let timer;
const release = () => {
  most = Math.max(most, waiting.length);
  writeFileSync(${JSON.stringify(held)}, String(most));
  for (const response of waiting.splice(0)) response.end(answer);
};
const server = createServer((request, response) => {
  request.resume();
  response.setHeader('content-type', 'application/json');
  request.on('end', () => {
    if (request.method !== 'POST') return void response.end('{}');
    waiting.push(response);
    clearTimeout(timer);
    if (waiting.length === ${WAITING}) release();
    else timer = setTimeout(release, 60_000);
  });
});
server.keepAliveTimeout = 600_000;
server.requestTimeout = 0;
server.headersTimeout = 0;
server.listen(port, '127.0.0.1', 4096);
`;
