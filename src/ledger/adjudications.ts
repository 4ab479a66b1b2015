import { type PutItem, putItems, secretCommitment, verdictCommitment } from '../attempts/adjudication.js';
import type { Attribution } from '../attempts/rules.js';
import type { Violation } from '../attempts/violation.js';
import type { Digest } from '../core/digest.js';
import type { EntryOf } from './entries/entry.js';

/** A failed attempt that an adjudicator may judge. */
export interface Judgeable {
  readonly slot: string;
  readonly attempt: string;
}

/** What of a ledger the rules of a round hang on, at the entry in hand. */
export interface RoundSetting {
  readonly isAmended: boolean;
  readonly isUnblinded: boolean;
  /** Attempts that may be judged now: those without a verdict, and when asked for those that an adjudicator judged. */
  readonly judgeable: (revises: boolean) => readonly Judgeable[];
}

interface Committed {
  readonly alias: string;
  readonly commitment: Digest;
}

interface Opened {
  readonly alias: string;
  readonly attempt: string;
  readonly verdict: Attribution;
  readonly reason: string;
}

/** The round that is open, as plain data. */
interface Round {
  readonly round: string;
  readonly seq: number;
  readonly commitment: Digest;
  readonly items: readonly Judgeable[];
  readonly duplicates: number;
  readonly revises: boolean;
  /** In the order of the ledger. */
  readonly committed: readonly Committed[];
  /** null before the secret is known. */
  readonly revealed: readonly PutItem[] | null;
  readonly opened: readonly Opened[];
  /** Attempts to which an opened verdict was applied. */
  readonly applied: readonly string[];
  /** Attempts that could no longer be judged when the secret was revealed. */
  readonly moot: readonly string[];
}

/** A round that has ended. */
export interface ClosedRound {
  readonly round: string;
  /** Positions of its first and last entry. */
  readonly seq: number;
  readonly end: number;
  readonly items: number;
  readonly committed: number;
  readonly verdicts: number;
  readonly pairs: number;
  readonly agreeing: number;
  /** Verdicts that count and found their slot closed, or the plan amended. */
  readonly moot: number;
  readonly abandoned: string | null;
  /** Closed when outcomes could be read. */
  readonly late: boolean;
}

/** The round under way, as it may be shown to anybody. */
export interface OpenRound {
  readonly round: string;
  readonly seq: number;
  readonly commitment: Digest;
  readonly items: readonly Judgeable[];
  readonly duplicates: number;
  readonly revises: boolean;
  /** Aliases under which a verdict is committed, in the order of the ledger. */
  readonly judged: readonly string[];
}

export interface AdjudicationSnapshot {
  readonly current: Round | null;
  readonly closed: readonly ClosedRound[];
  readonly outside: number;
}

/** P14: rounds of adjudication, and whether verdicts follow from what was committed to before anybody knew whose it was. */
export class AdjudicationBook {
  #current: Round | null = null;
  readonly #closed: ClosedRound[] = [];
  /** Attributions by an adjudicator before the first round: nothing shows that they were blind. */
  #outside = 0;

