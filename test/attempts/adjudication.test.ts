import { describe, expect, it } from 'vitest';
import { putItems, secretCommitment, verdictCommitment } from '../../src/attempts/adjudication.js';

/** Figures from Python's hmac and hashlib over the same canonical JSON. */
const A = 'a'.repeat(32);
const B = 'b'.repeat(32);
const C = 'c'.repeat(32);
const secret = '5e'.repeat(32);

describe('what follows from the secret of a round', () => {
  it('aliases, duplicates and order are those of the written rule', () => {
    expect(putItems({ secret }, [A, B, C], 2)).toEqual(EXPECTED);
  });
  it('the order in which attempts are handed in does not matter', () => {
    expect(putItems({ secret }, [C, A, B], 2)).toEqual(EXPECTED);
  });
  it('another secret gives no alias again', () => {
    const other = putItems({ secret: '6e'.repeat(32) }, [A, B, C], 2).map(({ alias }) => alias);
    for (const { alias } of EXPECTED) expect(other).not.toContain(alias);
  });
  it('commitments are digests of canonical JSON', () => {
    expect(secretCommitment({ round: A, secret })).toBe(ROUND_COMMITMENT);
    const verdict = { verdict: 'model', reason: 'übel', nonce: '0'.repeat(64) } as const;
    expect(verdictCommitment(A, '0123456789abcdef', verdict)).toBe(VERDICT_COMMITMENT);
  });
});

const EXPECTED = [
  { alias: 'e1eaa13a888e21fd', attempt: A, copy: 1 },
  { alias: 'ce99059629fd3e9e', attempt: B, copy: 1 },
  { alias: '424f98aaa7acbfb6', attempt: C, copy: 0 },
  { alias: '1e70fa326ecd9aa7', attempt: A, copy: 0 },
  { alias: '95e175694d80c2fe', attempt: B, copy: 0 },
];
const ROUND_COMMITMENT = 'sha256:d703899affbf4b5853830e330e9938423e7eb27dcd2cc04921907275e1d3d125';
const VERDICT_COMMITMENT = 'sha256:7c6f8299db75987eb25c7983acbd6c18c8ebaeb83d024917e573f916ff2a31a0';
