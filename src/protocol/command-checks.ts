import { checkArgv, checkRelative } from './argument-checks.js';
import type { Path } from './json-pointer.js';
import type { FaultCollector } from './references.js';
import type { CommandGrader } from './schema/command-grader.js';
import type { CommandRunner } from './schema/command-runner.js';

const GENERATE_NAMES = ['request', 'output', 'task', 'container'];
const GRADE_NAMES = ['request', 'output', 'task', 'candidate', 'container'];
const STOP_NAMES = ['container'];

/** Checks the range of rewards of a grader. */
export function checkReward(
  { min, max }: { readonly min: number; readonly max: number },
  path: Path,
  collector: FaultCollector,
): void {
  if (min >= max) {
    collector.add(path, `the reward range from ${min} to ${max} is empty`, 'min must be below max.');
  } else if (min > 0 || max < 0) {
    collector.add(
      path,
      `the reward range from ${min} to ${max} does not hold 0`,
      'A model failure with nothing to grade counts 0 (P14), so the range must hold it.',
    );
  }
}

/** Checks the two commands of a runner. */
export function checkCommands(runner: CommandRunner, collector: FaultCollector): void {
  checkArgv(['runner', 'generate', 'argv'], runner.generate.argv, GENERATE_NAMES, collector);
  checkArgv(['runner', 'grade', 'argv'], runner.grade.argv, GRADE_NAMES, collector);
  for (const stage of ['generate', 'grade'] as const) {
    checkStop(['runner', stage, 'stop'], runner[stage].stop, collector);
  }
  checkRelative(['runner', 'candidate'], runner.candidate, collector);
  const names = new Set<string>();
  (runner.artifacts ?? []).forEach(({ name, file }, i) => {
    const path: Path = ['runner', 'artifacts', i];
    checkRelative([...path, 'file'], file, collector);
    if (names.has(name)) {
      collector.add([...path, 'name'], `a second artifact ${JSON.stringify(name)}`, 'Rename one.');
    }
    names.add(name);
  });
  checkGroup(['runner', 'cgroup', 'path'], runner.cgroup?.path, collector);
}

/** Checks a corrected grade command as the runner's own is checked (B6). */
export function checkCommandGrader(grader: CommandGrader, collector: FaultCollector): void {
  checkReward(grader.reward, ['reward'], collector);
  checkArgv(['grade', 'argv'], grader.grade.argv, GRADE_NAMES, collector);
  checkStop(['grade', 'stop'], grader.grade.stop, collector);
  checkGroup(['cgroup', 'path'], grader.cgroup?.path, collector);
  const files = [...Object.entries(grader.sources), ['report_schema', grader.report_schema ?? '']] as const;
  for (const [name, file] of files) {
    if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(file)) {
      collector.add(['sources', name], 'the path holds a control character', 'Rename the file.');
    }
  }
}

function checkGroup(path: Path, group: string | undefined, collector: FaultCollector): void {
  if (!(group ?? '').split('/').some((part) => part === '..') && !/\p{Cc}/u.test(group ?? '')) return;
  collector.add(
    path,
    'the path has a part .. or a control character',
    'Write the whole path of the control group.',
  );
}

function checkStop(path: Path, stop: readonly string[] | undefined, collector: FaultCollector): void {
  if (stop === undefined) return;
  if (checkArgv(path, stop, STOP_NAMES, collector).includes('container')) return;
  collector.add(
    path,
    '{container} is missing: the command could only stop everything or nothing',
    'Give the container this name in argv, and name it here.',
  );
}
