import { canonicalText } from '../../../../src/core/canonical-json.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { at, type Case, dropReports, editReport } from '../case.js';

type Base = 'served' | 'external';

/** P10: what services say of themselves, how they answer the canary, and whose word their weights rest on. */
export const SERVICES: readonly Case[] = [
  on(
    'services',
    'served',
    'services that described themselves and answered a canary; one changed, which is said',
    () => undefined,
  ),
  on('service-canary-says-same_fail', 'served', 'a canary that differs is called the same', (bundle) => {
    last(bundle, 'canary.recorded').verdict = 'same';
  }),
  on(
    'service-canary-difference-made-smaller_fail',
    'served',
    'a smaller difference than the answers have',
    (bundle) => {
      last(bundle, 'canary.recorded').largest_logprob_difference = 0.25;
    },
  ),
  on(
    'service-canary-reference-forged_fail',
    'served',
    'the reference was exchanged for answers that agree with the last ones',
    (bundle) => {
      const forged = last(bundle, 'canary.recorded');
      const reference = bundle.find('canary.recorded', ({ model }) => model === 'base');
      reference.answers = forged.answers;
      forged.verdict = 'same';
      forged.largest_logprob_difference = 0;
    },
  ),
  on(
    'service-canary-held-against-another_fail',
    'served',
    'a canary held against a later one than the reference',
    (bundle) => {
      const [, second] = bundle.entries.filter(
        ({ type, model }) => type === 'canary.recorded' && model === 'base',
      );
      last(bundle, 'canary.recorded').compared_with = at(bundle, second as Loose);
    },
  ),
  on(
    'service-canary-second-reference_fail',
    'served',
    'a second canary that is called a reference',
    (bundle) => {
      const entry = last(bundle, 'canary.recorded');
      entry.verdict = 'reference';
      entry.compared_with = null;
      entry.largest_logprob_difference = null;
    },
  ),
  on(
    'service-canary-of-other-prompts_fail',
    'served',
    'the kept requests are not those of the plan',
    (bundle) => {
      answersOf(bundle, last(bundle, 'canary.recorded'), (answers) => {
        const request = answers[0]?.request as Record<string, unknown>;
        request.messages = [{ role: 'user', content: '1+2=' }];
      });
    },
  ),
  on(
    'service-canary-reading-forged_fail',
    'served',
    'the log-probabilities beside an answer are not those in it',
    (bundle) => {
      answersOf(bundle, last(bundle, 'canary.recorded'), (answers) => {
        if (answers[0] !== undefined) answers[0].logprobs = [-0.25, -1.5];
      });
    },
  ),
  on('service-canary-of-fewer-prompts_fail', 'served', 'one prompt of the canary was left out', (bundle) => {
    answersOf(bundle, last(bundle, 'canary.recorded'), (answers) => answers.pop());
  }),
  on(
    'service-canary-missing-at-the-end_fail',
    'served',
    'a service that was done without a canary at its end',
    (bundle) => {
      const entry = last(bundle, 'canary.recorded');
      bundle.remove((each) => each === entry);
    },
  ),
  on(
    'service-canary-missing-at-the-start_fail',
    'served',
    'attempts under a service that had answered no canary',
    (bundle) => {
      const { session } = last(bundle, 'canary.recorded');
      bundle.remove(({ type, session: own }) => type === 'canary.recorded' && own !== session);
    },
  ),
  on(
    'service-attempt-after-another-canary_fail',
    'served',
    'attempts although the service answered otherwise',
    (bundle) => {
      const entry = bundle.find(
        'canary.recorded',
        ({ at: when, verdict }) => when === 'start' && verdict === 'same',
      );
      entry.verdict = 'differs';
    },
  ),
  on(
    'service-change-not-listed_fail',
    'served',
    'a description that changed, said to be the same',
    (bundle) => {
      const entry = bundle.find('service.described', ({ total }) => total > 0);
      entry.changed = [];
      entry.total = 0;
    },
  ),
  on('service-change-invented_fail', 'served', 'a change of the description that is not there', (bundle) => {
    const entry = bundle.find('service.described', ({ total }) => total === 0);
    entry.changed = ['/~1version/version'];
    entry.total = 1;
  }),
  on(
    'service-described-by-another-start_fail',
    'served',
    'an end held against another start than its own',
    (bundle) => {
      const entry = bundle.find('service.described', ({ at: when }) => when === 'end');
      entry.compared_with = at(
        bundle,
        bundle.find('service.started', ({ model }) => model === entry.model),
      );
    },
  ),
  on(
    'service-described-before-its-start_fail',
    'served',
    'a description of a service that was not up',
    (bundle) => {
      const entry = bundle.find('service.described', ({ at: when }) => when === 'end');
      bundle.remove((each) => each === entry);
      bundle.insert(at(bundle, bundle.find('gate.passed')) + 1, entry);
    },
  ),
  saying(
    'report-hides-a-changed-service_fail',
    'served',
    'a report that does not say that a service changed',
    /described themselves/,
  ),
  saying(
    'report-hides-a-canary_fail',
    'served',
    'a report that does not say that a canary differs',
    /answered the canary/,
  ),
  on(
    'service-external',
    'external',
    'services that the gate did not start, accepted by the plan',
    () => undefined,
  ),
  on(
    'service-external-at-another-address_fail',
    'external',
    'a service at another address than the plan names',
    (bundle) => {
      bundle.find('service.attached').origin = 'http://10.0.0.2:8000';
    },
  ),
  on(
    'service-external-as-if-started_fail',
    'external',
    'an external service recorded as one of the gate',
    (bundle) => {
      const entry = bundle.find('service.attached');
      const { origin: _, accepted: __, ...rest } = entry;
      bundle.entries[at(bundle, entry)] = { ...rest, type: 'service.started', pid: 7, port: 9000, start: 0 };
    },
  ),
  on(
    'service-external-not-accepted_fail',
    'served',
    'an external service under a plan that accepts none',
    (bundle) => {
      const entry = bundle.find('service.started');
      const { pid: _, port: __, start: ___, ...rest } = entry;
      const accepted = "the identity of the weights rests on the operator's word";
      bundle.entries[at(bundle, entry)] = {
        ...rest,
        type: 'service.attached',
        origin: 'http://10.0.0.1:8000',
        accepted,
      };
    },
  ),
  saying(
    'report-hides-the-operators-word_fail',
    'external',
    'a report that does not say whose word the weights rest on',
    /operator's word/,
  ),
];

