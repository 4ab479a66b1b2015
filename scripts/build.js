// Compiles into new folders and puts them in place of the old ones only when something differs: a run that is going
// on watches the files of this program, and a second shell must not find them gone in mid-build.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const targets = [
  { project: 'tsconfig.build.json', folder: 'dist' },
  { project: 'demo/tsconfig.json', folder: 'demo/dist' },
];

for (const { project, folder } of targets) {
  const fresh = `${folder}.${process.pid}.tmp`;
  const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', project, '--outDir', fresh], {
    stdio: 'inherit',
  });
  if (status !== 0) {
    rmSync(fresh, { recursive: true, force: true });
    process.exit(status ?? 1);
  }
  // The compiler writes files that cannot be executed; `npx boundbook` and a global link need the bit.
  const program = join(fresh, 'cli.js');
  if (existsSync(program)) chmodSync(program, 0o755);
  if (sameTree(fresh, folder)) {
    rmSync(fresh, { recursive: true });
    continue;
  }
  const old = `${folder}.${process.pid}.old.tmp`;
  if (existsSync(folder)) renameSync(folder, old);
  renameSync(fresh, folder);
  rmSync(old, { recursive: true, force: true });
}

function sameTree(a, b) {
  if (!existsSync(b)) return false;
  const names = filesOf(a);
  const others = filesOf(b);
  if (names.length !== others.length || names.some((name, i) => name !== others[i])) return false;
  return names.every((name) => readFileSync(join(a, name)).equals(readFileSync(join(b, name))));
}

function filesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length))
    .sort();
}
