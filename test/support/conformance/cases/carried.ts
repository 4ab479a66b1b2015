import { canonicalBytes, canonicalText } from '../../../../src/core/canonical-json.js';
import { hexOf } from '../../../../src/core/digest.js';
import { CompactRange, leafHash } from '../../../../src/ledger/merkle.js';
import type { Loose, LooseBundle, LoosePart } from '../../loose-bundle.js';
import { type Case, chainAnew, copyOf, editReport } from '../case.js';

/** P22: chains of revisions, slots that were given up, and verdicts that a plan asks for. */
export const CARRIED: readonly Case[] = [
  reported(
    'amended_reported',
    'amended-reported',
    'P22: narrowed before unblinding; the report tells what was given up',
  ),
  reported(
    'amended_post_hoc',
    'amended-post-hoc',
    'P22: narrowed with open outcomes; the report says post hoc, and nothing is confirmatory',
  ),
  reported(
    'amended_reported',
    'amended-report-hides-the-revision_fail',
    'P22: the report does not say that the plan was amended',
    (report) => {
      Object.assign(report, { amendment: null, revisions: [] });
    },
  ),
  reported(
    'amended_post_hoc',
    'post-hoc-called-before-unblinding_fail',
    'P22: outcomes were known, and the report says that they were not',
    (report) => {
      report.amendment = 'before unblinding';
    },
  ),
  reported(
    'amended_post_hoc',
    'post-hoc-still-confirmatory_fail',
    'P22: nothing is demoted although outcomes were known',
    (report) => {
      report.demoted = report.demoted.filter((reason) => reason !== 'post hoc');
    },
  ),
  reported(
    'amended_post_hoc',
    'post-hoc-exposure-hidden_fail',
    'P22: the exposure in the report is not that of the manifest',
    (report) => {
      for (const { exposure } of report.revisions) exposure.unblinded = false;
    },
  ),
  reported(
    'amended_reported',
    'amended-report-hides-what-was-dropped_fail',
    'P22: the queue that was given up is not named',
    (report) => {
      for (const { changes } of report.revisions) changes.dropped = [];
    },
  ),
  reported(
    'amended_post_hoc',
    'amended-report-hides-a-change-of-the-analysis_fail',
    'P22: a changed part of the protocol is not named',
    (report) => {
      for (const { changes } of report.revisions) changes.protocol = changes.protocol.slice(1);
    },
  ),
  reported(
    'amended_reported',
    'amended-report-with-another-reason_fail',
    'P22: the reason is the manifest’s',
    (report) => {
      for (const revision of report.revisions) revision.reason = 'no reason';
    },
  ),
  reported(
    'amended_reported',
    'amended-report-counts-fewer-slots-before_fail',
    'P22: the plan before had more slots',
    (report) => {
      for (const { changes } of report.revisions) changes.slots.before -= 1;
    },
  ),
  reported(
    'amended_reported',
    'amended-report-forgets-carried-attempts_fail',
    'P22: attempts of carried slots are told',
    (report) => {
      report.carried.attempts -= 1;
    },
  ),
  {
    name: 'amended-miscounts-what-it-gave-up_fail',
    why: 'P22: fewer closed slots were given up than the new plan leaves out',
    base: 'amended_narrower',
    edit: (bundle) => {
      const carries = carriesOf(bundle);
      carries.dropped = Number(carries.dropped) - 1;
    },
  },
  {
    name: 'amended-miscounts-what-runs-again_fail',
    why: 'P22: a slot is said to run again that is carried',
    base: 'amended',
    edit: (bundle) => {
      const carries = carriesOf(bundle);
      carries.again = Number(carries.again) + 1;
    },
  },
  {
    name: 'given-up-and-carried_fail',
    why: 'P22: a slot is carried that the new plan does not hold',
    base: 'amended_narrower',
    edit: (bundle) => {
      const [before] = bundle.predecessors.values();
      const carriedSlots = new Set(bundle.entries.map(({ slot }) => slot));
      const start = before?.entries.find(
        ({ type, slot }) => type === 'attempt.started' && !carriedSlots.has(slot),
      );
      const carried = carriedFrom(before, start);
      bundle.insert(lastCarried(bundle) + 1, carried);
    },
  },
  {
    name: 'amended-twice',
    why: 'P22: revision 3 carries what revision 2 had carried',
    base: 'amended',
    edit: (bundle) => amendAgain(bundle, secondPlan(bundle)),
  },
  {
    name: 'amended-twice-value-raised_fail',
    why: 'P22: revision 3 carries another value than revision 2 had carried',
    base: 'amended',
    edit: (bundle) => {
      amendAgain(bundle, secondPlan(bundle));
      const carried = bundle.find(
        'slot.carried',
        ({ outcome }) => outcome.kind === 'settled' && outcome.value === 0,
      );
      (carried.outcome as { value: number }).value = 1;
    },
  },
  {
    name: 'amended-twice-as-of-the-first_fail',
    why: 'P22: revision 3 names the closing entry in the ledger of revision 1, not that of revision 2',
    base: 'amended',
    edit: (bundle) => {
      const old = bundle.entries
        .filter(({ type }) => type === 'slot.carried')
        .map(({ closed_by }) => closed_by);
      amendAgain(bundle, secondPlan(bundle));
      const carried = bundle.entries.filter(({ type }) => type === 'slot.carried');
      for (const [i, entry] of carried.entries()) entry.closed_by = old[i];
    },
  },
  {
    name: 'amended-twice-first-ledger-missing_fail',
    why: 'P22: the ledger of revision 1 is not in the bundle, from which that of revision 2 carries',
    base: 'amended',
    edit: (bundle) => {
      amendAgain(bundle, secondPlan(bundle));
      bundle.predecessors.delete('a'.repeat(32));
    },
  },
  {
    name: 'given-up-slots-planned-again_fail',
    why: 'P22: revision 2 gave up every second repetition, and revision 3 plans them again: a second draw',
    base: 'amended_narrower',
    edit: (bundle) => amendAgain(bundle, firstPlan(bundle)),
  },
  {
    name: 'never-run-slots-planned-again',
    why: 'P22: revision 2 left out a queue of which nothing had run, and revision 3 plans it again',
    base: 'amended',
    edit: (bundle) => amendAgain(bundle, firstPlan(bundle)),
  },
  {
    name: 'undetermined-runs-again-for-a-verdict',
    why: 'P22: the new plan asks for verdicts, so that an undetermined slot without one is executed again',
    base: 'amended_stricter',
  },
  {
    name: 'undetermined-carried-without-a-verdict_fail',
    why: 'P22: the same, but the undetermined slot is carried',
    base: 'amended_stricter',
    edit: (bundle) => {
      const [before] = bundle.predecessors.values();
      const left = before?.entries.find(
        ({ type, reason }) => type === 'slot.unresolved' && reason === 'undetermined',
      );
      const start = before?.entries.find(
        ({ type, slot }) => type === 'attempt.started' && slot === left?.slot,
      );
      bundle.insert(lastCarried(bundle) + 1, carriedFrom(before, start));
      carriesOf(bundle).again = 0;
    },
  },
  {
    name: 'undetermined-carried-with-its-verdict',
    why: 'P22: the adjudicator could not tell, so that the slot is carried as it is',
    base: 'amended_judged',
  },
  {
    name: 'undetermined-carried-verdict-removed_fail',
    why: 'P22: both plans ask for verdicts, and there is none: the slot is not closed, and keeps the plan from being amended',
    base: 'amended_judged',
    edit: (bundle) => {
      const [before] = bundle.predecessors.values();
      if (before === undefined) throw new Error('no predecessor');
      const verdict = before.entries.findIndex(({ by }) => by === 'adjudicator');
      const { slot } = before.entries[verdict] as Loose;
      before.entries.splice(verdict, 2);
      const closed = before.entries.findIndex(
        (entry) => entry.type === 'slot.unresolved' && entry.slot === slot,
      );
      bundle.find('slot.carried', (entry) => entry.slot === slot).closed_by = closed;
      quote(bundle, before);
    },
  },
];

