import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/commands/registry.js';
import { VERSION } from '../../src/core/version.js';

/** The built program, as a shell sees it. Needs dist/, which `npm test` has built before. */
const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), '../..');
const CLI = join(REPOSITORY, 'dist/cli.js');
const folder = mkdtempSync(join(tmpdir(), 'boundbook-cli-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function boundbook(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

/** What a shell line prints to standard error, and its exit status; `$CLI` is the program. */
function shell(line: string): { status: number | null; stderr: string } {
  const env = { ...process.env, CLI: `${process.execPath} ${CLI}` };
  const { status, stderr } = spawnSync('/bin/sh', ['-c', line], { cwd: folder, encoding: 'utf8', env });
  return { status, stderr };
}

describe('the program', () => {
  test('names its version, which is that of the package', () => {
    const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(VERSION).toBe(version);
    expect(boundbook('--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  });

  test.each(COMMANDS.map(({ name }) => name))('%s has help with examples', (name) => {
    const { status, stdout, stderr } = boundbook(name, '--help');
    expect(status).toBe(0);
    expect(stdout).toContain(`Usage: boundbook ${name}`);
    expect(stdout).toContain('Examples:');
    expect(stderr).toBe('');
  });

  test.each([
    ['a missing argument', ['check'], "missing required argument 'protocol'"],
    ['too many arguments', ['check', 'a', 'b'], 'too many arguments'],
    ['an unknown flag', ['check', 'a', '--jsno'], "unknown option '--jsno' (Did you mean --json?)"],
    ['an unknown verb', ['chek'], "unknown command 'chek' (Did you mean check?)"],
    ['a flag without its value', ['run', '--workers'], 'argument missing'],
    ['a flag twice', ['run', '--limit', '5', '--limit', '7'], '--limit was given more than once'],
    ['a required flag twice', ['export', '--out', 'a', '--out', 'b'], '--out was given more than once'],
    ['a wrong value', ['run', '--workers', '0'], '--workers takes a whole number'],
    ['a wrong shard', ['run', '--shard', '4/4'], '--shard takes i/n'],
  ])('%s: USAGE, exit 2, and one JSON document with --json', (_, args, message) => {
    const plain = boundbook(...args);
    expect(plain).toMatchObject({ status: 2, stdout: '' });
    expect(plain.stderr).toContain('[USAGE]');
    expect(plain.stderr).toContain('hint: ');
    const json = boundbook(...args.filter((arg) => arg !== '--workers' || args.length > 2), '--json');
    expect(json.status).toBe(2);
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { exit: 2 } });
    expect(plain.stderr).toContain(message);
  });

  test('no verb: the help, exit 2', () => {
    const { status, stderr } = boundbook();
    expect(status).toBe(2);
    expect(stderr).toContain('Usage: boundbook');
  });

  test('-C that names no folder', () => {
    const { status, stderr } = boundbook('-C', '/nonexistent-folder', 'status');
    expect(status).toBe(2);
    expect(stderr).toContain('[FILE_NOT_FOUND]');
  });

  test('a reader that goes away is no fault', () => {
    for (const line of [
      '$CLI schema | true',
      '$CLI check --help | true',
      '$CLI check nothing.yaml 2>&1 | true',
    ]) {
      expect(shell(line).stderr).toBe('');
    }
  });

  test.skipIf(!existsSync('/dev/full'))(
    'output that cannot be written: a typed error, no stack trace',
    () => {
      for (const verb of ['schema', 'schema --json', 'check nothing.yaml --json']) {
        const { status, stderr } = shell(`$CLI ${verb} > /dev/full`);
        expect(status).toBe(2);
        expect(stderr).toMatch(/^boundbook: .*\[(FILE_UNWRITABLE|FILE_NOT_FOUND)\]/);
        expect(stderr).not.toMatch(/ at .*\.js/);
      }
    },
  );

  test('a frozen plan that was taken away leaves a gap with a name', () => {
    expect(boundbook('init', 'gap').status).toBe(0);
    const example = readFileSync(join(folder, 'gap/protocol/example.yaml'), 'utf8');
    const later = example.replace(/^name: .*$/m, 'name: later').replace(/^( *namespace: ).*$/m, '$1later');
    writeFileSync(join(folder, 'gap/protocol/later.yaml'), later);
    for (const name of ['example', 'later']) {
      expect(boundbook('-C', 'gap', 'freeze', `protocol/${name}.yaml`)).toMatchObject({ status: 0 });
    }
    expect(boundbook('-C', 'gap', 'status', 'later').stdout).not.toContain('GAP');
    const first = readdirSync(join(folder, 'gap/manifests')).find(
      (name) => /\.r1\..*json$/.test(name) && !name.startsWith('later'),
    );
    rmSync(join(folder, 'gap/manifests', first ?? ''));
    const { status, stdout } = boundbook('-C', 'gap', 'status', 'later');
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^GAP: later\.r1\.[0-9a-f]{12}\.json: number 1 is missing from the sequence before it\.$/m,
    );
  });

  test('text from a file cannot steer the terminal', () => {
    const path = join(folder, 'escape.yaml');
    writeFileSync(path, 'boundbook: 1\n"\\e[31mred": 1\n');
    const { status, stderr } = boundbook('check', path);
    expect(status).toBe(2);
    expect(stderr).not.toContain('\u001b');
  });
});
