import { appendBench } from './append.js';
import { auditBench } from './audit.js';
import { bundleBench } from './bundle.js';
import { commandBench } from './command.js';
import type { Figure } from './figure.js';
import { hashBench } from './hash.js';
import { memoryGrowthBench } from './memory-growth.js';
import { openBench } from './open.js';
import { planBench } from './plan.js';
import { runBench } from './run.js';
import { treeBench } from './tree.js';
import { waitingBench } from './waiting.js';

/** `npm run bench [-- --json] [-- --only NAME]`: every figure beside its bar; exit 1 when one is missed. */
const BENCHES: Readonly<Record<string, () => Promise<Figure[]>>> = {
  hash: hashBench,
  append: appendBench,
  plan: planBench,
  run: runBench,
  memory: memoryGrowthBench,
  command: commandBench,
  open: openBench,
  audit: auditBench,
  bundle: bundleBench,
  tree: treeBench,
  waiting: waitingBench,
};

const json = process.argv.includes('--json');
const only = process.argv[process.argv.indexOf('--only') + 1];
const names = process.argv.includes('--only') ? [only ?? ''] : Object.keys(BENCHES);

const figures: Figure[] = [];
for (const name of names) {
  const bench = BENCHES[name];
  if (bench === undefined) {
    process.stderr.write(`no bench named ${name}; there are ${Object.keys(BENCHES).join(', ')}\n`);
    process.exit(2);
  }
  if (!json) process.stderr.write(`measuring ${name} …\n`);
  figures.push(...(await bench()));
}

if (json) {
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
} else {
  for (const { figure, value, bar, met } of figures) {
    process.stdout.write(
      `${met ? 'met   ' : 'MISSED'}  ${String(value).padStart(10)}  ${bar.padEnd(8)} ${figure}\n`,
    );
  }
}
process.exitCode = figures.every((figure) => figure.met) ? 0 : 1;
