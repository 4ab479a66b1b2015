/**
 * The demo: a new user's whole road in a fresh folder, on eleven small real models. Every step is a call of the
 * command line that anybody could type; this file only prepares the folder, narrates, and makes trouble on purpose.
 */
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkAgainstTruth } from './truth.js';

const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const CLI = join(REPOSITORY, 'dist', 'cli.js');

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What happens to the services while the run goes on. */
type Trouble = (line: string) => void;

const full = process.argv.includes('--full');
const started = Date.now();
try {
  process.exitCode = await demo(full ? 'obme-mini' : 'demo');
} catch (error) {
  process.stderr.write(`\nThe demo stopped: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function demo(name: string): Promise<number> {
  const folder = await freshFolder(name);
  const protocol = `protocol/${name}.yaml`;
  say(`A fresh workspace: ${relative(process.cwd(), folder) || folder}`);

  say('Eleven models, two queues, one plan. Can this plan come out against its author?');
  await expectCode(folder, ['check', protocol], 0);
  await expectCode(folder, ['plan', protocol, '--first', '3'], 0);

  say(
    'Model E is still in training: the plan is frozen now, before anybody sees an outcome, and is not ready to run.',
  );
  await rename(join(folder, 'demo/models/E-42'), join(folder, 'E-42.training'));
  await expectCode(folder, ['freeze', protocol], 0);
  await expectCode(folder, ['run'], 3);

  say('E is done. What exists now is bound by digest in a further manifest; the first one stays as it is.');
  await rename(join(folder, 'E-42.training'), join(folder, 'demo/models/E-42'));
  await expectCode(folder, ['bind'], 0);

  say(
    'Somebody swaps one weight file for another model of the same shape. The gate names it and runs nothing.',
  );
  const restore = await swapWeights(folder);
  await expectCode(folder, ['run', '--workers', '8'], 3);
  await restore();
  await expectCode(folder, ['verify'], 0);

  say(
    'The run. One server is killed in mid-run (its attempts get one replacement each, with the same seed); another',
  );
  say('answers four requests with an error that proves nobody guilty (those slots stay unresolved).');
  await expectCode(folder, ['run', '--workers', '8'], 0, makeTrouble());
  await expectCode(folder, ['status'], 0);

  say('Nobody has seen an outcome yet, and the report says so: coverage only.');
  await expectCode(folder, ['report'], 0);

  say('The blind is broken, once and on the record. Now the same command may speak.');
  await expectCode(folder, ['unblind'], 0);
  await expectCode(folder, ['report'], 0);
  await expectCode(folder, ['report', '--format', 'json', '--out', 'report.json'], 0);
  await expectCode(folder, ['report', '--format', 'markdown', '--out', 'report.md'], 0);

  say('An auditor recomputes everything from the manifest, the ledger and its objects.');
  await expectCode(folder, ['audit', '--report', 'report.json'], 0);

  say(
    'These models are small enough to know the truth: their exact accuracies, held against what was reported.',
  );
  const truth = await checkAgainstTruth(
    folder,
    JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')),
  );
  process.stdout.write(`${truth.text}\n`);
  if (!truth.agrees) {
    say('The report disagrees with the truth by more than its stated error allows.');
    return 4;
  }
  say(
    `Done in ${((Date.now() - started) / 1000).toFixed(0)} s. The book lies in ${relative(process.cwd(), folder)}.`,
  );
  return 0;
}

/** A folder that holds copies of everything that the plan binds, so that it can be spoilt and restored. */
async function freshFolder(name: string): Promise<string> {
  const parent = join(REPOSITORY, 'demo', 'work');
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, `${name}-`));
  for (const path of [`protocol/${name}.yaml`, 'demo/tasks', 'demo/models', 'demo/dist/server']) {
    await cp(join(REPOSITORY, path), join(folder, path), { recursive: true, preserveTimestamps: true });
  }
  return folder;
}

async function swapWeights(folder: string): Promise<() => Promise<void>> {
  const file = join(folder, 'demo/models/M-42/model.safetensors');
  const original = await readFile(file);
  await writeFile(file, await readFile(join(folder, 'demo/models/B-42/model.safetensors')));
  return () => writeFile(file, original);
}

/**
 * Reads the runner's own progress lines, as an operator would, and signals the server processes that they name:
 * SIGSTOP and SIGKILL for B's first server shortly after it came up, SIGUSR2 (the demo server's fault drill) for one of O's.
 */
function makeTrouble(): Trouble {
  let killed = false;
  let drilled = false;
  return (line) => {
    const match = /service (\S+) ready on \S+ \(pid (\d+)\)/.exec(line);
    const pid = Number(match?.[2]);
    if (match?.[1]?.startsWith('B@42') && !killed) {
      killed = true;
      // First it hangs, so that every worker has a request in flight; then it dies.
      setTimeout(() => signal(pid, 'SIGSTOP', 'the server of B@42 hangs'), 300);
      setTimeout(() => signal(pid, 'SIGKILL', 'the server of B@42 is killed'), 800);
    }
    if (match?.[1]?.startsWith('O@314159') && !drilled) {
      drilled = true;
      signal(pid, 'SIGUSR2', 'the server of O@314159 starts a fault drill');
    }
  };
}

function signal(pid: number, name: NodeJS.Signals, what: string): void {
  try {
    process.kill(pid, name);
    process.stdout.write(`  (demo: ${what}: ${name} to pid ${pid})\n`);
  } catch {
    process.stdout.write(`  (demo: pid ${pid} was gone already)\n`);
  }
}

/** Runs one verb, shows it, and insists on its exit code: a demo that goes wrong must fail. */
async function expectCode(folder: string, args: string[], code: number, trouble?: Trouble): Promise<Outcome> {
  process.stdout.write(`\n$ boundbook ${args.join(' ')}\n`);
  const outcome = await boundbook(folder, args, trouble);
  process.stdout.write(indent(outcome.stdout));
  if (outcome.code !== code) {
    throw new Error(`boundbook ${args[0]} ended with ${outcome.code}, expected ${code}`);
  }
  if (code !== 0) process.stdout.write(`  (exit code ${code})\n`);
  return outcome;
}

function boundbook(folder: string, args: string[], trouble?: Trouble): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    let line = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      process.stdout.write(indent(text));
      const lines = (line + text).split('\n');
      line = lines.pop() ?? '';
      for (const each of lines) trouble?.(each);
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

function say(text: string): void {
  process.stdout.write(`\n── ${text}\n`);
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
