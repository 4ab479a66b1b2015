import { type Block, heading, paragraph, table } from './document.js';
import type { OutputKey, RegradingReport, Report } from './value.js';
import { plural } from './words.js';

/** How many outputs a report prints; `report.json` lists all of them. */
const MAX_LISTED = 100;

/** Outputs that were graded again with a corrected grader (B6): every change, and everything too truncated. */
export function regradingBlocks({ regradings = [] }: Report): readonly Block[] {
  if (regradings.length === 0) return [];
  return [heading(2, 'Outputs graded again (exploratory)'), ...regradings.flatMap(blocksOf)];
}

function blocksOf(one: RegradingReport): readonly Block[] {
  const {
    entry,
    time,
    reason,
    grader,
    conditions,
    outputs,
    closed,
    after_unblinding: late,
    resumed = 0,
  } = one;
  const again = resumed === 0 ? '' : ` It was left and taken up again ${plural(resumed, 'time')}.`;
  const about = paragraph(
    `Entry ${entry}, ${time}, ${late ? 'after' : 'before'} outcomes were open: ${outputs === null ? 'outputs' : plural(outputs, 'output')} of ` +
      `${conditions.join(', ')} under the grader ${grader}: ${reason}${closed ? '' : ' (not finished)'}. No slot, score or decision of the plan rests on it.${again}`,
  );
  const { failed = [] } = one;
  if (one.changed === null || one.truncated === null || failed === null)
    return [about, paragraph('What it changed is masked until unblind.')];
  const up = one.changed.filter(({ before, after }) => after > before).length;
  return [
    about,
    paragraph(
      `${plural(one.changed.length, 'grade')} changed, ${up} of them upwards; ${one.same} stayed as they were; ${plural(one.truncated.length, 'output')} ` +
        `too truncated to be graded again${one.failed === undefined ? '' : `; ${failed.length} without a valid report`}.`,
    ),
    ...(one.changed.length === 0
      ? []
      : table(
          [...KEY, '>before', '>after'],
          one.changed
            .slice(0, MAX_LISTED)
            .map(({ before, after, ...key }) => [...cells(key), String(before), String(after)]),
        )),
    ...more(one.changed.length, 'changes'),
    ...(one.truncated.length === 0
      ? []
      : [
          paragraph('Too truncated:'),
          ...table(
            KEY,
            one.truncated.slice(0, MAX_LISTED).map((key) => cells(key)),
          ),
        ]),
    ...more(one.truncated.length, 'truncated outputs'),
    ...(failed.length === 0
      ? []
      : [
          paragraph('Without a valid report:'),
          ...table(
            [...KEY, 'cause'],
            failed.slice(0, MAX_LISTED).map(({ cause, ...key }) => [...cells(key), cause]),
          ),
        ]),
    ...more(failed.length, 'outputs without a valid report'),
  ];
}

const KEY = ['queue', 'arm', '>training seed', '>evaluation seed', 'task', '>rep'];

function cells({ queue, arm, training_seed, evaluation_seed, task, rep }: OutputKey): string[] {
  return [
    queue,
    arm,
    training_seed === null ? 'none' : String(training_seed),
    String(evaluation_seed),
    task,
    String(rep),
  ];
}

function more(count: number, what: string): readonly Block[] {
  return count <= MAX_LISTED
    ? []
    : [paragraph(`and ${count - MAX_LISTED} more ${what}, which report.json lists.`)];
}
