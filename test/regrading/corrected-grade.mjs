// A corrected grade command that misbehaves on demand: the third word of the prompt says how.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [requestFile, candidateFile, output, log] = process.argv.slice(2);
const request = JSON.parse(readFileSync(requestFile, 'utf8'));
const mode = request.task.fields.prompt.split(' ')[2] ?? 'one';
const candidate = `sha256:${createHash('sha256').update(readFileSync(candidateFile)).digest('hex')}`;
const env = Object.keys(process.env).sort();
const found = { cwd: process.cwd(), files: readdirSync(output), env, pid: process.pid };
if (log !== undefined) appendFileSync(log, `${JSON.stringify({ request, ...found })}\n`);

const base = { task: request.task.id, candidate, tests: {}, reward: 1 };
const write = (value) => writeFileSync(join(output, 'report.json'), JSON.stringify(value));
const MODES = {
  one: () => write(base),
  zero: () => write({ ...base, reward: 0 }),
  half: () => write({ ...base, reward: 0.5 }),
  slow: () => setTimeout(() => write(base), 300),
  above: () => write({ ...base, reward: 1.5 }),
  'other-task': () => write({ ...base, task: 'another' }),
  silent: () => undefined,
  crash: () => process.exit(3),
  hangs: () => setInterval(() => undefined, 1000),
  flood: () => {
    process.stdout.write('x'.repeat(5000));
    write(base);
  },
  // Waits for a file beside the log, so that it is under way when its runner is killed.
  waits: () => {
    const timer = setInterval(() => {
      if (!existsSync(`${log}.go`)) return;
      clearInterval(timer);
      write(base);
    }, 20);
  },
  orphan: () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)'], {
      detached: true,
      stdio: 'ignore',
    });
    child.unref();
    appendFileSync(`${log}.orphans`, `${child.pid}\n`);
    write(base);
  },
};
MODES[mode]?.();
