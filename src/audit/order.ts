import type { Digest } from '../core/digest.js';
import type { CheckpointMark } from './checkpoint-trail.js';
import type { Note } from './finding.js';
import type { Stamp } from './stamps.js';

/**
 * The order in time that verified time stamps prove. Pure.
 *
 * A stamp over a file bounds from above when the file, and all that it names by digest, came into being. Nothing bounds
 * from below but something that nobody could foretell: an entry that names a token was made after the token.
 */

/** A host's clock may be off by so much, in seconds, before a time is called false. */
export const CLOCK_TOLERANCE_S = 300;

/** What the order rests on. */
export interface OrderFacts {
  readonly manifest: { readonly digest: Digest; readonly created: string } | null;
  /** Manifests that it was bound from or that its plan supersedes. */
  readonly lineage: readonly EarlierManifest[];
  readonly report: Digest | null;
  readonly firstAttempt: { readonly seq: number; readonly time: string } | null;
  /** Whether slots were carried over from the ledger of a superseded plan. */
  readonly carries: boolean;
  readonly marks: readonly CheckpointMark[];
  /** Sizes of the checkpoints whose notes agree with the ledger, by the digest of the note. */
  readonly notes: ReadonlyMap<Digest, number>;
  /** Verified tokens by the digest of their bytes; null when no authority was given. */
  readonly stamps: ReadonlyMap<Digest, Stamp> | null;
  /** Whether there is any time stamp over the manifest, and one that an entry before the first attempt names. */
  readonly present: { readonly plan: boolean; readonly named: boolean };
}

export interface EarlierManifest {
  readonly digest: Digest;
  readonly name: string;
  readonly revision: number;
  /** It holds the same protocol, so that it fixes the same plan and fewer bindings. */
  readonly samePlan: boolean;
}

/** Times as RFC 3339 in UTC, whole seconds, rounded to the safe side. */
export interface ProvedTimes {
  readonly plan_no_later_than: string | null;
  readonly first_attempt_no_earlier_than: string | null;
  readonly entries_no_later_than: readonly { readonly entries: number; readonly time: string }[];
  readonly report_no_later_than: string | null;
  /** Whether these times, or a token over the manifest that an entry before the attempt names, show it. */
  readonly plan_before_first_attempt: boolean;
}

export interface OrderVerdict {
  readonly times: ProvedTimes;
  readonly lines: readonly string[];
  /** Why the order is not proved, or not by more than the chain. */
  readonly notChecked: readonly string[];
  readonly notes: readonly Note[];
}

export function provedOrder(facts: OrderFacts): OrderVerdict {
  const stamps = [...(facts.stamps?.values() ?? [])];
  const plan = earliest(stamps, (stamp) => stamp.subject === facts.manifest?.digest);
  const first = firstAttemptBound(facts);
  const entries = entryBounds(facts, stamps);
  const report = earliest(stamps, (stamp) => stamp.subject === facts.report);
  const direct = namedBefore(facts).find(({ stamp }) => stamp.subject === facts.manifest?.digest) ?? null;
  const byTimes = plan !== null && first !== null && plan.noLaterThan <= first.stamp.noEarlierThan;
  const proved = direct !== null || byTimes;
  const lines = [
    ...(plan === null
      ? []
      : [`plan no later than ${instant(plan.noLaterThan)}: ${plan.label} stamps the manifest`]),
    ...earlierPlanLines(facts, stamps),
    ...firstAttemptLines(facts, first),
    ...entries.map(
      ({ size, stamp }) =>
        `entries 0 to ${size - 1} no later than ${instant(stamp.noLaterThan)}: ${stamp.label} stamps the checkpoint over them`,
    ),
    ...(report === null
      ? []
      : [`report no later than ${instant(report.noLaterThan)}: ${report.label} stamps it`]),
    ...provedLine(direct, byTimes),
  ];
  return {
    times: {
      plan_no_later_than: plan === null ? null : instant(plan.noLaterThan),
      first_attempt_no_earlier_than: first === null ? null : instant(first.stamp.noEarlierThan),
      entries_no_later_than: entries.map(({ size, stamp }) => ({
        entries: size,
        time: instant(stamp.noLaterThan),
      })),
      report_no_later_than: report === null ? null : instant(report.noLaterThan),
      plan_before_first_attempt: proved,
    },
    lines,
    notChecked: [
      ...(proved ? [] : whyNot(facts, plan, first, entries)),
      ...(first === null
        ? []
        : ['whether models were asked before, outside this ledger: no time stamp shows it']),
    ],
    notes: contradictions(facts, stamps),
  };
}

