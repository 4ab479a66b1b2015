import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Digest, hexOf } from '../../../../src/core/digest.js';
import { readPack, reindex, writePack } from '../../loose-bundle.js';
import { type Case, copyOf, dropReports, resultOf, slotAt, stageOf } from '../case.js';

type Records = [string, Buffer | string][];

/** Objects, redaction, and checkpoints. */
export const OBJECTS: readonly Case[] = [
  {
    name: 'object-missing_fail',
    why: 'P16: a response that an entry names is not there',
    edit: (bundle) => {
      const { response } = stageOf(bundle, slotAt(bundle, 0), 'generate').objects as { response: Digest };
      bundle.ledger.objects.delete(hexOf(response));
    },
  },
  {
    name: 'object-altered_fail',
    why: 'P16: other bytes under the digest',
    after: pack((records) => alter(records, 7)),
  },
  {
    name: 'object-cut-short_fail',
    why: 'P16: the last record has fewer bytes than it says',
    after: bytes('ledger/objects.pack', (content) => content.subarray(0, -5)),
  },
  {
    name: 'object-that-nobody-names_fail',
    why: 'law 4: an object that no entry names',
    after: pack((records) => [
      ...records,
      ['2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae', Buffer.from('foo')],
    ]),
  },
  {
    name: 'object-twice_fail',
    why: 'each object stands once in the pack',
    after: pack((records) => [...records, ...records.slice(-1)]),
  },
  {
    name: 'objects-in-another-order_fail',
    why: 'records stand in the order of first mention',
    after: pack((records) => [...records.slice(0, 5), ...records.slice(5).reverse()]),
  },
  {
    name: 'object-length-with-a-zero_fail',
    why: 'lengths are decimal without leading zeros',
    after: bytes('ledger/objects.pack', (content) =>
      Buffer.from(content.toString('latin1').replace(/^([0-9a-f]{64}) /, '$1 0'), 'latin1'),
    ),
  },
  {
    name: 'response-not-the-candidates_fail',
    why: 'the response of another slot stands as the evidence of this candidate',
    edit: (bundle) => {
      const [a, b] = [slotAt(bundle, 0), slotAt(bundle, 1)];
      stageOf(bundle, b, 'generate').objects = { ...(stageOf(bundle, a, 'generate').objects as object) };
    },
  },
  {
    name: 'response-not-kept_fail',
    why: 'a candidate without the response that it came in',
    edit: (bundle) => {
      dropReports(bundle);
      stageOf(bundle, slotAt(bundle, 0), 'generate').objects = {};
    },
  },
  {
    name: 'usage-invented_fail',
    why: 'P21: fewer tokens than the response says',
    edit: (bundle) => {
      dropReports(bundle);
      stageOf(bundle, slotAt(bundle, 0), 'generate').usage = { prompt_tokens: 9, completion_tokens: 1 };
    },
  },
  {
    name: 'redacted-tasks',
    why: 'task files and requests are redacted; ids stand beside them',
    base: 'no_tasks',
  },
  { name: 'redacted-answers', why: 'responses, candidates and reports are redacted', base: 'no_answers' },
  {
    name: 'redacted-and-uncounted_fail',
    why: 'the index says that nothing was redacted',
    base: 'no_answers',
    after: (folder) => reindex(folder, { redacted: 0 }),
  },
  {
    name: 'redacted-ids-exchanged_fail',
    why: 'the ids beside redacted task files make another plan',
    base: 'no_tasks',
    edit: (bundle) => {
      bundle.ledger.taskIds = Buffer.from('{"all":["sum-1","sum-2","sum-4"]}');
    },
  },
  {
    name: 'redacted-ids-missing_fail',
    why: 'redacted task files without their ids: the plan cannot be rebuilt',
    base: 'no_tasks',
    edit: (bundle) => {
      bundle.ledger.taskIds = null;
    },
  },
  {
    name: 'redacted-and-value-raised_fail',
    why: 'law 3: redaction does not hide that settlement and report stage disagree',
    base: 'no_answers',
    edit: (bundle) => {
      dropReports(bundle);
      const settled = bundle.find('slot.settled', ({ value }) => value === 0);
      settled.value = 1;
    },
  },
  {
    name: 'redacted-commitment-malformed_fail',
    why: 'a commitment has 64 hexadecimal digits',
    base: 'no_answers',
    after: bytes('ledger/objects.pack', (content) =>
      Buffer.from(content.toString('latin1').replace(/(redacted \d+ [0-9a-f]{63})[0-9a-f]/, '$1'), 'latin1'),
    ),
  },
  {
    name: 'checkpoint-of-another-root_fail',
    why: 'a checkpoint says a root that the entries before it do not have',
    edit: (bundle) => {
      Object.assign(bundle.find('checkpoint'), { root: 'd'.repeat(64), size: 2, forged: true });
    },
  },
  {
    name: 'checkpoint-of-another-size_fail',
    why: 'a checkpoint is about all entries before it',
    edit: (bundle) => {
      Object.assign(bundle.find('checkpoint'), { size: 1, forged: true });
    },
  },
  {
    name: 'checkpoint-with-a-broken-note_fail',
    why: 'the note of a checkpoint is no signed note',
    edit: (bundle) => {
      bundle.find('checkpoint').note = 'lab/x\n2\n\n';
    },
  },
  {
    name: 'checkpoint-names-a-missing-token_fail',
    why: 'a time-stamp token that is not there',
    edit: (bundle) => {
      bundle.find('checkpoint').timestamps = [`sha256:${'5'.repeat(64)}`];
    },
  },
  {
    name: 'checkpoint-in-the-past_fail',
    why: 'an entry before the checkpoint was changed afterwards, and everything but the checkpoint was hashed anew',
    edit: (bundle) => {
      dropReports(bundle);
      const [, second] = bundle.entries.filter(({ type }) => type === 'checkpoint');
      if (second === undefined) throw new Error('one checkpoint');
      const kept = copyOf(second);
      const failed = resultOf(stageOf(bundle, slotAt(bundle, 2), 'generate')) as {
        signals: { text: unknown };
      };
      failed.signals.text = 'reset by peer';
      Object.assign(second, kept, { forged: true });
    },
  },
];

function alter(records: Records, n: number): Records {
  const [, content] = records[n] ?? [];
  if (!Buffer.isBuffer(content)) throw new Error('no record');
  const copy = Buffer.from(content);
  copy[0] = (copy[0] ?? 0) ^ 1;
  return records.map((record, i) => (i === n ? [record[0], copy] : record));
}

function pack(change: (records: Records) => Records): (folder: string) => void {
  return bytes('ledger/objects.pack', (content) => writePack(change(readPack(content))));
}

function bytes(path: string, change: (content: Buffer) => Buffer): (folder: string) => void {
  return (folder) => {
    const file = join(folder, path);
    writeFileSync(file, change(readFileSync(file)));
    reindex(folder);
  };
}