function on(name: string, base: Base, why: string, edit: (bundle: LooseBundle) => void): Case {
  return {
    name,
    why: `P10: ${why}`,
    base,
    edit: (bundle) => {
      if (name.endsWith('_fail')) dropReports(bundle);
      edit(bundle);
    },
  };
}

/** A report without the caveats that match. */
function saying(name: string, base: Base, why: string, hidden: RegExp): Case {
  return {
    name,
    why: `P10: ${why}`,
    base,
    edit: (bundle) =>
      editReport(bundle, (report: { caveats: string[] }) => {
        report.caveats = report.caveats.filter((line) => !hidden.test(line));
      }),
  };
}

function last(bundle: LooseBundle, type: string): Loose {
  const found = bundle.entries.filter((entry) => entry.type === type).at(-1);
  if (found === undefined) throw new Error(`no ${type}`);
  return found;
}

/** Puts edited answers in place of those of a canary. */
function answersOf(
  bundle: LooseBundle,
  entry: Loose,
  edit: (answers: Record<string, unknown>[]) => void,
): void {
  const object = JSON.parse(bundle.object(entry.answers).toString('utf8')) as {
    answers: Record<string, unknown>[];
  };
  edit(object.answers);
  entry.answers = bundle.keep(canonicalText(object));
}
