import { BoundbookError } from '../core/errors.js';
import type { HarborRunner } from '../protocol/schema/harbor-runner.js';
import { fillArgv, type SourcePaths } from './argv.js';
import { ProcessGroup } from './process-group.js';

const LIMIT_MS = 60_000;
const OUTPUT_BYTES = 10_000;

/**
 * Asks the harness which one it is, where the plan says how, before anything is started.
 *
 * @param folder where the question is asked
 * @throws {BoundbookError} HARNESS_REFUSED for another answer, or none within a minute
 */
export async function requireVersion(
  { version, trial }: Pick<HarborRunner, 'version' | 'trial'>,
  sources: SourcePaths,
  folder: string,
  mark: string,
): Promise<void> {
  if (version === undefined) return;
  let said = Buffer.alloc(0);
  const stdout = (chunk: Buffer): void => {
    said = Buffer.concat([said, chunk]).subarray(0, OUTPUT_BYTES);
  };
  const argv = fillArgv(version.argv, {}, sources);
  const env = trial.env ?? [];
  const group = new ProcessGroup({ argv, cwd: folder, env, mark, stdout, stderr: () => undefined });
  const timer = setTimeout(() => void group.stop(0).catch(() => undefined), LIMIT_MS);
  await group.exit;
  clearTimeout(timer);
  const { exit_status } = await group.clear();
  const found = said.toString('utf8').toWellFormed().trim();
  if (exit_status === 0 && found === version.output) return;
  const answer = exit_status === 0 ? JSON.stringify(found.slice(0, 200)) : 'nothing that counts';
  throw new BoundbookError(
    'HARNESS_REFUSED',
    `the harness says ${answer}, the plan ${JSON.stringify(version.output)}; nothing was started`,
    {
      hint: 'Install the version that was planned, or amend the plan.',
      evidence: { expected: version.output, found, exit_status },
    },
  );
}
