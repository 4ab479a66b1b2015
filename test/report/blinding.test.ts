import { describe, expect, it } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { renderAudit } from '../../src/audit/render.js';
import { command as report } from '../../src/commands/report.js';
import { command as status } from '../../src/commands/status.js';
import { newBook, SLOTS, SlotScript } from '../ledger/support.js';

/** One way that slots can come out, with equal coverage: answers of some length, right or wrong, or a model failure. */
type Outcome = 'right' | 'wrong long' | 'uncounted' | 'model failure';

function script(slot: (typeof SLOTS)[number], outcome: Outcome): SlotScript {
  const made = new SlotScript(slot);
  switch (outcome) {
    case 'right':
      return made.whole(1);
    case 'wrong long':
      return made.start().generated(4000).graded(0).finished('report').settled();
    case 'uncounted':
      return made.start().generated(null).graded(1).finished('report').settled();
    case 'model failure':
      return made.start().failed('generate', 'body_malformed').finished('failure').settled();
    default:
      return outcome satisfies never;
  }
}

async function world(outcome: Outcome, changes: Record<string, unknown> = {}) {
  const { root, book } = await newBook(
    SLOTS.map((slot, i) => script(slot, i % 2 === 0 ? outcome : 'right')),
    changes,
  );
  book.close();
  return root;
}

/** All that is printed before unblinding, without hashes, times and seconds: those are no outcomes. */
async function printed(root: string): Promise<string[]> {
  const controller = new AbortController();
  const context = {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal: controller.signal,
    force: controller.signal,
    now: () => '2026-12-01T00:00:00.000Z',
  };
  const [shown, made, audited] = [
    await status.run([], {}, context),
    await report.run([], {}, context),
    await audit(root, undefined),
  ];
  return [shown.text, made.text, JSON.stringify(shown.json), JSON.stringify(made.json)]
    .map(neutral)
    .concat(
      neutral(renderAudit({ ...audited, findings: [] })),
      JSON.stringify({ checked: audited.checked, remarks: audited.remarks }),
    );
}

function neutral(text: string): string {
  return text
    .replaceAll(/\b[0-9a-f]{32,64}\b/g, 'HASH')
    .replaceAll(/\b20\d\d-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/"(seconds|queue_seconds|session_seconds)":[\d.]+/g, '"$1":S')
    .replaceAll(/-{2,}| {2,}/g, ' ')
    .replaceAll(/\b\d+\.\d+\b/g, 'S')
    .replaceAll(/audit: \d+ findings/g, 'audit');
}

describe('before unblinding (law 8)', () => {
  it.each(['wrong long', 'uncounted', 'model failure'] as const)(
    'status, report and audit print the same whether slots came out right or: %s',
    async (outcome) => {
      expect(await printed(await world(outcome))).toEqual(await printed(await world('right')));
    },
  );

  it('masks by name and by null', async () => {
    const [statusText, reportText, statusJson, reportJson] = await printed(await world('model failure'));
    expect(statusText).toContain('Stages, tokens and gradings are masked until unblind');
    expect(reportText).toMatch(
      /Stages,\s+generated\s+tokens,\s+gradings\s+and\s+everything\s+by\s+arm\s+are\s+masked\s+until\s+unblind/,
    );
    for (const json of [statusJson, reportJson]) {
      expect(json).toContain('"gradings":null');
      expect(json).not.toMatch(/"(stages|generated_tokens|uncounted_generations|gradings)":\d/);
    }
  });

  it('masks nothing that a plan without blinding shows', async () => {
    const [statusText, reportText] = await printed(await world('model failure', { blinding: 'none' }));
    expect(statusText).not.toContain('masked');
    expect(reportText).toMatch(/gradings +\d/);
  });
});