type Value = Record<string, unknown>;

interface Revisions {
  amendment: string | null;
  demoted: string[];
  revisions: { reason: string; exposure: { unblinded: boolean }; changes: Changes }[];
  carried: { attempts: number };
}

interface Changes {
  dropped: unknown[];
  slots: { before: number };
  analysis: { changed: string[] };
  protocol: string[];
}

function reported(
  base: 'amended_reported' | 'amended_post_hoc',
  name: string,
  why: string,
  edit?: (report: Revisions) => void,
): Case {
  if (edit === undefined) return { name, why, base };
  return { name, why, base, edit: (bundle) => editReport(bundle, edit as (report: never) => void) };
}

function carriesOf(bundle: LooseBundle): Record<string, unknown> {
  return bundle.find('ledger.opened').carries as Record<string, unknown>;
}

export function lastCarried(bundle: LooseBundle): number {
  return bundle.entries.findLastIndex(({ type }) => type === 'slot.carried');
}

/** How a slot would be carried that the old ledger closed. */
function carriedFrom(before: LoosePart | undefined, start: Loose | undefined): Loose {
  const entries = before?.entries ?? [];
  const closed_by = entries.findLastIndex(
    ({ type, slot }) => slot === start?.slot && (type === 'slot.settled' || type === 'slot.unresolved'),
  );
  const closing = entries[closed_by];
  if (start === undefined || closing === undefined) throw new Error('nothing was closed');
  const attempts = entries.filter(
    ({ type, slot }) => type === 'attempt.started' && slot === start.slot,
  ).length;
  const outcome =
    closing.type === 'slot.settled'
      ? { kind: 'settled', value: closing.value, basis: closing.basis }
      : { kind: 'unresolved', reason: closing.reason };
  return { type: 'slot.carried', slot: start.slot, key: start.key, closed_by, attempts, outcome };
}

