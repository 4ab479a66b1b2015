import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { audit, auditBundle } from '../../../src/audit/audit.js';
import { type Exported, exportBundle } from '../../../src/audit/bundle/export.js';
import { makeSmallBook, type SmallBook } from '../../support/small-book.js';
import { temporaryFolder } from './support.js';

let book: SmallBook;
let exported: Exported;

beforeAll(async () => {
  book = await makeSmallBook(temporaryFolder());
  exported = await exportBundle(book.root, undefined, { out: 'bundle', tar: 'bundle.tar' });
});

describe('a clean bundle', () => {
  test.each(['bundle', 'bundle.tar'])('%s has no finding and the head of its ledger', async (name) => {
    const result = await auditBundle(join(book.root, name));
    const live = await audit(book.root, undefined);
    expect(result.findings).toEqual([]);
    expect(result.verdict).toBe('clean');
    expect(result.ledger).toEqual(live.ledger);
    expect(result.coverage).toEqual(live.coverage);
    expect(result.bundle?.digest).toBe(exported.bundle);
  });
});
