import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { afterAll } from 'vitest';
import { OPERATORS_WORD } from '../../src/protocol/schema/services.js';
import { freePort } from '../../src/runner/ports.js';
import { type PlanSetting, STUB, type Trial, trial } from './fixture.js';

/** Prompts of so many tasks, each of one mode of the stub server. */
export const tasks = (count: number, mode = 'right'): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, `${mode} ${i}`]));

const children = new Set<ChildProcess>();
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

export interface External {
  readonly plan: Trial;
  /** What the stub says and does from now on. */
  readonly say: (state: object) => void;
  /** Starts the server; it is up at first. */
  readonly start: () => void;
  /** Resolves when the server is gone. */
  readonly kill: () => Promise<void>;
}

/** A plan whose service somebody else started. */
export async function external(setting: PlanSetting, models = ['M@42'], key?: string): Promise<External> {
  const port = await freePort('127.0.0.1');
  const plan = await trial({
    ...setting,
    external: {
      origin: `http://127.0.0.1:${port}`,
      accepted: OPERATORS_WORD,
      ...(key === undefined ? {} : { api_key_env: 'TRIAL_KEY' }),
    },
  });
  const say = (state: object) =>
    writeFileSync(
      `${plan.log}.state`,
      JSON.stringify({ models, ...(key === undefined ? {} : { key }), ...state }),
    );
  say({});
  const args = [STUB, '--port', String(port), '--log', plan.log, '--model', models[0] ?? ''];
  let child: ChildProcess | null = null;
  const start = () => {
    child = spawn(process.execPath, args, { stdio: 'ignore' });
    children.add(child);
  };
  const kill = async () => {
    if (child === null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    children.delete(child);
  };
  start();
  return { plan, say, start, kill };
}
