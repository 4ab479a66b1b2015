import type { LooseBundle } from '../../loose-bundle.js';
import { type Case, dropReports, resultOf, slotAt, stageOf } from '../case.js';

/** Candidates whose command was cut, and rooms that were damaged. The protocol: see `cut` in bases.ts. */
export const CUT: readonly Case[] = [
  on('command-cut-candidate', 'what a killed command left is no candidate, and is kept', (bundle) => {
    leave(bundle, 0, 'generate');
  }),
  on(
    'command-cut-candidate-that-counts_fail',
    'P14: no rule calls an exit status infrastructure',
    (bundle) => {
      leave(bundle, 6, 'generate');
    },
  ),
  on(
    'command-cut-candidate-of-the-model_fail',
    'P14: there is a candidate, or a rule that it is none',
    (bundle) => {
      leave(bundle, 5, 'generate');
    },
  ),
  on('command-cut-candidate-of-the-grader_fail', 'a grader makes no candidate', (bundle) => {
    leave(bundle, 3, 'grade');
  }),
  on('command-cut-candidate-that-was-graded_fail', 'a candidate is complete or it is not', (bundle) => {
    leave(bundle, 1, 'generate');
  }),
  on('command-room-damaged', 'a command that destroyed its own folders', (bundle) => {
    damage(bundle, 6);
  }),
  on(
    'command-room-damaged-and-replaced_fail',
    'P13: what a command destroyed is not tried again',
    (bundle) => {
      damage(bundle, 0);
    },
  ),
];

function on(name: string, why: string, edit: (bundle: LooseBundle) => void): Case {
  return {
    name,
    why,
    base: 'cut',
    edit: (bundle) => {
      edit(bundle);
      dropReports(bundle);
    },
  };
}

function leave(bundle: LooseBundle, n: number, stage: string): void {
  const entry = stageOf(bundle, slotAt(bundle, n), stage);
  entry.objects = {
    ...(entry.objects as object),
    unfinished_candidate: bundle.keep(Buffer.from('half an ans')),
  };
}

function damage(bundle: LooseBundle, n: number): void {
  const { signals } = resultOf(stageOf(bundle, slotAt(bundle, n), 'generate')) as { signals: object };
  Object.assign(signals, {
    phase: 'collect',
    cause: 'room_damaged',
    signal: null,
    text: 'the output folder is gone',
  });
}
