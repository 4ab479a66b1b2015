import {
  putItems,
  secretCommitment,
  type Verdict,
  verdictCommitment,
} from '../../src/attempts/adjudication.js';
import type { EntryDraft } from '../../src/ledger/entries/entry.js';

export const ROUND = 'd'.repeat(32);
export const SECRET = '5e'.repeat(32);

export interface Item {
  readonly slot: string;
  readonly attempt: string;
}

/** Entries of a round, made apart from the code that writes them in earnest. */
export class RoundMaker {
  readonly #items: readonly Item[];
  readonly #duplicates: number;
  readonly #verdicts = new Map<string, Verdict>();

  constructor(items: readonly Item[], duplicates: number) {
    this.#items = items;
    this.#duplicates = duplicates;
  }

  opened(revises = false): EntryDraft {
    return {
      type: 'adjudication.opened',
      round: ROUND,
      commitment: secretCommitment({ round: ROUND, secret: SECRET }),
      items: this.#items.length,
      duplicates: this.#duplicates,
      revises,
    };
  }

  /** The alias of an item or of its duplicate. */
  alias(attempt: string, copy: 0 | 1 = 0): string {
    const attempts = this.#items.map((item) => item.attempt);
    const found = putItems({ secret: SECRET }, attempts, this.#duplicates).find(
      (item) => item.attempt === attempt && item.copy === copy,
    );
    if (found === undefined) throw new Error(`${attempt} is not put ${copy + 1} times`);
    return found.alias;
  }

  committed(alias: string, verdict: Verdict['verdict'], reason = 'the log says so itself'): EntryDraft {
    const said = { verdict, reason, nonce: `${alias}${'0'.repeat(48)}` };
    this.#verdicts.set(alias, said);
    return {
      type: 'verdict.committed',
      round: ROUND,
      alias,
      commitment: verdictCommitment(ROUND, alias, said),
    };
  }

  revealed(): EntryDraft {
    return { type: 'adjudication.revealed', round: ROUND, secret: SECRET };
  }

  openedVerdict(alias: string): EntryDraft {
    const attempts = this.#items.map((item) => item.attempt);
    const put = putItems({ secret: SECRET }, attempts, this.#duplicates).find((item) => item.alias === alias);
    const said = this.#verdicts.get(alias);
    const slot = this.#items.find(({ attempt }) => attempt === put?.attempt)?.slot;
    if (put === undefined || said === undefined || slot === undefined) throw new Error(`no item ${alias}`);
    const { attempt, copy } = put;
    return { type: 'verdict.opened', round: ROUND, alias, attempt, slot, copy, ...said };
  }

  applied(alias: string, late = false): EntryDraft {
    const opened = this.openedVerdict(alias);
    if (opened.type !== 'verdict.opened') throw new Error('no verdict');
    const { attempt, slot, verdict, reason } = opened;
    const rest = { by: 'adjudicator', rule: null, late, reason } as const;
    return { type: 'attribution.recorded', attempt, slot, attribution: verdict, ...rest };
  }

  closed(counts: { verdicts: number; pairs: number; agreeing: number; abandoned?: string }): EntryDraft {
    return { type: 'adjudication.closed', round: ROUND, abandoned: null, ...counts };
  }
}
