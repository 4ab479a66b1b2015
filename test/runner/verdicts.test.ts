import { expect, test } from 'vitest';
import { command as adjudicate } from '../../src/commands/adjudicate.js';
import { command as status } from '../../src/commands/status.js';
import { invoke } from '../amend/support.js';
import { trial } from './fixture.js';

test('what waits for an adjudicator is said by run and status, and so is an open round', async () => {
  const plan = await trial({ prompts: { a: 'right a', d: 'empty d' } });
  const { text } = await plan.run();
  expect(text).toMatch(/boundbook adjudicate: 1 slots are undetermined; then boundbook\s+unblind/);
  const before = await invoke(status, plan.root, [], {});
  expect(before.text).toMatch(/verdicts\s+1 undetermined slots wait for one: boundbook adjudicate/);
  expect(before.json).toMatchObject({ ledger: { adjudication: { waiting: 1, open: null } } });
  await invoke(adjudicate, plan.root, [], { list: true });
  const during = await invoke(status, plan.root, [], {});
  expect(during.text).toMatch(/round\s+open since entry \d+: 0 of 2 items judged/);
});