/** Lets the ledger quote the state of the one that it carries from. */
export function quote(bundle: LooseBundle, before: LoosePart): void {
  chainAnew(before.entries);
  const range = new CompactRange();
  for (const entry of before.entries) range.append(leafHash(Buffer.from(canonicalText(entry))));
  Object.assign(carriesOf(bundle), { size: range.size, root: range.root().toString('hex') });
}

function manifestOf(bundle: LooseBundle, revision: number): Value {
  const found = [...bundle.files].find(([path]) => path.startsWith(`manifests/small.r${revision}.`));
  return JSON.parse(found?.[1].toString('utf8') ?? 'null') as Value;
}

/** The protocol and plan of revision 2, as those of a revision 3 with another breaker. */
function secondPlan(bundle: LooseBundle): Pick<Value, 'protocol' | 'plan'> {
  const { protocol, plan } = manifestOf(bundle, 2) as { protocol: Value; plan: unknown };
  const attempts = { ...(protocol.attempts as Value), breaker: 20 };
  return { protocol: { ...protocol, revision: 3, attempts }, plan };
}

/** Those of revision 1, with all queues. */
function firstPlan(bundle: LooseBundle): Pick<Value, 'protocol' | 'plan'> {
  const { protocol, plan } = manifestOf(bundle, 1) as { protocol: Value; plan: unknown };
  return { protocol: { ...protocol, revision: 3 }, plan };
}

/** Supersedes revision 2 by a revision 3 and opens its ledger with what is carried; what was known of outcomes is the same. */
function amendAgain(bundle: LooseBundle, planned: Pick<Value, 'protocol' | 'plan'>): void {
  const before = bundle.manifest;
  const reason = 'more time';
  const second = manifestOf(bundle, 2);
  const third = {
    ...second,
    ...planned,
    revision: 3,
    sequence: 3,
    previous: before,
    supersedes: before,
    reason,
  };
  const bytes = canonicalBytes(third);
  const digest = bundle.replaceManifest('small.r3.000000000000.json', third);
  const { ledger: id, ...opened } = copyOf(bundle.find('ledger.opened'));
  const old: LoosePart = { ...bundle.ledger, objects: new Map(bundle.ledger.objects) };
  const time = old.entries.at(-1)?.time;
  old.entries.push({ type: 'amended', successor: digest, revision: 3, reason, time });
  const carried = old.entries.flatMap((entry, closed_by) =>
    entry.type === 'slot.carried' ? [{ ...copyOf(entry), closed_by, time }] : [],
  );
  bundle.predecessors.set(String(id), old);
  bundle.manifest = digest;
  const carries = { manifest: before, ledger: id, size: 1, root: '', again: 0, dropped: 0 };
  const names = { manifest: digest, manifest_object: digest, plan: planned.plan };
  bundle.ledger.objects = new Map(old.objects).set(hexOf(digest), bytes);
  bundle.ledger.entries = [
    { ...opened, ...names, type: 'ledger.opened', ledger: 'c'.repeat(32), carries, time },
    ...carried,
  ];
  quote(bundle, old);
}
