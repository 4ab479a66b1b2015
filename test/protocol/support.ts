import { BoundbookError, type Fault } from '../../src/core/errors.js';
import { type ProtocolDocument, readProtocol } from '../../src/protocol/read.js';

/** A small valid protocol that the tests spoil in one place at a time. */
export const VALID = `boundbook: 1
name: small
revision: 1
title: A small protocol
task_sets:
  all: { file: tasks/all.jsonl, id: id, count: 4 }
  half: { subset_of: all, ids: tasks/half.txt, count: 2 }
models:
  O: { training_seeds: [42, 7], weights: "models/O-{seed}" }
  base: { weights: models/base }
conditions:
  default:
    prompt: { user: "{question}" }
    decoding: { temperature: 0.7, top_p: 1, top_k: -1, min_p: 0, max_tokens: 16 }
    reasoning: on
    grader: { kind: exact, answer: answer }
arms:
  O: { model: O, condition: default }
  base: { model: base, condition: default }
queues:
  main: { tasks: all, reps: 4, arms: [O, base], role: confirmatory }
  side: { tasks: half, reps: 2, arms: [O, base], role: exploratory }
sampling: { namespace: small-study, bits: 31 }
order: { group_by: [arm, training_seed], within: hash }
runner:
  adapter: openai
  endpoint: chat
  service:
    argv: [serve, "{weights}", "{port}"]
    ready: { path: /health, timeout_s: 30 }
    restarts: 3
    stop_grace_s: 5
    gpus: 0
  limits: { request_s: 20, queue_wait_s: 30, response_bytes: 1000000 }
  sources: { server: src/server }
attempts:
  replacements: 1
  regrades: 1
  breaker: 10
  rules:
    - { id: broken, when: { cause: connection_lost }, attribute: infrastructure, sufficient: true }
    - { id: busy, when: { http_status: [429, 5xx] }, attribute: infrastructure, sufficient: true }
blinding: masked
analysis:
  scores:
    - { id: main, queue: main }
  contrasts:
    - { id: O-base, minuend: O, subtrahend: base, queue: main, role: primary }
  tables:
    - { id: parts, queue: main, partitions: [half], role: exploratory }
  decisions:
    - { id: adopt, contrast: O-base, comparator: ">", threshold: 0, when_met: take O, otherwise: stay }
  interval: { method: two_way_bootstrap, resamples: 1000, seed: 1, level: 0.95 }
precision:
  - { queue: main, assumed_accuracy: 0.5, max_standard_error: 0.13 }
pending: []
`;

export function read(text: string | Uint8Array): ProtocolDocument {
  return readProtocol(typeof text === 'string' ? Buffer.from(text, 'utf8') : text, 'p.yaml');
}

/** The error that reading throws. Fails when it reads, or throws anything untyped. */
export function refusal(text: string | Uint8Array): BoundbookError {
  try {
    read(text);
  } catch (error) {
    if (error instanceof BoundbookError) return error;
    throw error;
  }
  throw new Error('the protocol was accepted');
}

export function faults(text: string | Uint8Array): readonly Fault[] {
  const error = refusal(text);
  if (error.code !== 'PROTOCOL_INVALID') throw new Error(`${error.code}: ${error.message}`);
  return error.faults;
}

/** The valid protocol with pieces replaced; each piece must occur, the first occurrence counts. */
export function spoil(...edits: readonly (readonly [string, string])[]): string {
  return edits.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`nothing to replace: ${from}`);
    return text.replace(from, () => to);
  }, VALID);
}

/** Line and column (1-based) of a piece of a text, counted without the code under test. */
export function positionOf(text: string, piece: string): { line: number; column: number } {
  const offset = text.indexOf(piece);
  if (offset < 0) throw new Error(`not in the text: ${piece}`);
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: [...(before.at(-1) ?? '')].length + 1 };
}
