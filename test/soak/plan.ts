import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBook } from '../../src/ledger/book.js';
import { productAt, type Trial, trial } from '../runner/fixture.js';
import { type Accounts, expectAccounted } from './accounts.js';
import { soakPrompts } from './modes.js';

const ARGV =
  'node runner/soak-server.mjs --weights {weights} --port {port} --host {host} --model {model} --log';
const QUEUE_WAIT_S = 2;
const REQUEST_S = 6;
const RESPONSE_BYTES = 100_000;
const PROMPTS = soakPrompts();

/** A plan, its requests to the server of the soak, and what is known of it beside the ledger. */
export interface SoakPlan {
  readonly trial: Trial;
  readonly stream: boolean;
  readonly slots: number;
}

/** @param program folder of the program that executes it */
export async function soakPlan(program: string, stream: boolean, reps: number): Promise<SoakPlan> {
  const files = { 'runner/soak-server.mjs': readFileSync(join(import.meta.dirname, 'server.mjs')) };
  const log = 'requests.log';
  const made = await trial(
    { prompts: PROMPTS, reps, files, runner: runner(log, stream), attempts: ATTEMPTS },
    productAt(program),
  );
  return { trial: made, stream, slots: Object.keys(PROMPTS).length * reps };
}

function runner(log: string, stream: boolean): string {
  return `
  adapter: openai
  endpoint: chat${stream ? '\n  stream: true' : ''}
  service:
    argv: ${JSON.stringify([...ARGV.split(' '), log])}
    ready: { path: /health, timeout_s: 20 }
    restarts: 1000
    stop_grace_s: 1
    gpus: 1
    health: { every_s: 0.5, timeout_s: 1, failures: 2 }
  limits: { request_s: ${REQUEST_S}, queue_wait_s: ${QUEUE_WAIT_S}, response_bytes: ${RESPONSE_BYTES} }
  sources: { stub: runner }`;
}

const ATTEMPTS = `
  replacements: 1
  regrades: 1
  breaker: 1000
  rules:
    - { id: dead, when: { service_alive: false }, attribute: infrastructure, sufficient: true }
    - { id: connection, when: { cause: [connection_refused, connection_lost] }, attribute: infrastructure, sufficient: true }
    - { id: queue, when: { cause: queue_limit }, attribute: infrastructure, sufficient: true }
    - { id: server, when: { http_status: [429, 5xx] }, attribute: infrastructure, sufficient: true }
    - { id: embedded, when: { embedded_status: [429, 5xx] }, attribute: infrastructure, sufficient: true }`;

/** Every attempt so far is accounted for. None may be under way. */
export async function accountsOf({ trial: { root, stored }, stream }: SoakPlan): Promise<Accounts> {
  const book = await openBook(root, stored, 'read');
  try {
    return expectAccounted({
      entries: entriesOf(book.store.entries()),
      prompts: PROMPTS,
      stream,
      requests: requestsOf(root),
      listLength: (digest) => {
        const list: unknown = JSON.parse(book.store.getObject(digest).toString());
        return Array.isArray(list) ? list.length : 0;
      },
    });
  } finally {
    book.close();
  }
}

function* entriesOf<T>(records: Iterable<{ readonly entry: T }>): Generator<T> {
  for (const { entry } of records) yield entry;
}

function requestsOf(root: string): { prompt: string; seed: number }[] {
  const lines = readFileSync(join(root, 'requests.log'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as { prompt: string; seed: number });
}
