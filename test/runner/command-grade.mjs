// A grade command that misbehaves on demand: the second word of the prompt says how.
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [requestFile, candidateFile, output] = process.argv.slice(2);
const request = JSON.parse(readFileSync(requestFile, 'utf8'));
const mode = request.task.fields.prompt.split(' ')[1] ?? 'one';
const candidate = `sha256:${createHash('sha256').update(readFileSync(candidateFile)).digest('hex')}`;
if (request.task.fields.log !== undefined) {
  appendFileSync(`${request.task.fields.log}.grade`, `${JSON.stringify(request)}\n`);
}

const base = { task: request.task.id, candidate, tests: {}, reward: 1 };
const write = (value) =>
  writeFileSync(join(output, 'report.json'), typeof value === 'string' ? value : JSON.stringify(value));
const MODES = {
  one: () => write(base),
  zero: () => write({ ...base, reward: 0 }),
  half: () => write({ ...base, reward: 0.5 }),
  'slow-zero': () => setTimeout(() => write({ ...base, reward: 0 }), 400),
  slow: () => setTimeout(() => write(base), 400),
  negative: () => write({ ...base, reward: -0.5 }),
  above: () => write({ ...base, reward: 1.5 }),
  text: () => write({ ...base, reward: '1' }),
  nan: () => write(JSON.stringify(base).replace(':1}', ':NaN}')),
  missing: () => write({ task: base.task, candidate, tests: {} }),
  untested: () => write({ ...base, tests: { one: 'pass' } }),
  'one-too-many': () => write({ ...base, tests: { one: 'pass', two: 'pass', three: 'pass' } }),
  tested: () => write({ ...base, tests: { one: 'pass', two: 'pass' } }),
  'other-task': () => write({ ...base, task: 'another' }),
  'other-candidate': () => write({ ...base, candidate: `sha256:${'0'.repeat(64)}` }),
  twice: () => write(JSON.stringify(base).replace('"reward":1', '"reward":1,"reward":0')),
  zeros: () => writeFileSync(join(output, 'report.json'), Buffer.alloc(4096)),
  torn: () => write(JSON.stringify(base).slice(0, 40)),
  silent: () => undefined,
  crash: () => process.exit(1),
  'one-and-exit-1': () => {
    write(base);
    process.exit(1);
  },
  'hangs-with': () => {
    write(base);
    setInterval(() => undefined, 1000);
  },
  'removes-room': () => rmSync(join(output, '..'), { recursive: true }),
  hangs: () => setInterval(() => undefined, 1000),
};
MODES[mode]?.();
