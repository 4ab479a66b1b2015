import { BoundbookError } from '../core/errors.js';
import type { Closings } from '../ledger/carry.js';
import { type BareRow, ChainVerifier } from '../ledger/chain.js';
import { checkpointFaults } from '../ledger/checkpoint-entry.js';
import { decodeEntry } from '../ledger/codec.js';
import type { Entry, EntryOf } from '../ledger/entries/entry.js';
import { type FoldViolation, LedgerFold } from '../ledger/fold.js';
import { CompactRange, leafHash } from '../ledger/merkle.js';
import type { LedgerIdentity } from '../ledger/origin.js';
import type { LedgerHead } from '../ledger/reader.js';
import { ServiceTrail } from '../ledger/service-trail.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import type { TaskSets } from '../protocol/tasks.js';
import { checkAccount } from './accounts.js';
import type { CheckpointAudit, CheckpointReach } from './checkpoint-audit.js';
import { type CheckpointMark, CheckpointTrail } from './checkpoint-trail.js';
import { ClockCheck } from './clock.js';
import { checkDeviation } from './deviations.js';
import { EvidenceCheck } from './evidence.js';
import type { Findings } from './finding.js';
import { HeadCheck, type KnownHead } from './head.js';
import { HostEventCheck } from './host-events.js';
import type { ObjectShelf } from './objects.js';
import { checkOpening, rebuildPlan, type SchemaShelf } from './plan.js';
import { RegradingCheck } from './regrading-evidence.js';
import type { LedgerSource, RowSource } from './row-source.js';
import { ServiceEvidence } from './service-evidence.js';
import { checkSession } from './sessions.js';
import type { SinceCheck } from './since.js';
import { SlotEvidence } from './slot-evidence.js';

export interface LedgerAuditSetting {
  /** null when there is none that could be read; then only the chain is judged. */
  readonly manifest: IdentifiedManifest | null;
  readonly schemas: SchemaShelf | null;
  readonly source: RowSource & Pick<LedgerSource, 'taskIds'>;
  readonly shelf: ObjectShelf;
  readonly findings: Findings;
  readonly knownHead: KnownHead | null;
  /** Held against every checkpoint of the ledger. */
  readonly checkpoints: CheckpointAudit;
  /** A checkpoint that the ledger must extend. */
  readonly since: SinceCheck | null;
  /** Names in the work folder; those that belong to an attempt or a session are removed. */
  readonly workFolders: Set<string>;
  /** The number of entries at which the root is wanted. */
  readonly rootAt?: number;
  /** Filled with the positions at which slots were closed. */
  readonly closings?: Closings;
  /** Looks at the state of the ledger at the moment at which the plan was amended. */
  readonly onAmended?: (fold: LedgerFold) => void;
}

export interface LedgerAudit {
  readonly head: LedgerHead;
  /** How far signed checkpoints reach. */
  readonly reach: CheckpointReach;
  /** What the known checkpoint proves; null when there is none, or it proves nothing. */
  readonly extended: string | null;
  /** The root at `rootAt` entries, 64 hexadecimal digits; null when none was asked for or the ledger is shorter. */
  readonly rootThere: string | null;
  /** null when the plan could not be rebuilt. */
  readonly fold: LedgerFold | null;
  /** null with {@link fold}. */
  readonly tasks: TaskSets | null;
  readonly evidence: EvidenceCheck | null;
  /** Task sets of which the ids alone are at hand. */
  readonly bareTaskSets: readonly string[];
  /** What the entries say of services that changed; null with {@link fold}. */
  readonly services: ServiceTrail | null;
  readonly clock: ClockCheck;
  /** By position. */
  readonly checkpoints: readonly CheckpointMark[];
  readonly firstTime: string | null;
  readonly firstAttempt: Pick<EntryOf<'attempt.started'>, 'seq' | 'time'> | null;
}

/** How often reading goes on behind a place that cannot be read. */
const MAX_GAPS = 100;

/** Replays a ledger entry by entry: chain, tree, rules, evidence. Memory grows with the slots and objects alone. */
export function auditLedger(setting: LedgerAuditSetting): LedgerAudit {
  const replay = new Replay(setting);
  for (const row of readableRows(setting.source, setting.findings)) replay.take(row);
  return replay.conclude();
}

