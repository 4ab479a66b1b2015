import type { Digest } from '../core/digest.js';
import type { ObjectRole } from '../ledger/mentions.js';
import type { NotedDeviation } from '../ledger/plan-book.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { OPERATORS_WORD } from '../protocol/schema/services.js';
import { uncontained } from '../protocol/uncontained.js';
import { selectorText } from '../slots/selector.js';
import type { CheckpointReach } from './checkpoint-audit.js';
import type { LedgerAudit } from './ledger-audit.js';
import type { SchemaShelf } from './plan.js';
import { redactionLines } from './redaction-lines.js';
import { serviceRemarks } from './service-lines.js';

/** What the facts at hand can and cannot show, in sentences. */

export interface Circumstances {
  readonly protocol: Protocol | null;
  readonly audit: LedgerAudit;
  readonly schemas: SchemaShelf | null;
  /** Manifests that the lineage names and that are not at hand. */
  readonly unseen: readonly Digest[];
  /** Whether somebody else's head was compared. */
  readonly headGiven: boolean;
  /** An older checkpoint was given and no key to verify it with. */
  readonly sinceUnverified: boolean;
  readonly reportGiven: boolean;
  /** The ledger grew while it was audited. */
  readonly grown: boolean;
  /** Redacted objects by what they are to the entries. */
  readonly redacted: ReadonlyMap<ObjectRole, number>;
  /** Reports beside the ledger that cannot be rebuilt. */
  readonly otherReports: readonly string[];
}

/** What an audit of files cannot see, line by line (law 11). */
export function notCheckedLines({
  protocol,
  schemas,
  unseen,
  headGiven,
  sinceUnverified,
  reportGiven,
  grown,
  audit,
  redacted,
  otherReports,
}: Circumstances): string[] {
  const lines = [
    headGiven
      ? 'whether entries after the known head were removed or rewritten: only a newer head held by somebody else shows it'
      : 'whether the ledger was rewritten as a whole, or entries at its end removed, by its owner: only a head or a checkpoint held by somebody else shows it (--head SIZE:HASH, --since NOTE)',
    'whether the clocks of the hosts were right: times are ordered, not proven',
    'whether the hosts and processes were those that the entries name: that is what the runner said',
    'how long stages, services and sessions took: the runner measured it, and costs rest on it',
    'whether the reference answers and task labels are right',
  ];
  lines.push(...signatureLimits(audit.reach));
  if (sinceUnverified)
    lines.push('whether the older checkpoint is genuine: no key was given (--key VKEY, --policy FILE)');
  if (protocol === null) lines.push('anything that needs the manifest: plan, rules, evidence');
  if (protocol?.runner.adapter === 'openai') {
    if ('external' in protocol.runner.service)
      lines.push(
        `what the service runs on at all: ${OPERATORS_WORD}, and the gate started no process and proved no port`,
      );
    lines.push(
      'whether the service loaded the weights that were verified, and used the sampling fields that it was sent',
      'whether an answer is the first that the service gave: a runner could ask twice and record once',
    );
  }
  if (protocol?.runner.adapter === 'command') {
    lines.push(
      'whether the generate and grade commands did what their sources say: they are bound, and were not run again',
    );
    const gap = uncontained(protocol);
    if (gap !== null) lines.push(`whether everything that a stage started had ended before the next: ${gap}`);
  }
  if (protocol?.runner.adapter === 'harbor') {
    lines.push(
      `what the agents asked: ${OPERATORS_WORD}, and the gate started no service`,
      'whether Harbor, its agent and its verifier did what their sources say: they were not run again; a verifier that shares the agent’s container can be misled by it',
    );
  }
  if (audit.fold?.regradings.all.some(({ command }) => command !== null) === true) {
    lines.push(
      'whether corrected grade commands did what their files say: the files are named by digest, and were not run again',
    );
  }
  lines.push('whether the failures of connections, processes and time limits happened as their signals say');
  for (const digest of unseen) {
    lines.push(`whether the manifest follows from ${digest}, which is not at hand`);
  }
  for (const condition of schemas?.missing ?? []) {
    lines.push(
      `whether reports of the condition ${condition} pass its schema: the bound file is not at hand`,
    );
  }
  lines.push(...redactionLines(audit, redacted));
  for (const report of otherReports) lines.push(`${report}: not in a form that can be rebuilt`);
  if (grown) lines.push('what was recorded while this audit ran, and folders in work/');
  if (!reportGiven) lines.push('any report: none was given (--report FILE)');
  return lines;
}

/** What is not known of signed checkpoints. */
function signatureLimits({ signed, trusted, covered, witnessed, unknown }: CheckpointReach): string[] {
  if (!trusted) {
    return signed === 0
      ? ['whether anybody else ever saw a state of the ledger: no checkpoint is signed']
      : [
          `whether the signatures of ${signed} signed checkpoints are genuine: no key was given (--key VKEY, --policy FILE)`,
        ];
  }
  const lines = [
    covered === null
      ? 'whether anybody else ever saw a state of the ledger: no checkpoint is signed by a given key'
      : `whether the entries from ${covered} on were changed since: no verified checkpoint covers them`,
  ];
  if (witnessed !== null)
    lines.push(
      `whether others saw the entries from ${witnessed} on: no checkpoint with the quorum covers them`,
    );
  if (unknown > 0) lines.push(`${unknown} notes of checkpoints that no given key signed`);
  return lines;
}

