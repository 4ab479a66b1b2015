// A generate command that misbehaves on demand: the first word of the prompt says how.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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
  'killed-with': () => {
    writeFileSync(file, 'half an ans');
    process.kill(process.pid, 'SIGKILL');
  },
  killed: () => process.kill(process.pid, 'SIGKILL'),
  // A word now and then, and a good end; the idle limit is shorter than the whole.
  talks: () => {
    let words = 0;
    const timer = setInterval(() => {
      process.stdout.write('.');
      if (++words < 7) return;
      clearInterval(timer);
      good();
    }, 500);
  },
  'not-utf8': () => {
    process.stdout.write(Buffer.of(0x61, 0xff, 0xfe, 0xc3, 0x28));
    process.stderr.write(Buffer.of(0xed, 0xa0, 0x80, 0x0a), () => process.exit(4));
  },
  // Exits with the status that a shell gives for SIGKILL, which is a number like any other.
  'exit-137': () => process.exit(137),
  eats: () => {
    const eaten = [];
    for (;;) eaten.push(Buffer.alloc(1 << 20, 1));
  },
  // Forked twice, in a session of its own, without the mark and with nothing open: only its children know it.
  'twice-forked': () => {
    const last = `require('node:fs').writeFileSync(${JSON.stringify(join(output, 'orphan.pid'))}, String(process.pid)); setInterval(() => 0, 1000);`;
    const first = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(last)}], { detached: true, stdio: 'ignore' }).unref();`;
    spawn(process.execPath, ['-e', first], { detached: true, stdio: 'ignore' }).unref();
    const timer = setInterval(() => {
      if (!existsSync(join(output, 'orphan.pid'))) return;
      clearInterval(timer);
      good();
    }, 10);
  },
  // Starts something like a container: a daemon's process that no mark, group or parent leads to.
  contains: () => {
    contain();
    good();
  },
  // The replacement finds the folder of containers used and is done at once.
  'contains-once': () => {
    if (readdirSync(process.argv[5]).length > 0) return good();
    contain();
    setInterval(() => undefined, 1000);
  },
  'contains-and-hangs': () => {
    contain();
    setInterval(() => undefined, 1000);
  },
  artifacts: () => {
    writeFileSync(join(output, 'log.txt'), 'a small log');
    writeFileSync(join(output, 'large.bin'), Buffer.alloc(50_000, 0x62));
    symlinkSync('/etc/hostname', join(output, 'link.txt'));
    mkdirSync(join(output, 'deep'));
    writeFileSync(join(output, 'deep', 'over.bin'), Buffer.alloc(101));
    good();
  },
  // Puts a report where the grader's will be read from.
  plants: () => {
    good();
    const grade = join(output, '..', 'grade');
    mkdirSync(grade, { recursive: true });
    const report = { task: request.task.id, candidate: 'sha256:0', tests: {}, reward: 1 };
    writeFileSync(join(grade, 'report.json'), JSON.stringify(report));
    writeFileSync(join(output, 'report.json'), JSON.stringify(report));
  },
  // The same, with all that a runner would have left had it graded.
  forges: () => {
    good();
    const home = join(output, '..');
    const candidate = `sha256:${createHash('sha256').update(`7 by ${request.attempt}`).digest('hex')}`;
    mkdirSync(join(home, 'grade'), { recursive: true });
    const report = { task: request.task.id, candidate, tests: {}, reward: 1 };
    writeFileSync(join(home, 'grade', 'report.json'), JSON.stringify(report));
    writeFileSync(join(home, 'grade.began'), JSON.stringify({ attempt: request.attempt, candidate }));
  },
};

const room = join(output, '..');
const home = join(room, '..');
const exchange = (path, make) => {
  good();
  renameSync(path, `${path}.moved`);
  make();
};
/** A folder with an answer that is not this attempt's, below as many folders as it is asked for. */
const outside = (...below) => {
  const folder = join(home, '../../outside', ...below);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'answer.txt'), 'of somebody else');
  return join(home, '../../outside');
};
// What a candidate can do to the folders that it was given.
Object.assign(MODES, {
  'removes-output': () => rmSync(output, { recursive: true }),
  'removes-room': () => rmSync(room, { recursive: true }),
  'removes-home': () => rmSync(home, { recursive: true }),
  'removes-home-and-dies': () => {
    rmSync(home, { recursive: true });
    process.kill(process.pid, 'SIGKILL');
  },
  'removes-home-and-talks': () => {
    rmSync(home, { recursive: true });
    process.stdout.write(Buffer.alloc(90_000, 0x61));
  },
  'removes-room-and-hangs': () => {
    rmSync(room, { recursive: true });
    setInterval(() => undefined, 1000);
  },
  'makes-output-anew': () => {
    rmSync(output, { recursive: true });
    mkdirSync(output);
    good();
  },
  'output-is-a-file': () => exchange(output, () => writeFileSync(output, '')),
  'output-is-a-link': () => exchange(output, () => symlinkSync(outside(), output)),
  'room-is-a-link': () => exchange(room, () => symlinkSync(outside('output'), room)),
  'home-is-a-link': () => exchange(home, () => symlinkSync(outside('x', 'output'), home)),
  'home-is-a-file': () => exchange(home, () => writeFileSync(home, '')),
  'locks-output': () => {
    good();
    chmodSync(output, 0);
  },
  'locks-home': () => {
    good();
    chmodSync(home, 0);
  },
  // Names that the runner will want, filled with what cannot be removed by its path.
  fills: () => {
    good();
    for (const name of ['generate.ended', 'grade.began', 'grade.ended']) {
      const top = join(home, name);
      mkdirSync(top);
      process.chdir(top);
      for (let i = 0; i < 60; i++) {
        mkdirSync('d'.repeat(200));
        process.chdir('d'.repeat(200));
      }
    }
  },
});

/** A shell command without environment, parent or session of this one; it writes its number into `escaped.pid`. */
const escapeTo = (command, cwd = output) => {
  const pid = join(output, 'escaped.pid');
  const script = `(echo $$ > ${pid}.new; mv ${pid}.new ${pid}; ${command}) </dev/null >/dev/null 2>&1 &`;
  const leader = `exec setsid sh -c '${script} sleep 0.6' </dev/null >/dev/null 2>&1`;
  spawn('env', ['-i', 'PATH=/usr/bin:/bin', 'sh', '-c', leader], { cwd, stdio: 'ignore' });
  const timer = setInterval(() => {
    if (!existsSync(pid)) return;
    clearInterval(timer);
    setTimeout(good, 900);
  }, 20);
};
Object.assign(MODES, {
  // Puts its own report in place of every other for as long as it lives.
  'escapes-here': () => {
    const candidate = `sha256:${createHash('sha256').update(`7 by ${request.attempt}`).digest('hex')}`;
    writeFileSync(
      join(output, 'forged.json'),
      JSON.stringify({ task: request.task.id, candidate, tests: {}, reward: 1 }),
    );
    escapeTo(
      `while :; do for r in ${home}/grade*/output/report.json; do cp ${output}/forged.json $r; done; sleep 0.01; done`,
    );
  },
  'escapes-elsewhere': () => escapeTo('cd /; exec sleep 30', '/'),
  'escapes-with-a-file': () => escapeTo(`cd /; exec sleep 30 3<${output}/escaped.pid`, '/'),
});

function contain() {
  const [container, folder] = process.argv.slice(4);
  spawn(process.execPath, [join(import.meta.dirname, 'container.mjs'), 'run', container, folder], {
    env: { PATH: process.env.PATH },
    stdio: 'inherit',
  });
  while (!existsSync(join(folder, container)));
}

MODES[mode]?.();
