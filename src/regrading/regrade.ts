import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { canonicalBytes } from '../core/canonical-json.js';
import { digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { AnswerGrader } from '../grading/answer.js';
import { regradeAnswer } from '../grading/regrade.js';
import type { DraftOf, EntryOf } from '../ledger/entries/entry.js';
import { toObject } from '../ledger/objects.js';
import type { RegradingCommand } from '../ledger/regradings.js';
import { slotsDigest } from '../slots/selector.js';
import type { GradeBench, OpenBench, Regraded } from './bench.js';
import { conditionsOf, refused } from './conditions.js';
import { pooled } from './grade-pool.js';
import type { CorrectedGrader } from './grader-file.js';
import { assertUntouched, type GraderSources, hashGrader } from './grader-sources.js';
import { type Asked, isReading, isSame, take, underWay, type WriteBook } from './opening.js';
import { type Output, outputsOf, taskOf } from './outputs.js';

export interface RegradeRequest {
  readonly grader: CorrectedGrader;
  /** Conditions whose outputs are graded again; null: all whose grader is of this sort. */
  readonly conditions: readonly string[] | null;
  readonly reason: string;
}

export interface RegradeOptions {
  /** The workspace: the files of a grade command lie here. */
  readonly root: string;
  /** Grade commands at the same time. */
  readonly concurrency: number;
  /** Starts nothing more; what is under way may end. */
  readonly signal: AbortSignal;
  /** Cuts what is under way. */
  readonly force: AbortSignal;
  readonly say: (line: string) => void;
  readonly openBench: OpenBench;
}

interface Made extends Regraded {
  readonly output: Output;
}

/** What a grade command is run with. */
interface Command {
  readonly bench: GradeBench;
  readonly sources: GraderSources;
}

/** Outputs that share a commit, when the grader reads answers. */
const BATCH = 200;
const LOOK_MS = 1000;
const SAY_MS = 10_000;

/**
 * Grades all outputs of some conditions again, beside what their slots settled on (B6). Each grade is durable before the next
 * but few are asked for; what a stopped or killed process left open under the same grader goes on.
 *
 * @throws {BoundbookError} REGRADE_REFUSED, or TASKS_INVALID for a task that the grader cannot use, before anything is written;
 * STOPPED with outputs left; BINDING_REFUSED; as the store.
 */
export async function regrade(
  book: WriteBook,
  { grader, conditions, reason }: RegradeRequest,
  options: RegradeOptions,
): Promise<EntryOf<'regrading.closed'>> {
  const sources = isReading(grader) ? null : await hashGrader(options.root, grader, options.signal);
  const asked: Asked = {
    grader,
    object: toObject(canonicalBytes(grader)),
    sources,
    conditions: conditionsOf(book.context.protocol, grader, conditions),
    reason,
  };
  const found = underWay(book, asked);
  const regrading = found?.id ?? randomBytes(16).toString('hex');
  if (sources === null || isReading(grader)) {
    take(book, asked, found, regrading, null);
    return new Session(book, asked, regrading, options, null).run();
  }
  const { folder, store } = book;
  const objects = store.objectFolder;
  const bench = await options.openBench({ regrading, grader, sources, folder, objects });
  try {
    const holder = found?.command?.process;
    if (holder !== undefined && bench.isHeld(holder)) {
      throw refused(
        `the regrading ${regrading} is at work in the process ${holder.pid}`,
        'Wait for it, or stop it.',
      );
    }
    await bench.clear();
    take(book, asked, found, regrading, bench.process);
    return await new Session(book, asked, regrading, options, { bench, sources }).run();
  } finally {
    await bench.close();
  }
}

/** One process's work on a regrading that it has taken. */
class Session {
  readonly #book: WriteBook;
  readonly #asked: Asked;
  readonly #regrading: string;
  readonly #options: RegradeOptions;
  readonly #command: Command | null;
  #looked = performance.now();
  #said = performance.now();
  #underWay = 0;

  constructor(
    book: WriteBook,
    asked: Asked,
    regrading: string,
    options: RegradeOptions,
    command: Command | null,
  ) {
    this.#book = book;
    this.#asked = asked;
    this.#regrading = regrading;
    this.#options = options;
    this.#command = command;
  }

  async run(): Promise<EntryOf<'regrading.closed'>> {
    const { signal } = this.#options;
    const onStop = () => this.#sayStopping();
    signal.addEventListener('abort', onStop);
    try {
      const left = this.#left();
      for await (const batch of this.#graded(left)) {
        await this.#look(LOOK_MS);
        this.#record(batch);
        for (const { output } of batch) await this.#command?.bench.forget(output.slot);
      }
      await this.#look(0);
    } finally {
      signal.removeEventListener('abort', onStop);
    }
    return this.#close();
  }

  /** The outputs of the regrading that are not recorded. */
  #left(): readonly Output[] {
    const { regradings } = this.#book.fold;
    const { open } = regradings;
    const { arms } = this.#book.context.protocol;
    const own = Object.keys(arms).filter((arm) =>
      this.#asked.conditions.includes(arms[arm]?.condition ?? ''),
    );
    const outputs = outputsOf(this.#book, new Set(own), open?.seq);
    if (slotsDigest(outputs.map(({ slot }) => slot)).digest !== open?.slots.digest)
      throw new BoundbookError('INTERNAL', 'a regrading of other slots than it names');
    return outputs.filter(({ slot }) => !regradings.recorded.has(slot));
  }

  #graded(left: readonly Output[]): AsyncIterable<readonly Made[]> {
    const { grader } = this.#asked;
    const { concurrency: limit, signal: stop, force } = this.#options;
    if (isReading(grader)) return this.#read(left, grader);
    return pooled({ items: left, limit, work: (output, cut) => this.#run(output, cut), stop, force });
  }

  async *#read(left: readonly Output[], grader: AnswerGrader): AsyncGenerator<readonly Made[]> {
    for (let at = 0; at < left.length && !this.#options.signal.aborted; at += BATCH) {
      yield left.slice(at, at + BATCH).map((output) => this.#readOne(output, grader));
      await setImmediate();
    }
  }

  #readOne(output: Output, grader: AnswerGrader): Made {
    const { id, fields } = taskOf(this.#book, output.slot);
    const candidate = this.#book.store.getObject(output.candidate);
    const finishReason = output.isCut ? 'length' : null;
    const regraded = regradeAnswer({ grader, task: id, fields, candidate, finishReason });
    if (regraded.kind === 'truncated') return { output, result: regraded, objects: [] };
    const { value, report } = regraded;
    return {
      output,
      result: { kind: 'graded', value, report: digestOf(report) },
      objects: [toObject(report)],
    };
  }

  async #run(output: Output, cut: AbortSignal): Promise<Made | null> {
    if (this.#command === null) throw new BoundbookError('INTERNAL', 'a command without its bench');
    this.#underWay++;
    try {
      const task = taskOf(this.#book, output.slot);
      const candidate = this.#book.store.getObject(output.candidate);
      const regraded = await this.#command.bench.grade(output.slot, task, candidate, cut);
      return regraded === null ? null : { output, ...regraded };
    } finally {
      this.#underWay--;
    }
  }

  /** A grade of files that were touched is nobody's. */
  async #look(everyMs: number): Promise<void> {
    if (this.#command === null || performance.now() - this.#looked < everyMs) return;
    await assertUntouched(this.#command.sources);
    this.#looked = performance.now();
  }

  #record(batch: readonly Made[]): void {
    const regrading = this.#regrading;
    this.#book.store.transact(() => {
      this.#assertOwn();
      const { recorded } = this.#book.fold.regradings;
      const fresh = batch.filter(({ output }) => !recorded.has(output.slot));
      const drafts = fresh.map(
        ({ output: { slot, candidate, before }, result, stage }): DraftOf<'regrading.recorded'> => ({
          type: 'regrading.recorded',
          regrading,
          slot,
          candidate,
          before,
          result,
          ...(stage === undefined ? {} : { stage }),
        }),
      );
      return { drafts, objects: fresh.flatMap(({ objects }) => objects), result: undefined };
    });
    this.#saySoFar();
  }

  #close(): EntryOf<'regrading.closed'> {
    const regrading = this.#regrading;
    const { entries } = this.#book.store.transact(() => {
      const open = this.#assertOwn();
      const { recorded, counts } = this.#book.fold.regradings;
      if (recorded.size < open.slots.count) throw this.#stopped(open.slots.count - recorded.size);
      const { failed, ...rest } = counts;
      const closed = { type: 'regrading.closed', regrading, ...rest } as const;
      return { drafts: [open.command === null ? closed : { ...closed, failed }], result: undefined };
    });
    const [closed] = entries;
    if (closed?.type === 'regrading.closed') return closed;
    throw new BoundbookError('INTERNAL', 'a regrading without its end');
  }

  #assertOwn() {
    const { open } = this.#book.fold.regradings;
    const own: RegradingCommand['process'] | null = this.#command?.bench.process ?? null;
    if (open?.id === this.#regrading && isSame(open.command?.process ?? null, own)) return open;
    throw refused(`another process went on with the regrading ${this.#regrading}`);
  }

  #stopped(left: number): BoundbookError {
    const { reason } = this.#options.signal;
    const by = typeof reason === 'string' ? reason : 'a signal';
    return new BoundbookError(
      'STOPPED',
      `stopped by ${by} ${this.#book.fold.outcomesVisible ? `with ${left} outputs left` : 'before the end'}`,
      {
        hint: 'Run the same command again to go on.',
      },
    );
  }

  #sayStopping(): void {
    const { grader } = this.#asked;
    if (this.#underWay === 0 || isReading(grader)) return;
    this.#options.say(
      `stopping: waiting up to ${grader.grade.wall_s + grader.grace_s} s for ${this.#underWay} under way (again to abandon now)`,
    );
  }

  #saySoFar(): void {
    if (performance.now() - this.#said < SAY_MS) return;
    this.#said = performance.now();
    const { open, recorded } = this.#book.fold.regradings;
    const of = open?.slots.count ?? 0;
    const share = of === 0 ? 100 : Math.floor((100 * recorded.size) / of);
    // Before unblinding no number is told: it says how many slots of an arm a report settled (law 8).
    this.#options.say(
      this.#book.fold.outcomesVisible
        ? `${recorded.size} of ${of} outputs graded again`
        : `${share} % of the outputs graded again`,
    );
  }
}