/** The order in time that the chain proves, and what rests on clocks alone. */
export function orderLines({ firstAttempt, firstTime, fold, head }: LedgerAudit): string[] {
  if (fold?.opened === null || fold === null) return [];
  const { opened, unblinded } = fold;
  const lines = [
    `the manifest ${opened.manifest} was fixed before every entry: entry ${opened.seq} names it`,
  ];
  if (firstAttempt === null) lines.push('no attempt was started');
  else {
    const gate = [...fold.sessions.all()][0];
    if (gate !== undefined && gate.seq < firstAttempt.seq) {
      lines.push(
        `the gate passed (entry ${gate.seq}) before the first attempt started (entry ${firstAttempt.seq})`,
      );
    }
  }
  lines.push(
    unblinded === null
      ? `no unblinding was recorded up to entry ${head.size - 1}`
      : `outcomes were unblinded ${unblinded.partial ? 'in part ' : ''}with entry ${unblinded.seq}, after ${unblinded.settled} of ${unblinded.planned} slots were settled`,
  );
  if (firstTime !== null && head.time !== null) {
    lines.push(`by the clocks of the hosts: first entry ${firstTime}, last ${head.time}`);
  }
  return lines;
}

/** What is no breach and still worth a look. */
export function remarkLines({ fold, evidence, clock, services }: LedgerAudit): string[] {
  const lines: string[] = [];
  for (const { seq, incarnation, known, lost, reason } of fold?.restorations ?? []) {
    lines.push(
      `incarnation ${incarnation} begins with entry ${seq}: an older copy was put back (${reason}); of ${known} entries that were known outside, the last ${lost} are lost, whatever they held`,
    );
  }
  for (const { seq, session, reason, detail } of fold?.deviations ?? []) {
    lines.push(
      `session ${session} was paused with entry ${seq} (${reason}${detail === null ? '' : `: ${detail}`})`,
    );
  }
  for (const note of fold?.noted ?? []) lines.push(noteLine(note));
  const open = fold === null ? [] : [...fold.slots.open()];
  if (open.length > 0) {
    lines.push(`${open.length} slots were started and are not closed, ${open[0]?.slot ?? ''} among them`);
  }
  const abandoned = fold?.abandoned ?? 0;
  if (abandoned > 0) {
    lines.push(
      `${abandoned} attempts were given up by their own session, on a second stop of the operator or for a fault: whether somebody had seen what they made is nowhere`,
    );
  }
  const doubtful = evidence?.doubtful ?? [];
  if (doubtful.length > 0) {
    lines.push(
      `${doubtful.length} attempts kept a whole answer although their connection failed: entries ${doubtful.slice(0, 10).join(', ')}`,
    );
  }
  lines.push(...serviceRemarks(services), ...(evidence?.systems.remarks() ?? []), ...clock.remarks());
  for (const { id, seq, resumed } of fold?.regradings.all ?? []) {
    if (resumed === 0) continue;
    lines.push(
      `the regrading ${id} (entry ${seq}) was left and taken up again ${resumed === 1 ? 'once' : `${resumed} times`}: what was graded and not recorded by then was graded again`,
    );
  }
  const late = [...(fold?.slots.unresolved() ?? [])].filter(({ state }) => state.lateAttributions > 0).length;
  if (late > 0)
    lines.push(`${late} unresolved slots have a verdict that came after unblinding and changes nothing`);
  return lines;
}

function noteLine({ seq, time, text, selector, slots, afterUnblinding }: NotedDeviation): string {
  const when = afterUnblinding ? 'after outcomes were unblinded' : 'before any unblinding';
  return `deviation noted with entry ${seq} at ${time}, ${when}: ${slots.count} slots (${selectorText(selector)}): ${text}`;
}

/** What was recomputed. */
export function checkedLines({ audit, protocol, redacted }: Circumstances, objects: number): string[] {
  const { head, fold, evidence, bareTaskSets, reach, extended } = audit;
  const lines = [`${head.size} entries: form, canonical bytes, positions, links, leaves, times, tree root`];
  if (reach.signed > 0)
    lines.push(`${reach.signed} signed checkpoints: what they say of the entries before them`);
  if (reach.covered !== null) {
    lines.push(
      `signatures of ${reach.verified} notes by given keys; the newest covers ${reach.covered} entries`,
    );
  }
  if (reach.witnessed !== null)
    lines.push(`the quorum of the policy, for the first ${reach.witnessed} entries`);
  if (extended !== null) lines.push(extended);
  // Equal answers are one object, so that the number of objects tells of answers (law 8).
  const counted = (count: number, noun: string) => (fold?.outcomesVisible ? `${count} ${noun}` : noun);
  lines.push(counted(objects, 'objects against their digests'));
  if (fold === null || protocol === null) return lines;
  const { first, replacement, regrade } = fold.attempts;
  const { plan } = fold.context;
  const regraded = evidence?.regraded ?? 0;
  lines.push(
    bareTaskSets.length === 0
      ? `the plan of ${plan.count} slots from the task files (${plan.digest})`
      : `the plan of ${plan.count} slots from the stated ids of tasks (${plan.digest})`,
    `${first} first attempts, ${replacement} replacements, ${regrade} regrades against the rules of the plan`,
    ...evidenceLines(protocol, redacted),
    ...(regraded === 0 ? [] : [counted(regraded, 'answers graded again')]),
  );
  return lines;
}

function evidenceLines({ runner }: Protocol, redacted: ReadonlyMap<ObjectRole, number>): string[] {
  const each = redacted.size === 0 ? 'every' : 'every other';
  switch (runner.adapter) {
    case 'openai':
      return [`${each} request against the plan, ${each} candidate against the answer that it came in`];
    case 'command':
      return [`${each} request against the plan`];
    case 'harbor':
      return [`${each} request against the plan, ${each} outcome against what was kept of its trial`];
  }
}