/** All rows that can be read; each place that cannot is a finding. */
function* readableRows(source: RowSource, findings: Findings): Generator<BareRow> {
  let next = 0;
  for (let gaps = 0; gaps < MAX_GAPS; gaps++) {
    try {
      for (const row of source.rows(next)) {
        next = row.seq + 1;
        yield row;
      }
      return;
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      const message = `entry ${next} cannot be read: ${error.message}`;
      findings.add({ code: 'LEDGER_DAMAGED', where: { seq: next }, message });
      next++;
    }
  }
}

class Replay {
  readonly #setting: LedgerAuditSetting;
  readonly #verifier = new ChainVerifier({ size: 0, leaf: null, time: null });
  readonly #range = new CompactRange();
  readonly #headCheck: HeadCheck | null;
  readonly #clock = new ClockCheck();
  readonly #hostEvents = new HostEventCheck();
  readonly #checkpoints = new CheckpointTrail();
  #fold: LedgerFold | null = null;
  #tasks: TaskSets | null = null;
  #slots: SlotEvidence | null = null;
  #evidence: EvidenceCheck | null = null;
  #regradings: RegradingCheck | null = null;
  #services: { readonly evidence: ServiceEvidence; readonly trail: ServiceTrail } | null = null;
  #bare: readonly string[] = [];
  #identity: LedgerIdentity | null = null;
  #leaf: Buffer | null = null;
  #rootThere: string | null = null;
  #firstTime: string | null = null;
  #lastTime: string | null = null;
  #firstAttempt: LedgerAudit['firstAttempt'] = null;

  constructor(setting: LedgerAuditSetting) {
    this.#setting = setting;
    this.#headCheck = setting.knownHead === null ? null : new HeadCheck(setting.knownHead);
  }

