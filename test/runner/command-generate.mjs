// A generate command that misbehaves on demand: the first word of the prompt says how.
import { spawn } from 'node:child_process';
import { appendFileSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [requestFile, output] = process.argv.slice(2);
const request = JSON.parse(readFileSync(requestFile, 'utf8'));
const [mode] = request.prompt.user.split(' ');
const file = join(output, 'answer.txt');
const { log } = request.task.fields;
if (log !== undefined) {
  appendFileSync(
    log,
    `${JSON.stringify({ prompt: request.prompt.user, seed: request.sampling_seed, cwd: process.cwd(), weights: request.model.weights, env: Object.keys(process.env).sort() })}\n`,
  );
}

const good = () => writeFileSync(file, `7 by ${request.attempt}`);
const MODES = {
  good,
  slow: () => setTimeout(good, 400),
  'fails-with': () => {
    good();
    process.exit(3);
  },
  fails: () => {
    process.stderr.write('no such thing\n');
    process.exit(3);
  },
  none: () => undefined,
  link: () => symlinkSync('/etc/hostname', file),
  second: () => {
    writeFileSync(join(output, 'first'), '7');
    linkSync(join(output, 'first'), file);
  },
  folder: () => mkdirSync(file),
  stubborn: () => {
    process.on('SIGTERM', () => undefined);
    setInterval(() => undefined, 1000);
  },
  hangs: () => setInterval(() => undefined, 1000),
  'hangs-with': () => {
    good();
    setInterval(() => undefined, 1000);
  },
  flood: () => {
    const block = Buffer.alloc(1 << 20, 0x61);
    for (let i = 0; i < 64; i++) process.stdout.write(block);
    good();
  },
  // Leaves a process behind that left the group and would write into the output later.
  orphan: () => {
    const late = `setTimeout(() => require('node:fs').writeFileSync(${JSON.stringify(join(output, 'late'))}, 'x'), 600); setInterval(() => 0, 1000);`;
    const child = spawn(process.execPath, ['-e', late], { detached: true, stdio: 'ignore' });
    child.unref();
    writeFileSync(join(output, 'orphan.pid'), String(child.pid));
    good();
  },
  killed: () => process.kill(process.pid, 'SIGKILL'),
  // Puts a report where the grader's will be read from.
  plants: () => {
    good();
    const grade = join(output, '..', 'grade');
    mkdirSync(grade, { recursive: true });
    const report = { task: request.task.id, candidate: 'sha256:0', tests: {}, reward: 1 };
    writeFileSync(join(grade, 'report.json'), JSON.stringify(report));
    writeFileSync(join(output, 'report.json'), JSON.stringify(report));
  },
};
MODES[mode]?.();
