// Trials that hang, so that their runner can be killed meanwhile. A task `MODE~WHERE` hangs at WHERE: `start` (nothing of
// a result is there), `torn` (a part of it), `end` (all of it, the process lives on), `always` (as start, in every trial),
// `term` (as start, and SIGTERM makes it write a result), `regrade`, `regrade2` (in the first regrade, or in two). All but
// `always` and `regrade2` hang once for each task. What hangs has a container, and a process that left its group.
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const NAMES = { always: 'start', term: 'start', regrade: 'start', regrade2: 'start', torn: 'end' };

export class Linger {
  #root;
  #task;
  #trial;
  #where;
  #isDue;

  /** @param before lines of earlier trials of the task */
  constructor(root, task, trial, where, { before, regrade }) {
    this.#root = root;
    this.#task = task;
    this.#trial = trial;
    this.#where = where;
    const regrades = before.filter((line) => line.includes(' regrade')).length;
    if (where === 'always') this.#isDue = true;
    else if (where?.startsWith('regrade')) this.#isDue = regrade && regrades < (where === 'regrade' ? 1 : 2);
    else this.#isDue = where !== undefined && before.length === 0;
  }

  /** ` haunted` when something of an earlier trial of the task is alive. */
  haunted() {
    const file = join(this.#root, 'hangs.log');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    const own = lines.filter((line) => line.startsWith(`${this.#task} `));
    return own.some((line) => line.split(' ').slice(2).some(isAlive)) ? ' haunted' : '';
  }

  isDue(where) {
    return this.#isDue && this.#where === where;
  }

  async at(point, onTerm) {
    if (!this.#isDue || (NAMES[this.#where] ?? this.#where) !== point) return;
    process.on('SIGTERM', () => {
      if (this.#where === 'term') void onTerm().then(() => process.exit(0));
    });
    const runaway = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)'], {
      detached: true,
      stdio: 'ignore',
    });
    const containers = join(this.#root, 'containers');
    spawnSync(process.execPath, [join(import.meta.dirname, 'container.mjs'), 'run', this.#trial, containers]);
    const container = readFileSync(join(containers, this.#trial), 'utf8');
    appendFileSync(
      join(this.#root, 'hangs.log'),
      `${this.#task} ${this.#trial} ${process.pid} ${runaway.pid} ${container}\n`,
    );
    await new Promise(() => setInterval(() => undefined, 1000));
  }
}

function isAlive(pid) {
  try {
    // A dead process that nobody has waited for yet is dead.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
