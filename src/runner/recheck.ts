import { randomBytes } from 'node:crypto';
import { failureSignals } from '../attempts/signals.js';
import { BoundbookError } from '../core/errors.js';
import type { Book } from '../ledger/book.js';
import type { DraftOf } from '../ledger/entries/entry.js';
import { type LedgerObject, toObject } from '../ledger/objects.js';
import { recheckSample } from '../ledger/recheck-sample.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { slotsDigest } from '../slots/selector.js';
import { type Adapter, NOTHING_MORE, secondsSince, type Work } from './adapters/adapter.js';
import { generateRecord, gradeRecord } from './drafts.js';
import type { Journal } from './journal.js';
import { jobOf } from './plan-queue.js';
import type { ProcessIdentity } from './process-identity.js';
import { evidenceAgainst } from './recovery.js';

export interface RecheckSetting {
  readonly book: Book;
  readonly journal: Journal;
  readonly adapter: Adapter;
  readonly session: string;
  /** The process that the session runs in, and the sessions that are at work in it. */
  readonly own: ProcessIdentity;
  readonly active: ReadonlySet<string>;
  readonly fraction: string;
  readonly workers: number;
  /** Cuts what is in flight. */
  readonly abandoned: AbortSignal;
  /** Makes a model's service the one in use; false: it could not be. */
  readonly use: (model: string) => Promise<boolean>;
  /** Waits until a request may be sent; false: none may be sent any more. */
  readonly mayStart: () => Promise<boolean>;
  /** Called when a start is durable. */
  readonly started: () => void;
  /** Called when the last request in flight has ended. */
  readonly idle: () => void;
  /** What ends the session. */
  readonly fault: (error: unknown) => void;
}

type Finished = DraftOf<'recheck.finished'>;

/**
 * Whether a recheck may be declared, or gone on with, by this fraction.
 *
 * @throws {BoundbookError} RECHECK_REFUSED
 */
export function assertRecheckable({ fold }: Book, fraction: string): void {
  const { pending, open: running } = fold.slots.total();
  if (pending + running > 0) {
    throw refuse(`${pending} slots are pending and ${running} open`, 'Finish the plan first: boundbook run.');
  }
  const { open } = fold.rechecks;
  if (open !== null && open.fraction !== fraction) {
    throw refuse(
      `the recheck ${open.id} of ${open.fraction} is not closed`,
      `Finish it first: boundbook run --recheck-stopped ${open.fraction}.`,
    );
  }
}

/** @throws {BoundbookError} RECHECK_REFUSED for a plan that stops no loops. */
export function assertStopRule({ conditions }: Protocol): void {
  if (Object.values(conditions).some((condition) => condition.loop_stop !== undefined)) return;
  throw refuse(
    'no condition of the plan has a loop_stop',
    'There is no stop rule whose recovery could be measured.',
  );
}

/**
 * Generates a declared sample of the outputs that the stop rule ended again, without the rule, and grades them (B10). Each
 * request is the slot's own, and is sent once: what fails, or is lost with its process, is a failure and not repeated.
 */
export class StoppedRecheck {
  readonly #setting: RecheckSetting;
  #inFlight = 0;

  constructor(setting: RecheckSetting) {
    this.#setting = setting;
  }

  /** Requests that are under way now. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Works until the sample is done or nothing more may be sent. */
  async run(): Promise<void> {
    const recheck = await this.#declare();
    await this.#giveUpLost(recheck);
    for (const [model, works] of this.#waiting()) {
      if (!(await this.#setting.use(model))) return;
      await this.#pool(recheck, works);
    }
    await this.#close(recheck);
  }

  /** The open recheck, or a new one: durable before anything is sent. */
  async #declare(): Promise<string> {
    const { journal, book, fraction, session } = this.#setting;
    const { result } = await journal.decide(() => {
      const { fold, context } = book;
      assertRecheckable(book, fraction);
      if (fold.rechecks.open !== null) return { drafts: [], result: fold.rechecks.open.id };
      const recheck = randomBytes(16).toString('hex');
      const stopped = fold.rechecks.stopped(fold.slots);
      const sample = recheckSample(stopped, fraction, context.manifest);
      const sets = { stopped: slotsDigest(stopped), sample: slotsDigest(sample) };
      return { drafts: [{ type: 'recheck.declared', recheck, session, fraction, ...sets }], result: recheck };
    });
    return result;
  }

  /** What was sent by a process that is gone. */
  async #giveUpLost(recheck: string): Promise<void> {
    const { journal, session } = this.#setting;
    await journal.decide(() => {
      const { rechecks, sessions } = journal.fold;
      const lost = [...rechecks.left()].filter(([, sender]) => {
        const sending = sender === null ? undefined : sessions.get(sender);
        return (
          sending !== undefined && (sending.end !== null || evidenceAgainst(sending, this.#setting) !== null)
        );
      });
      const isOpen = rechecks.open?.id === recheck;
      const drafts = isOpen ? lost.map(([slot]) => lostDraft({ recheck, session, slot }, 0)) : [];
      return { drafts, result: undefined };
    });
  }

  /** Slots whose request was not sent, by model. */
  #waiting(): ReadonlyMap<string, Work[]> {
    const { journal, book } = this.#setting;
    const byModel = new Map<string, Work[]>();
    for (const [slot, sender] of journal.fold.rechecks.left()) {
      const key = sender === null ? journal.fold.slots.key(slot) : null;
      const job = key === null ? null : jobOf(book.context.protocol, book.tasks.tasks, { ...key, id: slot });
      if (job === null) continue;
      const works = byModel.get(job.work.model) ?? [];
      byModel.set(job.work.model, works);
      works.push(job.work);
    }
    return byModel;
  }

  async #pool(recheck: string, works: Work[]): Promise<void> {
    const { workers, mayStart, fault } = this.#setting;
    const worker = async (): Promise<void> => {
      try {
        for (let work = works.pop(); work !== undefined; work = works.pop()) {
          if (!(await mayStart())) return;
          await this.#fly(recheck, work);
        }
      } catch (error) {
        fault(error);
      }
    };
    await Promise.all(Array.from({ length: workers }, worker));
  }

