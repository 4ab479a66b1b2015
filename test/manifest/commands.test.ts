import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { command as bind } from '../../src/commands/bind.js';
import type { CommandContext, CommandDefinition, CommandResult } from '../../src/commands/command.js';
import { command as freeze } from '../../src/commands/freeze.js';
import { command as verify } from '../../src/commands/verify.js';
import { digestOf } from '../../src/core/digest.js';
import { PROTOCOL, put, putModel, workplace } from './fixture.js';

/** The commands bind the program as it runs here, so these tests take its own folder as it is. */
function run(
  root: string,
  command: CommandDefinition,
  args: readonly string[] = [],
  options: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const context: CommandContext = {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    force: new AbortController().signal,
    now: () => '2026-09-27T12:00:00.000Z',
  };
  return command.run(args, options, context);
}

describe('freeze, bind, verify', () => {
  it('print path, digest, readiness, what is pending and the next step', async () => {
    const { root } = workplace(PROTOCOL.replace('pending: []', 'pending: [smoke run]'));
    rmSync(join(root, 'models/base'), { recursive: true });

    const frozen = await run(root, freeze, ['protocol/tiny.yaml']);
    expect(frozen.json).toMatchObject({
      name: 'tiny',
      revision: 1,
      sequence: 1,
      execution_ready: false,
      pending: ['smoke run', 'binding weights/base'],
      plan: { count: 28 },
    });
    const { manifest, digest } = frozen.json as { manifest: string; digest: string };
    expect(digestOf(readFileSync(join(root, manifest)))).toBe(digest);
    expect(frozen.text).toContain(`frozen      ${manifest}\ndigest      ${digest}\nbindings    9 of 10: `);
    expect(frozen.text).toContain(
      'ready       no: 2 pending\n            smoke run\n            binding weights/base\n',
    );
    expect(frozen.text).toMatch(/\nnext {8}boundbook bind tiny\.r1\.[0-9a-f]{12}\.json$/);

    const refused = await run(root, verify);
    expect(refused.exitCode).toBe(3);
    expect(refused.json).toMatchObject({ verified: false, error: { code: 'GATE_REFUSED', exit: 3 } });
    expect(refused.text).toContain('  binding weights/base\n      is pending: it was never bound');

    putModel(root, 'base', 3);
    put(root, 'smoke.txt', 'passed\n');
    const bound = await run(root, bind, ['tiny'], { resolve: 'smoke run', evidence: 'smoke.txt' });
    expect(bound.json).toMatchObject({ execution_ready: true, pending: [], parent: digest, sequence: 2 });
    expect(bound.text).toMatch(/\nready {7}yes: nothing is pending\nnext {8}boundbook verify tiny\./);

    const verified = await run(root, verify);
    expect(verified.exitCode).toBeUndefined();
    expect(verified.json).toMatchObject({ verified: true, mismatches: [] });
    expect(verified.text).toMatch(/\nchecked {5}\d+ files, .* all as bound\nnext {8}boundbook run tiny\./);
    for (const { text } of [frozen, refused, bound, verified]) {
      expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    }
  });

  it('verify lists every mismatch with both digests, in text and JSON', async () => {
    const { root } = workplace();
    await run(root, freeze, ['protocol/tiny.yaml']);
    const file = join(root, 'tasks/two.txt');
    const [before, after] = [digestOf(readFileSync(file)), digestOf('a\nd\n')];
    writeFileSync(file, 'a\nd\n');
    rmSync(join(root, 'models/M-7/config.json'));
    const { text, json, exitCode } = await run(root, verify);
    expect(exitCode).toBe(3);
    expect(json).toMatchObject({
      mismatches: [
        {
          binding: 'tasks/two',
          path: 'tasks/two.txt',
          expected: before,
          actual: after,
          reason: 'the content differs',
        },
        { binding: 'weights/M@7', path: 'models/M-7/config.json', actual: null, reason: 'is missing' },
      ],
    });
    expect(text).toContain(
      `  tasks/two  tasks/two.txt\n      the content differs\n      expected ${before}\n      found    ${after}\n`,
    );
  });

  it('verify refuses an edited or emptied manifest like everything else that differs', async () => {
    const { root } = workplace();
    const { json } = await run(root, freeze, ['protocol/tiny.yaml']);
    const path = join(root, (json as { manifest: string }).manifest);
    const text = readFileSync(path, 'utf8');
    chmodSync(path, 0o644);
    for (const edited of [text.replace('"reps":2', '"reps":1'), text.replace('12:00:00', '11:00:00'), '']) {
      expect(edited).not.toBe(text);
      writeFileSync(path, edited);
      await expect(run(root, verify)).rejects.toMatchObject({ code: 'GATE_REFUSED', exitCode: 3 });
      await expect(run(root, verify, [path])).rejects.toMatchObject({ code: 'GATE_REFUSED' });
    }
  });

  it('bind takes --resolve and --evidence together only', async () => {
    const { root } = workplace();
    await expect(run(root, bind, [], { resolve: 'x' })).rejects.toMatchObject({ code: 'USAGE', exitCode: 2 });
    await expect(run(root, bind, [], { evidence: 'x' })).rejects.toMatchObject({ code: 'USAGE' });
  });
});
