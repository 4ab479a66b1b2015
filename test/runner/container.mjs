// Stands in for a container runtime. `run NAME FOLDER` starts a process that belongs to nobody and notes its number in
// FOLDER/NAME; `stop NAME FOLDER` ends it by name, `fail` and `hang` stop nothing.
import { spawn } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [verb, name, folder] = process.argv.slice(2);
const file = join(folder, name);
switch (verb) {
  case 'run': {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)'], {
      detached: true,
      stdio: 'ignore',
      env: {},
    });
    child.unref();
    writeFileSync(`${file}.tmp`, String(child.pid));
    renameSync(`${file}.tmp`, file);
    break;
  }
  case 'stop': {
    const pid = readPid();
    if (pid !== null) {
      process.kill(pid, 'SIGKILL');
      renameSync(file, `${file}.stopped`);
    }
    break;
  }
  case 'fail':
    process.stderr.write(`no container ${name}\n`);
    process.exit(1);
    break;
  case 'hang':
    process.on('SIGTERM', () => undefined);
    setInterval(() => undefined, 1000);
}

function readPid() {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
