import { canonicalText } from '../../../../src/core/canonical-json.js';
import { type Digest, digestOf, hexOf } from '../../../../src/core/digest.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { type Case, copyOf } from '../case.js';
import { lastCarried, quote } from './carried.js';

/** P22: plans that supersede others, and slots that are carried over. */
export const AMENDMENTS: readonly Case[] = [
  sound(
    'amended',
    'P22: a narrower claim before unblinding; six closed slots are carried, none run again',
    () => undefined,
  ),
  sound(
    'carried-value-raised_fail',
    'P22: a carried slot has another value than the ledger that it comes from',
    (bundle) => {
      const carried = bundle.find(
        'slot.carried',
        ({ outcome }) => outcome.kind === 'settled' && outcome.value === 0,
      );
      (carried.outcome as { value: number }).value = 1;
    },
  ),
  sound('carried-unresolved-as-settled_fail', 'P22: unresolved there, settled here', (bundle) => {
    const settled = bundle.find('slot.carried', ({ outcome }) => outcome.kind === 'settled');
    const unresolved = bundle.find('slot.carried', ({ outcome }) => outcome.kind === 'unresolved');
    const { value, basis } = settled.outcome as { value: number; basis: object };
    unresolved.outcome = { kind: 'settled', value, basis: { ...basis } };
  }),
  sound(
    'carried-slot-left-out_fail',
    'P22: a closed slot is not carried, and so could be drawn again',
    (bundle) => {
      const carried = bundle.find('slot.carried');
      bundle.remove((entry) => entry === carried);
    },
  ),
  sound('carried-twice_fail', 'P22: one slot is carried twice', (bundle) => {
    bundle.insert(3, copyOf(bundle.find('slot.carried')));
  }),
  sound('carried-with-fewer-attempts_fail', 'P22: attempts of a carried slot are forgotten', (bundle) => {
    bundle.find('slot.carried', ({ attempts }) => attempts === 2).attempts = 1;
  }),
  sound('carried-from-another-entry_fail', 'P22: the settlement stands at another position', (bundle) => {
    const carried = bundle.find('slot.carried');
    carried.closed_by = Number(carried.closed_by) - 1;
  }),
  sound(
    'carried-from-another-state_fail',
    'P22: the root of the ledger that is carried is another',
    (bundle) => {
      (bundle.find('ledger.opened').carries as { root: string }).root = '7'.repeat(64);
    },
  ),
  sound('carried-without-a-predecessor_fail', 'P22: the opening carries nothing', (bundle) => {
    bundle.find('ledger.opened').carries = null;
    bundle.predecessors.clear();
  }),
  sound('predecessor-missing_fail', 'P22: the ledger that is carried is not in the bundle', (bundle) => {
    bundle.predecessors.clear();
  }),
  sound(
    'predecessor-rewritten_fail',
    'P22: a failure in the old ledger was made a success after it was carried',
    (bundle) => {
      const [before] = bundle.predecessors.values();
      const settled = before?.entries.find(({ type, value }) => type === 'slot.settled' && value === 0);
      if (settled !== undefined) settled.value = 1;
    },
  ),
  sound(
    'predecessor-not-sealed_fail',
    'P22: the old ledger does not say that its plan was amended',
    (bundle) => {
      const [before] = bundle.predecessors.values();
      if (before !== undefined) before.entries = before.entries.filter(({ type }) => type !== 'amended');
    },
  ),
  sound('predecessor-went-on_fail', 'P22: the old plan was run on after it was amended', (bundle) => {
    const [before] = bundle.predecessors.values();
    const start = before?.entries.find(({ type }) => type === 'attempt.started');
    const last = before?.entries.at(-1);
    if (start !== undefined) before?.entries.push({ ...start, time: last?.time });
  }),
  sound(
    'deviation-noted-again',
    'B9: a deviation of the old ledger is noted again in the new one',
    (bundle) => {
      bundle.insert(lastCarried(bundle) + 1, noteBefore(bundle));
    },
  ),
  sound(
    'deviation-washed-out_fail',
    'B9: a deviation of the old ledger is in no report of the new plan',
    (bundle) => {
      noteBefore(bundle);
    },
  ),
  sound('superseded-manifest-missing_fail', 'P22: the old revision stays', (bundle) => {
    for (const path of bundle.files.keys())
      if (path.startsWith('manifests/small.r1.')) bundle.files.delete(path);
  }),
  sound(
    'exposure-understated_fail',
    'P22: less was known than the old ledger shows, says the manifest',
    (bundle) => {
      const [path = '', bytes = Buffer.of()] =
        [...bundle.files].find(([name]) => name.startsWith('manifests/small.r2.')) ?? [];
      const manifest = JSON.parse(bytes.toString('utf8')) as {
        exposure: { settled: number; slots_run: number };
      };
      Object.assign(manifest.exposure, { settled: 0, slots_run: 0 });
      const before = bundle.manifest;
      const digest = bundle.replaceManifest(path.slice('manifests/'.length), manifest);
      rename(bundle, before as Digest, digest, manifest);
    },
  ),
];

function sound(name: string, why: string, edit: (bundle: LooseBundle) => void): Case {
  return { name, why, base: 'amended', edit };
}

/** Notes a deviation about a carried slot in the old ledger, before its seal. @returns the note as the new one has it */
function noteBefore(bundle: LooseBundle): Loose {
  const [before] = bundle.predecessors.values();
  const { slot } = bundle.find('slot.carried');
  const sealed = before?.entries.findIndex(({ type }) => type === 'amended') ?? -1;
  if (before === undefined || sealed === -1) throw new Error('no sealed ledger');
  const note: Loose = {
    type: 'deviation.noted',
    text: 'the loop stop was switched off for this slot',
    selector: { slot: [String(slot)] },
    slots: { count: 1, digest: digestOf(Buffer.from(`${String(slot)}\n`)) },
  };
  before.entries.splice(sealed, 0, { ...note, time: before.entries[sealed]?.time });
  quote(bundle, before);
  return note;
}

/** Lets everything name the edited manifest. */
function rename(bundle: LooseBundle, before: Digest, digest: Digest, manifest: unknown): void {
  const bytes = Buffer.from(canonicalText(manifest));
  bundle.ledger.objects.delete(hexOf(before));
  bundle.ledger.objects.set(hexOf(digestOf(bytes)), bytes);
  bundle.manifest = digest;
  const renamed = (entries: readonly Loose[]): Loose[] =>
    entries.map((entry) => JSON.parse(canonicalText(entry).replaceAll(before, digest)) as Loose);
  bundle.ledger.entries = renamed(bundle.entries);
  for (const part of bundle.predecessors.values()) part.entries = renamed(part.entries);
}
