import type { LooseBundle } from '../../loose-bundle.js';
import { at, type Case, dropReports, entryOf, resultOf, slotAt, stageOf } from '../case.js';

/** Law 2, P17, P18: intent before act, and the act is the planned one. */
export const INTENT: readonly Case[] = [
  {
    name: 'answer-before-the-start_fail',
    why: 'law 2: the answer was recorded before the attempt was',
    edit: (bundle) => {
      const slot = slotAt(bundle, 0);
      const start = entryOf(bundle, slot, 'attempt.started');
      const answer = stageOf(bundle, slot, 'generate');
      const i = at(bundle, start);
      bundle.entries[i] = { ...answer, time: start.time };
      bundle.entries[at(bundle, answer)] = { ...start, time: answer.time };
    },
  },
  {
    name: 'start-removed_fail',
    why: 'law 2: an attempt without its start',
    edit: (bundle) => {
      const start = entryOf(bundle, slotAt(bundle, 0), 'attempt.started');
      bundle.remove((entry) => entry === start);
    },
  },
  {
    name: 'slot-outside-the-plan_fail',
    why: 'law 1: a task that the queue does not have',
    edit: (bundle) => {
      (entryOf(bundle, slotAt(bundle, 0), 'attempt.started').key as Key).task = 'sum-9';
    },
  },
  {
    name: 'slot-id-of-another_fail',
    why: 'the slot id is not that of the key',
    edit: (bundle) => {
      (entryOf(bundle, slotAt(bundle, 0), 'attempt.started').key as Key).rep = 1;
    },
  },
  {
    name: 'attempt-id-chosen_fail',
    why: 'attempt ids follow from slot and number; this one was made up',
    edit: (bundle) => {
      const slot = slotAt(bundle, 0);
      for (const entry of bundle.of(slot)) {
        if ('attempt' in entry) entry.attempt = 'f'.repeat(32);
        if (entry.type === 'slot.settled') (entry.basis as { attempt: string }).attempt = 'f'.repeat(32);
      }
    },
  },
  {
    name: 'sampling-seed-picked_fail',
    why: 'P18: another sampling seed than the plan fixes, in entry and request',
    edit: (bundle) => {
      const start = entryOf(bundle, slotAt(bundle, 0), 'attempt.started');
      start.sampling_seed = 4;
      editRequest(bundle, 0, (request) => {
        request.seed = 4;
      });
    },
  },
  {
    name: 'request-with-another-seed_fail',
    why: 'P18: the request does not send the seed that the entry says',
    edit: (bundle) =>
      editRequest(bundle, 0, (request) => {
        request.seed = 4;
      }),
  },
  {
    name: 'request-with-another-temperature_fail',
    why: 'P17: another temperature than declared',
    edit: (bundle) =>
      editRequest(bundle, 0, (request) => {
        request.temperature = 0.7;
      }),
  },
  {
    name: 'request-with-a-hint_fail',
    why: 'P17: the prompt is not the one that the template and the task make',
    edit: (bundle) =>
      editRequest(bundle, 0, (request) => {
        const messages = request.messages as { content: string }[];
        const last = messages.at(-1);
        if (last !== undefined) last.content += ' (it is 12)';
      }),
  },
  {
    name: 'request-with-many-answers_fail',
    why: 'P17: n is 1; more answers are more draws',
    edit: (bundle) =>
      editRequest(bundle, 0, (request) => {
        request.n = 4;
      }),
  },
  {
    name: 'request-missing_fail',
    why: 'P17: an attempt that generates names no request',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 0), 'attempt.started').request = null;
    },
  },
  {
    name: 'stage-after-the-session_fail',
    why: 'a stage ends after its session did',
    edit: (bundle) => {
      const slot = slotAt(bundle, 0);
      const end = bundle.find('run.paused');
      const start = entryOf(bundle, slot, 'attempt.started');
      bundle.entries.splice(at(bundle, end), 1);
      bundle.entries.splice(at(bundle, start) + 1, 0, { ...end, session: start.session, time: start.time });
    },
  },
  {
    name: 'started-after-the-end_fail',
    why: 'law 1: an attempt of a session that has ended',
    base: 'partial',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 5);
      const life = bundle.of(slot);
      const end = bundle.find('run.paused');
      bundle.remove((entry) => life.includes(entry) || entry.type === 'unblinded');
      const { time } = end;
      bundle.insert(at(bundle, end) + 1, ...life.map((entry) => ({ ...entry, time })));
    },
  },
  {
    name: 'started-after-the-end-of-all_fail',
    why: 'P22: nothing is started after a complete unblinding',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 0);
      const life = bundle.of(slot);
      const unblinded = bundle.find('unblinded');
      const end = bundle.find('run.paused');
      bundle.remove((entry) => life.includes(entry) || entry === end);
      const { time } = unblinded;
      bundle.insert(at(bundle, unblinded) + 1, ...[...life, end].map((entry) => ({ ...entry, time })));
    },
  },
  {
    name: 'candidate-named-at-the-start_fail',
    why: 'only a regrade begins with a candidate',
    edit: (bundle) => {
      const slot = slotAt(bundle, 0);
      const { candidate } = resultOf(stageOf(bundle, slot, 'generate'));
      entryOf(bundle, slot, 'attempt.started').candidate = candidate;
    },
  },
];

type Key = Record<string, unknown>;

function editRequest(bundle: LooseBundle, n: number, edit: (request: Record<string, unknown>) => void): void {
  const start = entryOf(bundle, slotAt(bundle, n), 'attempt.started');
  const request = JSON.parse(bundle.object(start.request).toString('utf8')) as Record<string, unknown>;
  edit(request);
  start.request = bundle.keep(JSON.stringify(request));
}
