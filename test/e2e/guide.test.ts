import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Authority, makeAuthority } from '../signing/authority.js';
import { reply, startTsa, type TsaServer } from '../signing/tsa-server.js';
import { demoProtocol, demoWorkspace, REPOSITORY } from './place.js';

/**
 * Every command that the guide's sections with commands show, in their order, in one workspace: real models, a private
 * time-stamping authority on loopback, openssl, git and curl. Needs what `npm test` has built before.
 */
const GUIDE = readFileSync(join(REPOSITORY, 'docs/guide.md'), 'utf8');

/** The programs that the guide's commands need, and which of them is missing here. */
const missing = ['openssl', 'git', 'curl'].filter(
  (program) => spawnSync(program, [program === 'openssl' ? 'version' : '--version']).error !== undefined,
);

let parent: string;
let authority: Authority;
let tsa: TsaServer;

beforeAll(async () => {
  if (missing.length > 0) return;
  parent = mkdtempSync(join(tmpdir(), 'boundbook-guide-'));
  authority = makeAuthority(['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
  tsa = await startTsa((query, response) => reply(response, authority.answer(query)));
});

afterAll(async () => {
  if (missing.length > 0) return;
  await tsa.close();
  authority.remove();
  rmSync(parent, { recursive: true, force: true });
});

/** The commands of a section, as one shell script. */
function commandsOf(section: string): string {
  const text = GUIDE.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? '';
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block ?? '');
  expect(blocks.length, section).toBeGreaterThan(0);
  return blocks.join('');
}

/** A workspace of the demo's plan, smaller: two arms, one rep, 240 slots. */
function workspace(): string {
  const folder = demoWorkspace('guide');
  const text = demoProtocol(folder, [
    [/reps: 8/, 'reps: 1'],
    [/^ {2}broad100x2: .*\n/m, ''],
    [/arms: \[O, B, M, E, base\]/, 'arms: [M, O]'],
    [/^.*(queue: broad100x2|id: M-B|id: M-E|^ {2}tables:).*\n/gm, ''],
    [/contrast: M-B/, 'contrast: M-O'],
    [/role: secondary/, 'role: primary'],
    [/max_standard_error: 0.03/, 'max_standard_error: 0.08'],
  ]);
  writeFileSync(join(folder, 'protocol/demo.yaml'), text);
  writeFileSync(join(folder, 'tsa-root.pem'), authority.root);
  writeFileSync(join(folder, 'tsa-chain.pem'), authority.intermediate);
  return folder;
}

/** Runs a script with `boundbook` as a command, and stops at the first one that fails. */
function shell(folder: string, script: string): Promise<{ code: number | null; output: string }> {
  const home = join(parent, 'home');
  const prelude = `set -e\nmkdir -p ${home}\nboundbook() { "${process.execPath}" "${join(REPOSITORY, 'dist/cli.js')}" "$@"; }\n`;
  const author = { GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@example.org' };
  const committer = { GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@example.org' };
  const env = { PATH: process.env.PATH, HOME: home, TSA: tsa.url, LC_ALL: 'C', ...author, ...committer };
  const child = spawn('/bin/sh', ['-x', '-c', prelude + script], { cwd: folder, env });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => {
      output += text.toString();
    });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

test.skipIf(missing.length > 0)(
  `every command of the guide works, in its order ${missing.map((name) => `(${name} is missing)`).join('')}`.trim(),
  async () => {
    const folder = workspace();
    const first = await shell(
      folder,
      `boundbook freeze protocol/demo.yaml\n${commandsOf('Proving it to others')}`,
    );
    expect(first.code, first.output).toBe(0);
    expect(first.output).toContain('+ boundbook audit demo --since cosigned.note');

    const copy = join(demoWorkspace('guide-copy'), 'workspace');
    cpSync(folder, copy, { recursive: true, preserveTimestamps: true });

    const keys = `EVAL=$(boundbook keygen --show ~/keys/eval.key | sed -n 's/^vkey *//p')\n`;
    const rest = keys + commandsOf('Changing the plan') + commandsOf('Bundles');
    const second = await shell(folder, rest);
    expect(second.code, second.output).toBe(0);
    expect(second.output).toMatch(/plan\s+no later than/);

    const third = await shell(copy, commandsOf('Surviving'));
    expect(third.code, third.output).toBe(0);
    expect(third.output).toContain('refused with exit status 4');
    expect(third.output).toContain('incarnation 2');
  },
  600_000,
);