  snapshot(): AdjudicationSnapshot {
    return { current: this.#current, closed: this.#closed, outside: this.#outside };
  }

  restore({ current, closed, outside }: AdjudicationSnapshot): void {
    this.#current = current;
    this.#closed.push(...closed);
    this.#outside = outside;
  }

  get open(): OpenRound | null {
    if (this.#current === null) return null;
    const { round, seq, commitment, items, duplicates, revises, committed } = this.#current;
    return {
      round,
      seq,
      commitment,
      items,
      duplicates,
      revises,
      judged: committed.map(({ alias }) => alias),
    };
  }

  get closed(): readonly ClosedRound[] {
    return this.#closed;
  }

  get outside(): number {
    return this.#outside;
  }

  begin(entry: EntryOf<'adjudication.opened'>, setting: RoundSetting): Violation | null {
    const { round, seq, commitment, items: count, duplicates, revises } = entry;
    if (this.#current !== null) return forbid(`the round ${this.#current.round} is not closed yet`);
    if (this.#closed.some((one) => one.round === round)) return forbid(`the round ${round} was held before`);
    if (setting.isAmended && !setting.isUnblinded)
      return forbid('the plan was amended: no verdict changes it');
    const items = setting.judgeable(revises);
    if (items.length !== count) return forbid(`${items.length} slots wait for a verdict, not ${count}`);
    if (duplicates > count)
      return forbid(`of ${count} items at most so many are put twice, not ${duplicates}`);
    this.#current = {
      round,
      seq,
      commitment,
      items,
      duplicates,
      revises,
      committed: [],
      revealed: null,
      opened: [],
      applied: [],
      moot: [],
    };
    return null;
  }

  commit({ round, alias, commitment }: EntryOf<'verdict.committed'>): Violation | null {
    const current = this.#of(round);
    if (current === null) return notOpen(round);
    if (current.revealed !== null) return forbid('a verdict after the aliases were revealed is not blind');
    if (current.committed.some((one) => one.alias === alias))
      return forbid(`a verdict on ${alias} was committed before`);
    if (current.committed.length === current.items.length + current.duplicates)
      return forbid('there are more verdicts than items');
    this.#current = { ...current, committed: [...current.committed, { alias, commitment }] };
    return null;
  }

  reveal({ round, secret }: EntryOf<'adjudication.revealed'>, setting: RoundSetting): Violation | null {
    const current = this.#of(round);
    if (current === null) return notOpen(round);
    if (current.revealed !== null) return forbid('its secret was revealed before');
    if (secretCommitment({ round, secret }) !== current.commitment)
      return forbid('the secret is not the one that the round was opened with');
    const attempts = current.items.map(({ attempt }) => attempt);
    const revealed = putItems({ secret }, attempts, current.duplicates);
    const aliases = new Set(revealed.map(({ alias }) => alias));
    const stray = current.committed.find(({ alias }) => !aliases.has(alias));
    if (stray !== undefined) return forbid(`a verdict was committed on ${stray.alias}, which is no item`);
    const still = new Set(
      setting.isAmended && !setting.isUnblinded ? [] : setting.judgeable(true).map(({ attempt }) => attempt),
    );
    this.#current = { ...current, revealed, moot: attempts.filter((attempt) => !still.has(attempt)) };
    return null;
  }

  openVerdict(entry: EntryOf<'verdict.opened'>): Violation | null {
    const { round, alias, attempt, slot, copy, verdict, reason, nonce } = entry;
    const current = this.#of(round);
    if (current === null) return notOpen(round);
    if (current.revealed === null) return forbid('the aliases are not revealed yet');
    const committed = current.committed.find((one) => one.alias === alias);
    if (committed === undefined) return forbid(`no verdict was committed on ${alias}`);
    if (current.opened.some((one) => one.alias === alias)) return forbid(`${alias} was opened before`);
    const item = current.revealed.find((one) => one.alias === alias);
    const judged = current.items.find((one) => one.attempt === attempt);
    if (item?.attempt !== attempt || item.copy !== copy || judged?.slot !== slot)
      return forbid(`${alias} stands for another attempt`);
    if (verdictCommitment(round, alias, { verdict, reason, nonce }) !== committed.commitment)
      return forbid(`the verdict on ${alias} is not the one that was committed`);
    this.#current = { ...current, opened: [...current.opened, { alias, attempt, verdict, reason }] };
    return null;
  }

  /** Whether a verdict stands behind an attribution by an adjudicator. To be asked before {@link applied}. */
  attributionFault(entry: EntryOf<'attribution.recorded'>): Violation | null {
    const current = this.#current;
    if (current === null && this.#closed.length === 0) return null;
    const counted = current === null ? undefined : counting(current).get(entry.attempt);
    if (counted === undefined) return forbid('no opened verdict stands behind it');
    if (current?.applied.includes(entry.attempt)) return forbid('the verdict was applied before');
    return counted.verdict === entry.attribution && counted.reason === entry.reason
      ? null
      : forbid('it says something else than the verdict that counts');
  }

  /** An attribution by an adjudicator was taken. */
  applied({ attempt }: EntryOf<'attribution.recorded'>): void {
    if (this.#current === null) this.#outside++;
    else this.#current = { ...this.#current, applied: [...this.#current.applied, attempt] };
  }

  close(entry: EntryOf<'adjudication.closed'>, setting: RoundSetting): Violation | null {
    const { round, seq: end, verdicts, pairs, agreeing, abandoned } = entry;
    const current = this.#of(round);
    if (current === null) return notOpen(round);
    const fault = abandoned === null ? completionFault(current) : abandonmentFault(current);
    if (fault !== null) return forbid(fault);
    const agreement = agreementOf(current);
    if (verdicts !== current.opened.length || pairs !== agreement.pairs || agreeing !== agreement.agreeing)
      return forbid('its counts are not those of the round');
    const moot = new Set(current.moot);
    this.#closed.push({
      round,
      seq: current.seq,
      end,
      items: current.items.length,
      committed: current.committed.length,
      verdicts,
      pairs,
      agreeing,
      moot: [...counting(current).keys()].filter((attempt) => moot.has(attempt)).length,
      abandoned,
      late: setting.isUnblinded,
    });
    this.#current = null;
    return null;
  }

  #of(round: string): Round | null {
    return this.#current?.round === round ? this.#current : null;
  }
}

/** The opened verdict that counts for each attempt: of two copies the one that was committed first. */
function counting({ committed, opened }: Pick<Round, 'committed' | 'opened'>): ReadonlyMap<string, Opened> {
  const byAlias = new Map(opened.map((one) => [one.alias, one]));
  const found = new Map<string, Opened>();
  for (const { alias } of committed) {
    const one = byAlias.get(alias);
    if (one !== undefined && !found.has(one.attempt)) found.set(one.attempt, one);
  }
  return found;
}

function agreementOf({ opened }: Pick<Round, 'opened'>): {
  readonly pairs: number;
  readonly agreeing: number;
} {
  const first = new Map<string, Attribution>();
  let [pairs, agreeing] = [0, 0];
  for (const { attempt, verdict } of opened) {
    const other = first.get(attempt);
    if (other === undefined) first.set(attempt, verdict);
    else {
      pairs++;
      if (other === verdict) agreeing++;
    }
  }
  return { pairs, agreeing };
}

function completionFault(current: Round): string | null {
  if (current.revealed === null) return 'the aliases were never revealed';
  const unopened = current.committed.length - current.opened.length;
  if (unopened > 0) return `${unopened} committed verdicts were not opened`;
  const moot = new Set(current.moot);
  const left = [...counting(current).keys()].filter(
    (attempt) => !moot.has(attempt) && !current.applied.includes(attempt),
  );
  return left.length === 0 ? null : `${left.length} verdicts that count were not applied`;
}

/** Once it is known whose the aliases are, nothing is given up any more. */
function abandonmentFault(current: Round): string | null {
  return current.revealed === null ? null : 'its aliases were revealed: it is closed, not abandoned';
}

function notOpen(round: string): Violation {
  return forbid(`the round ${round} is not open`);
}

function forbid(message: string): Violation {
  return { clause: 'P14', message };
}
