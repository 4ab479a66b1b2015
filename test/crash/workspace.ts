import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Which adapter executes the plan: commands (shell scripts), or a server with the OpenAI interface. */
export type Kind = 'command' | 'openai';

/** A frozen plan in a folder of its own, before its first run. It can be copied: nothing in it names the folder. */
export interface Workspace {
  readonly root: string;
  readonly kind: Kind;
  /** `boundbook` as the manifest binds it. */
  readonly cli: string;
  readonly slots: number;
}

const FIXTURE = join(import.meta.dirname, 'fixture');
const LOG = 'executions.log';

const RUNNERS: Readonly<Record<Kind, string>> = {
  command: `
  adapter: command
  generate: { argv: [sh, runner/generate.sh, "{output}/../../../../../${LOG}", "{request}", "{output}"], wall_s: 20, output_bytes: 10000 }
  grade: { argv: [sh, runner/grade.sh, "{output}/../../../../../${LOG}", "{request}", "{candidate}", "{output}"], wall_s: 20, output_bytes: 10000 }
  grace_s: 0.2
  candidate: answer.txt
  gpus: 0
  sources: { runner: runner }`,
  openai: `
  adapter: openai
  endpoint: chat
  service:
    argv: [node, runner/server.mjs, "{port}", "{host}", "{model}", "{weights}", ${LOG}]
    ready: { path: /health, timeout_s: 20 }
    restarts: 2
    stop_grace_s: 0.2
    gpus: 1
  limits: { request_s: 20, queue_wait_s: 5, response_bytes: 1000000 }
  sources: { runner: runner }`,
};

const GRADERS: Readonly<Record<Kind, string>> = {
  command: '{ kind: report, reward: { min: 0, max: 1 } }',
  openai: '{ kind: integer, answer: answer }',
};

function protocolText(kind: Kind, slots: number): string {
  return `boundbook: 1
name: crash
revision: 1
title: A plan to be interrupted
task_sets:
  all: { file: tasks/all.jsonl, id: id, count: ${slots} }
models:
  M: { weights: models/M }
conditions:
  default:
    prompt: { user: "{prompt}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    reasoning: off
    grader: ${GRADERS[kind]}
arms:
  M: { model: M, condition: default }
queues:
  main: { tasks: all, reps: 1, arms: [M], role: confirmatory }
sampling: { namespace: crash, bits: 31 }
order: { group_by: [arm], within: hash }
runner: ${RUNNERS[kind]}
attempts:
  replacements: 1
  regrades: 1
  breaker: 50
  rules:
    - { id: dead, when: { service_alive: false }, attribute: infrastructure, sufficient: true }
    - { id: connection, when: { cause: [connection_refused, connection_lost] }, attribute: infrastructure, sufficient: true }
blinding: masked
analysis:
  scores: [{ id: main, queue: main }]
  contrasts: []
  interval: { method: two_way_bootstrap, resamples: 100, seed: 1, level: 0.95 }
pending: []
`;
}

/** A safetensors file of one tensor. */
function weights(): Buffer {
  const header = Buffer.from(JSON.stringify({ w: { dtype: 'F32', shape: [8], data_offsets: [0, 32] } }));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([prefix, header, Buffer.alloc(32, 1)]);
}

/** Lays a workspace out that is ready to be frozen. */
export function layOut(root: string, kind: Kind, slots: number, cli: string): Workspace {
  const put = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const tasks = Array.from({ length: slots }, (_, i) => {
    const prompt = i % 3 === 0 ? `big ${i}` : `small ${i}`;
    return `${JSON.stringify({ answer: '7', id: `t-${i}`, prompt })}\n`;
  });
  put('tasks/all.jsonl', tasks.join(''));
  put('models/M/model.safetensors', weights());
  put('models/M/config.json', '{"model_type":"none"}');
  for (const name of readdirSync(FIXTURE)) put(`runner/${name}`, readFileSync(join(FIXTURE, name)));
  put('protocol/crash.yaml', protocolText(kind, slots));
  return { root, kind, cli, slots };
}

/** Lays a workspace out and freezes its plan. */
export function freeze(root: string, kind: Kind, slots: number, cli: string): Workspace {
  const workspace = layOut(root, kind, slots, cli);
  execFileSync(process.execPath, [cli, 'freeze', 'protocol/crash.yaml'], { cwd: root, stdio: 'pipe' });
  return workspace;
}

export function copyOf(workspace: Workspace, root: string): Workspace {
  cpSync(workspace.root, root, { recursive: true });
  return { ...workspace, root };
}

/** The folder of the workspace's one ledger, which may not be there yet. */
export function ledgerOf({ root }: Workspace): string {
  const [manifest] = readdirSync(join(root, 'manifests')).filter((name) => name.endsWith('.json'));
  return join(root, 'ledger', (manifest ?? '').replace(/\.json$/, ''));
}

/** What the commands or the server did, line by line: an observer that no crash of the runner reaches. */
export function executions({ root }: Workspace): readonly (readonly string[])[] {
  try {
    const lines = readFileSync(join(root, LOG), 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => line.split(' '));
  } catch {
    return [];
  }
}
