import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { FINDINGS } from '../../src/audit/finding.js';
import { entryDraftSchema } from '../../src/ledger/entries/entry.js';
import { manifestSchema } from '../../src/manifest/schema.js';
import { protocolSchema } from '../../src/protocol/schema/protocol.js';
import { CAUSES, PHASES, STAGES } from '../../src/protocol/schema/signals.js';

/** The pages name what the code knows: nothing can be added to one and forgotten in the other. */

const page = (name: string): string => readFileSync(`docs/formats/${name}.md`, 'utf8');
const quoted = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');

it('audit.md lists every finding, and no other', () => {
  const table = page('audit').split('## A second verifier')[0] ?? '';
  const rows = table.split('\n').filter((line) => /^\| `[A-Z]/.test(line));
  const listed = rows.flatMap((row) => quoted(row.split('|')[1] ?? ''));
  expect(listed.toSorted()).toEqual(Object.keys(FINDINGS).sort());
});

it('ledger.md has a row for every type of entry, with all of its members', () => {
  const [, members = ''] = page('ledger').split('| type | members |');
  const rows = new Map(
    (members.split('```')[0] ?? '')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => [quoted(line)[0] ?? '', line]),
  );
  const types = entryDraftSchema.options.map((option) => option.shape.type.value);
  expect([...rows.keys()].sort()).toEqual(types.toSorted());
  for (const { shape } of entryDraftSchema.options) {
    const row = quoted(rows.get(shape.type.value) ?? '');
    for (const member of Object.keys(shape)) {
      if (member !== 'type') expect(row, `${shape.type.value}.${member}`).toContain(member);
    }
  }
});

it('protocol.md and manifest.md name every member of their forms', () => {
  for (const [name, schema] of [
    ['protocol', protocolSchema],
    ['manifest', manifestSchema.omit({ protocol: true })],
  ] as const) {
    const words = new Set(page(name).match(/[a-z_]+/g));
    for (const member of membersOf(schema)) expect(words, `${name}: ${member}`).toContain(member);
  }
  const words = page('protocol');
  for (const word of [...STAGES, ...PHASES, ...CAUSES]) expect(words).toContain(`"${word}"`);
});

/** The names of all object members anywhere in a schema. */
function membersOf(schema: z.ZodType): ReadonlySet<string> {
  const found = new Set<string>();
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { properties } = value as { properties?: unknown };
    if (typeof properties === 'object' && properties !== null) {
      for (const name of Object.keys(properties)) found.add(name);
    }
    for (const item of Object.values(value)) walk(item);
  };
  walk(z.toJSONSchema(schema, { unrepresentable: 'any' }));
  return found;
}