interface NamedStamp {
  readonly mark: CheckpointMark;
  readonly stamp: Stamp;
}

interface StampedEntries {
  readonly size: number;
  readonly stamp: Stamp;
}

/** The latest verified token that an entry before the first attempt names. */
function firstAttemptBound(facts: OrderFacts): NamedStamp | null {
  return namedBefore(facts).reduce<NamedStamp | null>(
    (best, one) => (best === null || one.stamp.noEarlierThan > best.stamp.noEarlierThan ? one : best),
    null,
  );
}

function namedBefore(facts: OrderFacts): readonly NamedStamp[] {
  const { firstAttempt } = facts;
  return firstAttempt === null ? [] : namedStamps(facts).filter(({ mark }) => mark.size < firstAttempt.seq);
}

/** A token over the manifest lies between the two, whatever the clock of its authority says. */
function provedLine(direct: NamedStamp | null, byTimes: boolean): string[] {
  if (direct !== null) {
    return [
      `the plan came before the first attempt: entry ${direct.mark.size}, before it, names a token over the manifest`,
    ];
  }
  return byTimes ? ['the plan came before the first attempt, by these time stamps'] : [];
}

function namedStamps({ marks, stamps }: OrderFacts): readonly NamedStamp[] {
  return marks.flatMap((mark) =>
    mark.timestamps.flatMap((digest) => {
      const stamp = stamps?.get(digest);
      return stamp === undefined ? [] : [{ mark, stamp }];
    }),
  );
}

/** For each stamped checkpoint the earliest time, leaving out what a longer one shows for an earlier time. */
function entryBounds({ notes }: OrderFacts, stamps: readonly Stamp[]): readonly StampedEntries[] {
  const best = new Map<number, Stamp>();
  for (const stamp of stamps) {
    const size = notes.get(stamp.subject);
    if (size === undefined || size === 0) continue;
    const known = best.get(size);
    if (known === undefined || stamp.noLaterThan < known.noLaterThan) best.set(size, stamp);
  }
  const all = [...best].map(([size, stamp]) => ({ size, stamp })).sort((a, b) => a.size - b.size);
  return all.filter(
    (one) => !all.some((other) => other.size > one.size && other.stamp.noLaterThan <= one.stamp.noLaterThan),
  );
}

/** A stamp on an earlier manifest proves that one, and says nothing of what was bound since. */
function earlierPlanLines({ lineage }: OrderFacts, stamps: readonly Stamp[]): string[] {
  return lineage.flatMap(({ digest, name, revision, samePlan }) => {
    const stamp = earliest(stamps, ({ subject }) => subject === digest);
    if (stamp === null) return [];
    const what = samePlan
      ? 'the same protocol; what was bound since is not covered'
      : 'another protocol: the plan that this one supersedes';
    return [
      `an earlier manifest (${name}.r${revision}, ${digest}) no later than ${instant(stamp.noLaterThan)}: ${stamp.label}. It holds ${what}`,
    ];
  });
}