  take(row: BareRow): void {
    const { findings } = this.#setting;
    const { record, faults } = this.#verifier.check(row);
    for (const { seq, what } of faults) findings.add({ code: 'CHAIN_BROKEN', where: { seq }, message: what });
    // An entry that is out of place is judged all the same, as far as it can be understood.
    const entry = record?.entry ?? understood(row);
    if (entry?.type === 'checkpoint') this.#checkpoint(entry);
    this.#leaf = record?.leaf ?? leafHash(row.body);
    this.#range.append(this.#leaf);
    this.#setting.since?.take(this.#leaf);
    if (this.#range.size === this.#setting.rootAt) this.#rootThere = this.#range.root().toString('hex');
    this.#headCheck?.take(this.#range.size, this.#leaf, () => this.#range.root());
    if (entry !== null) this.#judge(entry);
  }

  conclude(): LedgerAudit {
    const { findings } = this.#setting;
    const size = this.#range.size;
    if (size === 0) {
      findings.add({ code: 'LEDGER_DAMAGED', where: { seq: 0 }, message: 'the ledger has no entry' });
    }
    this.#headCheck?.conclude(size, findings);
    const root = this.#range.root();
    const { checkpoints, since } = this.#setting;
    return {
      head: {
        size,
        leaf: this.#leaf?.toString('hex') ?? null,
        root: root.toString('hex'),
        time: this.#lastTime,
      },
      reach: checkpoints.conclude(size),
      extended: since?.conclude(checkpoints.newest, root, findings) ?? null,
      rootThere: this.#rootThere,
      fold: this.#fold,
      tasks: this.#tasks,
      evidence: this.#evidence,
      bareTaskSets: this.#bare,
      services: this.#services?.trail ?? null,
      clock: this.#clock,
      checkpoints: this.#checkpoints.marks,
      firstTime: this.#firstTime,
      firstAttempt: this.#firstAttempt,
    };
  }

  /** Before its own leaf is appended: it speaks of the entries before it. */
  #checkpoint(entry: EntryOf<'checkpoint'>): void {
    this.#checkpoints.take(entry, this.#range, this.#lastTime ?? entry.time);
    for (const message of checkpointFaults(entry, this.#range, this.#identity)) {
      this.#setting.findings.add({ code: 'CHECKPOINT_DIFFERS', where: { seq: entry.seq }, message });
    }
    this.#setting.checkpoints.entry(entry);
  }

  #judge(entry: Entry): void {
    const { shelf, findings, workFolders } = this.#setting;
    this.#lastTime = entry.time;
    shelf.meet(entry);
    this.#clock.take(entry);
    if (entry.type === 'ledger.opened') {
      this.#identity = { ledger: entry.ledger, incarnation: entry.incarnation };
      this.#setting.checkpoints.open(entry);
      this.#setting.since?.open(entry);
    }
    if (this.#firstTime === null) this.#begin(entry);
    if (entry.type === 'attempt.started') {
      this.#firstAttempt ??= { seq: entry.seq, time: entry.time };
      workFolders.delete(entry.attempt);
    }
    if (entry.type === 'gate.passed') workFolders.delete(`services-${entry.session}`);
    if (entry.type === 'regrading.opened') workFolders.delete(`regrading-${entry.regrading}`);
    if (this.#fold === null) return;
    checkSession(entry, this.#fold, findings);
    this.#hostEvents.check(entry, findings);
    if (entry.type === 'account.recorded') checkAccount(entry, shelf, findings);
    if (entry.type === 'deviation.noted') checkDeviation(entry, this.#fold.context, findings);
    this.#slots?.check(entry);
    this.#regradings?.check(entry);
    this.#services?.evidence.check(entry);
    this.#services?.trail.take(entry);
    if (entry.type === 'amended' && this.#fold.amended === null) this.#setting.onAmended?.(this.#fold);
    const violations = this.#fold.apply(entry);
    if (violations.length === 0) this.#setting.closings?.take(entry);
    else this.#violated(entry, violations);
  }

  #violated(entry: Entry, violations: readonly FoldViolation[]): void {
    const slot = 'slot' in entry ? { slot: entry.slot } : {};
    for (const { seq, clause, message } of violations) {
      this.#setting.findings.add({
        code: 'UNLAWFUL',
        clause,
        where: { seq, ...slot },
        message: `${entry.type}: ${message}`,
        evidence: { type: entry.type },
        outcome: showsOutcome(entry),
      });
    }
  }

  /** The first entry says what the rest is judged against. */
  #begin(entry: Entry): void {
    const { manifest, schemas, source, shelf, findings } = this.#setting;
    this.#firstTime = entry.time;
    if (manifest === null) return;
    const { created } = manifest.manifest;
    if (entry.time < created) {
      const message = `the first entry is of ${entry.time}, the manifest of ${created}`;
      findings.add({ code: 'TIME_BEFORE_PLAN', where: { seq: entry.seq, pointer: '/time' }, message });
    }
    if (entry.type !== 'ledger.opened') {
      const message = 'the first entry does not say what the ledger belongs to';
      findings.add({ code: 'UNLAWFUL', clause: 'law 1', where: { seq: entry.seq }, message });
      return;
    }
    checkOpening(entry, manifest, findings);
    const plan = rebuildPlan(entry, manifest, shelf, source.taskIds(), findings);
    if (plan === null) return;
    const { protocol } = plan.context;
    this.#bare = [...plan.tasks.bare].sort();
    const schemaOf = (condition: string) => schemas?.of(condition) ?? null;
    this.#fold = new LedgerFold(plan.context);
    this.#tasks = plan.tasks;
    this.#evidence = new EvidenceCheck({ protocol, manifest: manifest.digest, schemaOf, shelf, findings });
    const { unchecked } = this.#evidence;
    this.#services = {
      evidence: new ServiceEvidence({ protocol, shelf, findings, unchecked }),
      trail: new ServiceTrail(protocol),
    };
    this.#regradings = new RegradingCheck({
      fold: this.#fold,
      tasks: plan.tasks,
      shelf,
      findings,
      unchecked,
    });
    this.#slots = new SlotEvidence(protocol, plan.tasks, this.#fold, this.#evidence, findings);
  }
}

function understood(row: BareRow): Entry | null {
  const decoded = decodeEntry(row.body);
  return decoded.ok ? decoded.entry : null;
}

/** Entries whose content, or whose being refused, tells how an attempt came out. */
function showsOutcome(entry: Entry): boolean {
  return (
    entry.type === 'slot.settled' ||
    entry.type === 'attribution.recorded' ||
    entry.type === 'verdict.opened' ||
    (entry.type === 'stage.finished' && entry.result.kind !== 'candidate')
  );
}
