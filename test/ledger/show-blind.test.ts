import { describe, expect, it } from 'vitest';
import { command as show } from '../../src/commands/show.js';
import { openBook } from '../../src/ledger/book.js';
import { commandContext } from '../commands/context.js';
import { appendScripts, newBook, pausedDraft, SLOTS, SlotScript, slotAt } from './support.js';

/**
 * Law 8: a slot that a model's failure settled at 0 and one whose output was graded look alike in everything that `show` says
 * before unblinding. Every way in which an attempt can end is held against every other.
 */

const SLOT = slotAt(1, 'main');

/** Ends of one attempt: other entries, other numbers of them, other times. */
const ENDS: Readonly<Record<string, (script: SlotScript) => SlotScript>> = {
  'graded at 1': (script) => script.generated().graded(1).finished('report').settled(),
  'graded at 0': (script) => script.generated(0, 0.001).graded(0).finished('report').settled(),
  'no end recorded yet': (script) => script.generated().graded(1),
  'a failure of the model': (script) =>
    script.failed('generate', 'body_malformed').finished('failure').settled(),
  'a failure of the model that is not settled yet': (script) => script.failed('generate', 'body_malformed'),
  'a failure of the model in grading': (script) =>
    script.generated().failed('grade', 'body_malformed').finished('failure').settled(),
};

const STARTS: Readonly<Record<string, (script: SlotScript) => SlotScript>> = {
  'the first attempt': (script) => script.start(),
  'a replacement': (script) =>
    script.start().failed('generate', 'connection_lost').finished('failure').start('replacement'),
};

/** What `show` says of the slot, and of each of its entries that is not shown. */
async function looks(script: SlotScript): Promise<{ slot: string; entries: ReadonlySet<string> }> {
  const { root, book } = await newBook([new SlotScript(slotAt(0, 'main')).whole(1)]);
  appendScripts(book.store, [script]);
  book.close();
  const run = async (what: string) => {
    const { text, json } = await show.run([what], {}, commandContext(root));
    return `${text}\n${JSON.stringify(json)}`.replace(/[0-9a-f]{64}|[0-9a-f]{32}/g, 'ID');
  };
  const read = await openBook(root, undefined, 'read');
  const own = [...read.store.entries()].flatMap(({ entry }) =>
    'slot' in entry && entry.slot === SLOT.id ? [entry.seq] : [],
  );
  read.close();
  const entries = new Set<string>();
  for (const seq of own) entries.add((await run(String(seq))).replaceAll(String(seq), 'SEQ'));
  return { slot: await run(SLOT.id), entries };
}

describe.each(Object.entries(STARTS))('before unblinding, of %s', (start, begin) => {
  it('`show` tells nothing of how it ended', async () => {
    const seen = await Promise.all(
      Object.entries(ENDS).map(async ([name, end]) => ({
        name,
        settled: !name.includes('yet'),
        ...(await looks(end(begin(new SlotScript(SLOT))))),
      })),
    );
    for (const settled of [true, false]) {
      const group = seen.filter((one) => one.settled === settled);
      expect(group.length).toBeGreaterThan(1);
      for (const one of group) expect([one.name, one.slot]).toEqual([one.name, group[0]?.slot]);
    }
    // Whatever an entry is, it is masked in the same words; entries of earlier attempts are shown as they are.
    const masked = new Set(
      seen.flatMap(({ entries }) => [...entries].filter((text) => /"masked":true/.test(text))),
    );
    expect([...masked]).toHaveLength(1);
    expect([...masked][0]).not.toMatch(/stage|settled|attempt|slot|time"/);
    expect(new Set(seen.map(({ entries }) => entries.size)).size).toBe(1);
    expect(seen[0]?.entries.size).toBe(start === 'a replacement' ? 5 : 1);
  });
});

it('where an attempt that an outcome rests on began is not told by its request either', async () => {
  const script = new SlotScript(SLOT).start().failed('generate', 'body_malformed').finished('failure');
  const { root, book } = await newBook([script.settled()]);
  book.store.append([pausedDraft('finished')]);
  book.close();
  const [request] = script.objects;
  const { json, text } = await show.run([String(request?.digest)], {}, commandContext(root));
  expect(json).toMatchObject({ named_by: [{ seq: null, as: 'request' }] });
  expect(text).toContain('a masked entry as request');
});

it('objects of an attempt are listed with digest and size: all of them after unblinding, before it those that are shown', async () => {
  const scripts = SLOTS.filter(({ queue }) => queue === 'main').map((slot) => new SlotScript(slot).whole(1));
  const [script] = scripts;
  const list = async (blinding: string) => {
    const { root, book } = await newBook(scripts, { blinding });
    book.close();
    const { json, text } = await show.run([script?.attempt ?? ''], {}, commandContext(root));
    return { objects: (json as { objects: object[] }).objects, text };
  };
  const attempt = script?.attempt;
  const [request, candidate, response, report] = (script?.objects ?? []).map(({ digest, bytes }) => ({
    attempt,
    digest,
    size: bytes.length,
  }));
  const blind = await list('masked');
  expect(blind.objects).toEqual([{ name: 'request', ...request }]);
  const open = await list('none');
  expect(open.objects).toEqual([
    { name: 'request', ...request },
    { name: 'generate, response', ...response },
    { name: 'candidate', ...candidate },
    { name: 'report', ...report },
  ]);
  expect(open.text).toContain(
    [
      `Objects of attempt ${attempt?.slice(0, 8)}:`,
      `  request (${request?.size} bytes)`,
      `    ${request?.digest}`,
      `  generate, response (${response?.size} bytes)`,
      `    ${response?.digest}`,
    ].join('\n'),
  );
  expect(open.text).toContain('`boundbook show DIGEST` prints one.');
});