function firstAttemptLines({ carries }: OrderFacts, first: NamedStamp | null): string[] {
  if (first === null) return [];
  const { mark, stamp } = first;
  const carried = carries ? ' (slots that were carried over were attempted before, in another ledger)' : '';
  return [
    `first attempt no earlier than ${instant(stamp.noEarlierThan)}: entry ${mark.size}, before it, names the token ${stamp.label}${carried}`,
  ];
}

function whyNot(
  facts: OrderFacts,
  plan: Stamp | null,
  first: NamedStamp | null,
  entries: readonly StampedEntries[],
): string[] {
  const { firstAttempt, manifest, present, stamps } = facts;
  if (firstAttempt === null || manifest === null) return [];
  const question = 'whether the plan came before the first attempt, by clocks other than the operator’s';
  if (stamps === null && (present.plan || present.named)) {
    return [`${question}: no authority was given for the time stamps (--tsa-ca PEM)`];
  }
  const reasons: string[] = [];
  if (plan === null) {
    reasons.push(
      present.plan ? 'no time stamp over the manifest verifies' : 'no time stamp is over the manifest',
    );
  }
  if (first === null) {
    reasons.push(
      present.named
        ? 'no token that an entry before the first attempt names verifies'
        : 'no entry before the first attempt names a time-stamp token',
    );
  }
  if (plan !== null && first !== null) {
    reasons.push(
      `the manifest was stamped by ${instant(plan.noLaterThan)}, and the first attempt is only known to be later than ${instant(first.stamp.noEarlierThan)}`,
    );
  }
  const after =
    plan === null ? undefined : entries.find(({ stamp }) => stamp.noLaterThan < plan.noEarlierThan);
  if (after !== undefined && plan !== null) {
    reasons.push(
      `the manifest was stamped at ${instant(plan.noEarlierThan)} or later, when entries 0 to ${after.size - 1} existed already`,
    );
  }
  return [`${question}: ${reasons.join('; ')}`];
}

/** Times in manifest and entries that a verified stamp shows to be false. */
function contradictions(facts: OrderFacts, stamps: readonly Stamp[]): readonly Note[] {
  const { manifest, marks, notes: sizes } = facts;
  const notes: Note[] = [];
  for (const { mark, stamp } of namedStamps(facts)) {
    if (secondsOf(mark.time) + CLOCK_TOLERANCE_S >= stamp.noEarlierThan) continue;
    notes.push({
      code: 'TIME_CONTRADICTED',
      where: { seq: mark.size, pointer: '/time' },
      message: `the entry is dated ${mark.time} and names a token that was not made before ${instant(stamp.noEarlierThan)}`,
    });
  }
  for (const stamp of stamps) {
    const latest = instant(stamp.noLaterThan);
    const size = sizes.get(stamp.subject);
    const mark = marks.find((one) => one.size === size);
    if (mark !== undefined && isLater(mark.before, stamp)) {
      notes.push({
        code: 'TIME_CONTRADICTED',
        where: { seq: mark.size - 1, pointer: '/time' },
        message: `the entry is dated ${mark.before}; the checkpoint over it was stamped by ${latest} (${stamp.label})`,
      });
    }
    if (manifest !== null && stamp.subject === manifest.digest && isLater(manifest.created, stamp)) {
      notes.push({
        code: 'TIME_CONTRADICTED',
        where: { pointer: '/created' },
        message: `the manifest is dated ${manifest.created} and was stamped by ${latest} (${stamp.label})`,
      });
    }
  }
  return notes;
}

function isLater(time: string, stamp: Stamp): boolean {
  return secondsOf(time) > stamp.noLaterThan + CLOCK_TOLERANCE_S;
}

function earliest(stamps: readonly Stamp[], pass: (stamp: Stamp) => boolean): Stamp | null {
  return stamps
    .filter(pass)
    .reduce<Stamp | null>(
      (best, one) => (best === null || one.noLaterThan < best.noLaterThan ? one : best),
      null,
    );
}

function secondsOf(time: string): number {
  return Date.parse(time) / 1000;
}

function instant(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}
