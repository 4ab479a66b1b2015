import { exportBundle } from '../../../src/audit/bundle/export.js';
import { digestOf, hexOf } from '../../../src/core/digest.js';
import { LooseBundle } from '../loose-bundle.js';
import { LIVES, type Life, makeSmallBook, type SmallBookOptions } from '../small-book.js';

const NAMED: Life = [
  {
    failure: { cause: 'http_status', phase: 'body', http_status: 400, exception: 'EnvironmentDead' },
    body: '{"error":{"type":"EnvironmentDead"}}',
  },
];

/** Sound books from which cases are made. */
const BOOKS = {
  /** Eleven slots, every kind of life, unblinded, with its report. */
  full: {},
  /** Six slots lived, five pending; outcomes are blinded. */
  blinded: { lives: LIVES.slice(0, 6), unblind: false },
  /** The same, unblinded in part. */
  partial: { lives: LIVES.slice(0, 6) },
  /** All outcomes shown from the start. */
  open: { protocol: (text) => text.replace('blinding: masked', 'blinding: none'), unblind: false },
  /** A rule that rests on the name of an exception. */
  named: {
    lives: [...LIVES.slice(0, 4), NAMED, ...LIVES.slice(5)],
    protocol: (text) =>
      text.replace(
        '    - { id: malformed',
        '    - { id: dead, when: { exception: EnvironmentDead }, attribute: infrastructure, sufficient: false }\n    - { id: malformed',
      ),
  },
  /** Undetermined slots need a verdict before outcomes are shown; none was given, so it is unblinded in part. */
  judged: {
    unblind: false,
    protocol: (text) => text.replace('  breaker: 10', '  breaker: 10\n  adjudication: required'),
  },
} as const satisfies Record<string, SmallBookOptions>;

export type BaseName = keyof typeof BOOKS | 'no_tasks' | 'no_answers';

/** @param root an empty folder */
export async function makeBase(name: BaseName, root: string): Promise<LooseBundle> {
  const redacted = name === 'no_tasks' || name === 'no_answers';
  await makeSmallBook(root, redacted ? BOOKS.full : BOOKS[name]);
  const redact = { tasks: name === 'no_tasks', answers: name === 'no_answers', digests: [] };
  const { folder } = await exportBundle(root, undefined, {
    out: 'bundle',
    beforeUnblinding: true,
    ...(redacted ? { redact } : {}),
  });
  const bundle = LooseBundle.read(folder);
  if (redacted) fixCommitments(bundle);
  return bundle;
}

/** Salts are drawn at random; a case is the same bytes each time. */
function fixCommitments({ ledger: { objects } }: LooseBundle): void {
  for (const [hex, content] of objects) {
    if (typeof content !== 'string') continue;
    objects.set(hex, content.replace(/[0-9a-f]{64}$/, hexOf(digestOf(Buffer.from(`salted ${hex}`)))));
  }
}
