import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { classify } from '../../src/attempts/rules.js';
import { failureSignals } from '../../src/attempts/signals.js';
import { readProtocol } from '../../src/protocol/read.js';
import { readTaskFiles } from '../../src/protocol/task-files.js';
import { resolveTaskSets } from '../../src/protocol/tasks.js';
import { planDigest } from '../../src/slots/plan.js';

const ROOT = new URL('../../', import.meta.url);

async function shipped(name: string) {
  const { protocol } = readProtocol(readFileSync(new URL(`protocol/${name}.yaml`, ROOT)), name);
  const files = await readTaskFiles(protocol, (file) => fileURLToPath(new URL(file.path, ROOT)));
  return { protocol, ids: resolveTaskSets(protocol, files).ids };
}

describe('shipped protocols', () => {
  // 11 models x (40 x 8 + 100 x 2) and 11 x (100 x 16 + 500 x 2)
  test.each([
    ['demo', 5720],
    ['obme-mini', 28_600],
  ])('%s plans %i slots', async (name, count) => {
    const { protocol, ids } = await shipped(name);
    expect(planDigest(protocol, ids).count).toBe(count);
    expect(protocol.analysis.contrasts.map(({ id, role }) => [id, role])).toEqual([
      ['M-B', 'primary'],
      ['M-O', 'secondary'],
      ['M-E', 'secondary'],
    ]);
  });

  test('obme-mini reports the six partitions (P4), which divide the 500 as their names say', async () => {
    const { protocol, ids } = await shipped('obme-mini');
    expect(protocol.analysis.tables?.[0]?.partitions).toEqual([
      'trained149',
      'outside351',
      'holdout100',
      'other250',
      'original150',
      'quarantined1',
    ]);
    const outside = ['trained149', 'outside351'].flatMap((name) => ids.get(name) ?? []);
    expect(new Set(outside).size).toBe(500);
    const parts = ['trained149', 'quarantined1', 'holdout100', 'other250'].flatMap(
      (name) => ids.get(name) ?? [],
    );
    expect([...new Set(parts)]).toHaveLength(500);
    expect([...(ids.get('original150') ?? [])].sort()).toEqual(
      [...(ids.get('trained149') ?? []), ...(ids.get('quarantined1') ?? [])].sort(),
    );
  });

  const generate = { stage: 'generate' } as const;
  test.each([
    [{ ...generate, phase: 'connect', cause: 'connection_refused' }, 'infrastructure', 'connection-broken'],
    [
      { ...generate, phase: 'body', cause: 'connection_lost', service_alive: true },
      'infrastructure',
      'connection-broken',
    ],
    [
      { ...generate, phase: 'queue', cause: 'queue_limit', http_status: 429 },
      'infrastructure',
      'queue-limit',
    ],
    [
      { ...generate, phase: 'headers', cause: 'http_status', http_status: 500 },
      'infrastructure',
      'server-error',
    ],
    [
      { ...generate, phase: 'body', cause: 'body_error', http_status: 200, embedded_status: 429 },
      'infrastructure',
      'server-error-in-body',
    ],
    [
      { ...generate, phase: 'body', cause: 'body_error', http_status: 200 },
      'undetermined',
      'error-without-status',
    ],
    [{ ...generate, phase: 'body', cause: 'body_no_choice', http_status: 200 }, 'undetermined', 'no-answer'],
    [
      {
        ...generate,
        phase: 'headers',
        cause: 'http_status',
        http_status: 400,
        text: "This model's maximum context length is 4096 tokens",
      },
      'undetermined',
      'context-overflow',
    ],
    [
      { ...generate, phase: 'headers', cause: 'http_status', http_status: 404 },
      'undetermined',
      'request-refused',
    ],
    [{ ...generate, phase: 'body', cause: 'time_limit', service_alive: true }, 'undetermined', 'time-limit'],
    [
      { ...generate, phase: 'body', cause: 'time_limit', service_alive: false },
      'infrastructure',
      'time-limit-dead-service',
    ],
    [{ stage: 'grade', phase: 'running', cause: 'grader_fault' }, 'undetermined', 'grader'],
  ] as const)('attribute %o', async (signals, attribution, rule) => {
    for (const name of ['demo', 'obme-mini']) {
      const { protocol } = await shipped(name);
      expect(classify(protocol.attempts.rules, failureSignals(signals))).toEqual({ attribution, rule });
    }
  });
});
