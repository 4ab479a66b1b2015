import { attemptId } from '../../../../src/attempts/slot-state.js';
import type { LooseBundle } from '../../loose-bundle.js';
import { at, type Case, copyOf, dropReports, entryOf, resultOf, slotAt, stageOf } from '../case.js';

/** Laws 5 and 7, P11 to P15: retries, attributions, adjudication. Slots 2 to 5 failed: replaced, at the limit, undetermined, the model's own fault. */
export const ATTRIBUTION: readonly Case[] = [
  {
    name: 'name-alone-leaves-it-undetermined',
    why: 'law 7: a rule that rests on the name of an exception hints, and leaves the failure undetermined',
    base: 'named',
  },
  {
    name: 'name-alone-attributes_fail',
    why: 'law 7: an exception name attributed a failure by itself',
    base: 'named',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 4), 'attribution.recorded').attribution = 'infrastructure';
    },
  },
  {
    name: 'undetermined-called-infrastructure_fail',
    why: 'P14: no rule says so',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 4), 'attribution.recorded').attribution = 'infrastructure';
    },
  },
  {
    name: 'rule-of-another-failure_fail',
    why: 'P14: the named rule does not match the signals',
    edit: (bundle) => {
      Object.assign(entryOf(bundle, slotAt(bundle, 4), 'attribution.recorded'), {
        rule: 'lost',
        attribution: 'infrastructure',
      });
    },
  },
  {
    name: 'model-failure-called-infrastructure_fail',
    why: 'P14: the first rule that matches says model',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 5), 'attribution.recorded').attribution = 'infrastructure';
    },
  },
  {
    name: 'signals-against-the-answer_fail',
    why: 'the signals say that the connection was lost; the kept answer says something else',
    edit: (bundle) => {
      const failed = resultOf(stageOf(bundle, slotAt(bundle, 4), 'generate')) as {
        signals: Record<string, unknown>;
      };
      failed.signals.cause = 'body_malformed';
    },
  },
  {
    name: 'attribution-missing_fail',
    why: 'P14: a failed attempt ends without its attribution',
    edit: (bundle) => {
      const attribution = entryOf(bundle, slotAt(bundle, 5), 'attribution.recorded');
      bundle.remove((entry) => entry === attribution);
    },
  },
  {
    name: 'attributed-twice_fail',
    why: 'P14: a rule decides once',
    edit: (bundle) => {
      const attribution = entryOf(bundle, slotAt(bundle, 5), 'attribution.recorded');
      bundle.insert(at(bundle, attribution) + 1, copyOf(attribution));
    },
  },
  {
    name: 'rule-that-comes-late_fail',
    why: 'only an adjudicator can be late',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 5), 'attribution.recorded').late = true;
    },
  },
  {
    name: 'replaced-without-a-cause_fail',
    why: 'P13: an undetermined failure is not replaced',
    edit: (bundle) => {
      const slot = slotAt(bundle, 4);
      const unresolved = entryOf(bundle, slot, 'slot.unresolved');
      const start = entryOf(bundle, slot, 'attempt.started');
      const again = { ...copyOf(start), ...replacement(slot, 2), time: unresolved.time };
      bundle.entries[at(bundle, unresolved)] = again;
    },
  },
  {
    name: 'replaced-twice_fail',
    why: 'P13: at most one replacement',
    edit: (bundle) => {
      const slot = slotAt(bundle, 3);
      const unresolved = entryOf(bundle, slot, 'slot.unresolved');
      const start = entryOf(bundle, slot, 'attempt.started');
      bundle.entries[at(bundle, unresolved)] = {
        ...copyOf(start),
        ...replacement(slot, 3),
        time: unresolved.time,
      };
    },
  },
  {
    name: 'replaced-with-another-seed_fail',
    why: 'P13: a replacement has the sampling seed of the attempt that it replaces',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 2), 'attempt.started', 1).sampling_seed = 9;
    },
  },
  {
    name: 'replacement-not-linked_fail',
    why: 'P13: a replacement names what it replaces',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 2), 'attempt.started', 1).of = null;
    },
  },
  {
    name: 'replacement-called-first_fail',
    why: 'P13: a second first attempt',
    edit: (bundle) => {
      Object.assign(entryOf(bundle, slotAt(bundle, 2), 'attempt.started', 1), { kind: 'first', of: null });
    },
  },
  {
    name: 'replacement-called-regrade_fail',
    why: 'P12: a regrade needs a candidate',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 2), 'attempt.started', 1).kind = 'regrade';
    },
  },
  {
    name: 'replacement-left-out_fail',
    why: 'P13: an infrastructure failure is given up although its one replacement is due',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 3);
      const second = entryOf(bundle, slot, 'attempt.started', 1).attempt;
      bundle.remove((entry) => entry.attempt === second);
    },
  },
  {
    name: 'unresolved-counted-as-wrong_fail',
    why: 'law 5: what nobody can attribute is not 0',
    edit: (bundle) => {
      const slot = slotAt(bundle, 4);
      const unresolved = entryOf(bundle, slot, 'slot.unresolved');
      bundle.entries[at(bundle, unresolved)] = {
        type: 'slot.settled',
        slot,
        value: 0,
        basis: { kind: 'model_failure', attempt: attemptId(slot, 1) },
        time: unresolved.time,
      };
    },
  },
  {
    name: 'unresolved-for-another-reason_fail',
    why: 'the reason is the one that the state gives',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 4), 'slot.unresolved').reason = 'limit_reached';
    },
  },
  {
    name: 'model-failure-left-unresolved_fail',
    why: 'P15: a model failure with nothing to grade counts 0, not as a bound',
    edit: (bundle) => {
      const slot = slotAt(bundle, 5);
      const settled = entryOf(bundle, slot, 'slot.settled');
      bundle.entries[at(bundle, settled)] = {
        type: 'slot.unresolved',
        slot,
        reason: 'undetermined',
        time: settled.time,
      };
    },
  },
  {
    name: 'recovered-from-a-living-process_fail',
    why: 'DESIGN §9: the evidence names the process of another session',
    edit: (bundle) => {
      const recovered = bundle.find('attempt.recovered');
      Object.assign(recovered.evidence as object, { pid: 999 });
    },
  },
  {
    name: 'recovered-for-no-reason_fail',
    why: 'DESIGN §9: the boot did not change between the two sessions',
    edit: (bundle) => {
      const [, second] = bundle.entries.filter(({ type }) => type === 'gate.passed');
      (second?.process as Record<string, unknown>).boot_id = 'boot-1';
    },
  },
  {
    name: 'recovered-with-nothing-found_fail',
    why: 'law 3: a complete candidate was on disk, and the recovery says that nothing was',
    edit: (bundle) => {
      const recovered = bundle.find('attempt.recovered', ({ found }) => found === 'candidate');
      recovered.found = 'nothing';
    },
  },
  {
    name: 'recovered-while-nothing-runs_fail',
    why: 'only an attempt under way can be recovered',
    edit: (bundle) => {
      const recovered = bundle.find('attempt.recovered');
      const slot = slotAt(bundle, 0);
      bundle.insert(at(bundle, recovered), { ...copyOf(recovered), slot, attempt: attemptId(slot, 1) });
    },
  },
  verdict('verdict-in-time', 'P14: a verdict before unblinding settles an undetermined slot', {}, true),
  verdict('verdict-without-a-reason_fail', 'P14: an adjudicator gives a reason', { reason: null }, true),
  verdict('verdict-called-late_fail', 'P14: late means recorded after unblinding', { late: true }, true),
  {
    name: 'verdict-on-a-settled-slot_fail',
    why: 'law 3: what a report settled, no verdict opens',
    edit: (bundle) => {
      const slot = slotAt(bundle, 1);
      const settled = entryOf(bundle, slot, 'slot.settled');
      bundle.insert(at(bundle, settled) + 1, verdictOn(slot, 1));
    },
  },
  {
    name: 'verdict-after-unblinding',
    why: 'P14: recorded, marked late, and without effect',
    edit: (bundle) => {
      dropReports(bundle);
      bundle.insert(bundle.entries.length, { ...verdictOn(slotAt(bundle, 4), 1), late: true });
    },
  },
  {
    name: 'verdict-after-unblinding-not-marked_fail',
    why: 'P14: a revision after unblinding is marked late',
    edit: (bundle) => {
      dropReports(bundle);
      bundle.insert(bundle.entries.length, verdictOn(slotAt(bundle, 4), 1));
    },
  },
  {
    name: 'verdict-after-unblinding-settles_fail',
    why: 'P14: a revision after unblinding changes nothing, and this one settles the slot',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 4);
      bundle.insert(
        bundle.entries.length,
        { ...verdictOn(slot, 1), late: true },
        {
          type: 'slot.settled',
          slot,
          value: 0,
          basis: { kind: 'model_failure', attempt: attemptId(slot, 1) },
        },
      );
    },
  },
  {
    name: 'unblinded-without-verdicts_fail',
    why: 'the protocol wants a verdict on every undetermined slot before outcomes are shown',
    base: 'judged',
    edit: (bundle) => {
      dropReports(bundle);
      bundle.insert(bundle.entries.length, {
        type: 'unblinded',
        partial: false,
        planned: 11,
        settled: 9,
        unresolved: 2,
        pending: 0,
      });
    },
  },
  {
    name: 'unblinded-with-verdicts',
    why: 'the same with its verdict: cannot tell, so it stays unresolved',
    base: 'judged',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 4);
      bundle.insert(
        bundle.entries.length,
        { ...verdictOn(slot, 1), attribution: 'undetermined' },
        { type: 'slot.unresolved', slot, reason: 'undetermined' },
        { type: 'unblinded', partial: false, planned: 11, settled: 9, unresolved: 2, pending: 0 },
      );
    },
  },
];

function replacement(slot: string, k: number) {
  return { attempt: attemptId(slot, k), kind: 'replacement', of: attemptId(slot, k - 1) };
}

function verdictOn(slot: string, k: number) {
  return {
    type: 'attribution.recorded',
    attempt: attemptId(slot, k),
    slot,
    attribution: 'model',
    by: 'adjudicator',
    rule: null,
    late: false,
    reason: 'the answer was cut by its own length',
  };
}

/** A verdict on the undetermined slot before unblinding, and the settlement that follows from it. */
function verdict(name: string, why: string, change: object, settles: boolean): Case {
  return {
    name,
    why,
    edit: (bundle: LooseBundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 4);
      const unblinded = bundle.find('unblinded');
      const basis = { kind: 'model_failure', attempt: attemptId(slot, 1) };
      bundle.insert(
        at(bundle, unblinded),
        { ...verdictOn(slot, 1), ...change },
        { type: 'slot.settled', slot, value: 0, basis },
      );
      if (settles)
        Object.assign(unblinded, {
          settled: Number(unblinded.settled) + 1,
          unresolved: Number(unblinded.unresolved) - 1,
        });
    },
  };
}