  async #fly(recheck: string, work: Work): Promise<void> {
    this.#inFlight++;
    try {
      await this.#send(recheck, work);
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#setting.idle();
    }
  }

  async #send(recheck: string, work: Work): Promise<void> {
    const { journal, adapter, session, started, abandoned } = this.#setting;
    const slot = work.slot.id;
    const request = toObject(adapter.request(work, slot));
    const names = { recheck, session, slot };
    const { result: own } = await journal.decide(() => {
      const { rechecks, amended } = journal.fold;
      const isMine = amended === null && rechecks.open?.id === recheck && rechecks.isUnsent(slot);
      return isMine
        ? {
            drafts: [{ type: 'recheck.started', ...names, request: request.digest }],
            objects: [request],
            result: true,
          }
        : { drafts: [], result: false };
    });
    if (!own) return;
    started();
    const start = performance.now();
    const running = {
      work: withoutRule(work),
      attempt: slot,
      kind: 'first',
      request: Buffer.from(request.bytes),
      takenOver: null,
    } as const;
    const end = await adapter.generate(running, abandoned);
    if (end.kind === 'abandoned') return journal.append([lostDraft(names, secondsSince(start))]);
    const { draft, objects } = generateRecord({ attempt: slot, slot }, end);
    const { type: _type, attempt: _attempt, stage: _stage, result, ...rest } = draft;
    if (end.kind === 'failure' && result.kind === 'failure')
      return journal.append([{ type: 'recheck.finished', recheck, session, ...rest, result }], objects);
    if (end.kind !== 'candidate') throw new BoundbookError('INTERNAL', 'a generation without its end');
    const graded = await this.#grade(running.work, end.bytes);
    const finished: Finished = { type: 'recheck.finished', recheck, session, ...rest, result: graded.result };
    return journal.append([finished], [...objects, ...graded.objects]);
  }

  async #grade(
    work: Work,
    bytes: Buffer,
  ): Promise<{ readonly result: Finished['result']; readonly objects: readonly LedgerObject[] }> {
    const { adapter, journal, abandoned } = this.#setting;
    const slot = work.slot.id;
    const running = { work, attempt: slot, kind: 'first', request: null, takenOver: null } as const;
    const end = await adapter.grade(running, bytes, abandoned);
    const before = journal.fold.slots.value(slot);
    if (end.kind !== 'report' || before === null)
      throw new BoundbookError('INTERNAL', 'an answer that cannot be graded');
    const { draft, objects } = gradeRecord({ attempt: slot, slot }, toObject(bytes).digest, end);
    if (draft.result.kind !== 'report') throw new BoundbookError('INTERNAL', 'a grading without a report');
    return { result: { ...draft.result, kind: 'graded', before }, objects };
  }

  async #close(recheck: string): Promise<void> {
    const { journal } = this.#setting;
    await journal.decide(() => {
      const { rechecks } = journal.fold;
      const isDone = rechecks.open?.id === recheck && rechecks.left().next().done === true;
      const counts = rechecks.open?.counts;
      return {
        drafts: isDone && counts !== undefined ? [{ type: 'recheck.closed', recheck, ...counts }] : [],
        result: undefined,
      };
    });
  }
}

function withoutRule({ condition: { loop_stop: _rule, ...condition }, ...work }: Work): Work {
  return { ...work, condition };
}

function lostDraft(names: Pick<Finished, 'recheck' | 'session' | 'slot'>, seconds: number): Finished {
  const { usage, finishReason, queueSeconds } = NOTHING_MORE;
  const signals = failureSignals({
    stage: 'generate',
    phase: 'between',
    cause: 'process_gone',
    first_token: false,
  });
  return {
    type: 'recheck.finished',
    ...names,
    result: { kind: 'failure', signals },
    objects: {},
    usage,
    finish_reason: finishReason,
    seconds,
    queue_seconds: queueSeconds,
  };
}

function refuse(message: string, hint: string): BoundbookError {
  return new BoundbookError('RECHECK_REFUSED', message, { hint });
}
