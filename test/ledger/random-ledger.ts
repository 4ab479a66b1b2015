import { step } from '../../src/attempts/machine.js';
import { nextAction } from '../../src/attempts/next-action.js';
import { classify } from '../../src/attempts/rules.js';
import type { FailureSignals } from '../../src/attempts/signals.js';
import { failureSignals } from '../../src/attempts/signals.js';
import { attemptId, PLANNED, type SlotState } from '../../src/attempts/slot-state.js';
import { digestOf } from '../../src/core/digest.js';
import type { DraftOf, EntryDraft } from '../../src/ledger/entries/entry.js';
import { toSlotEvent } from '../../src/ledger/entries/slot-event.js';
import { type PlanContext, slotRules } from '../../src/ledger/plan-index.js';
import { expandSlots } from '../../src/slots/plan.js';
import type { Slot } from '../../src/slots/slot.js';
import { gateDraft, pausedDraft } from './support.js';

/** Whole numbers below a bound, in an order that a seed fixes. */
export type Random = (below: number) => number;

export function seeded(seed: number): Random {
  let state = seed >>> 0 || 1;
  return (below) => {
    // xorshift32 (Marsaglia 2003)
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % below;
  };
}

const CAUSES = ['connection_lost', 'grader_fault', 'body_malformed', 'time_limit'] as const;

/**
 * Goes through a plan as several sessions that die, recover, pause, are judged and unblinded might, and hands out entries
 * that are lawful one after the other. It knows the slots' state machine and nothing of the fold.
 */
export class RandomLedger {
  readonly #context: PlanContext;
  readonly #random: Random;
  readonly #slots: readonly Slot[];
  readonly #states = new Map<string, SlotState>();
  readonly #sessions: string[] = [];
  readonly #ended = new Set<string>();
  readonly #services: { session: string; service: string; stopped: boolean }[] = [];
  #unblinded = false;
  #amended = false;

  constructor(context: PlanContext, random: Random) {
    this.#context = context;
    this.#random = random;
    this.#slots = [...expandSlots(context.protocol, context.taskIds)];
  }

  /** The next entry, anything but a checkpoint. */
  next(): EntryDraft {
    for (;;) {
      const draft = this.#tryNext();
      if (draft !== null) return draft;
    }
  }

  #tryNext(): EntryDraft | null {
    const session = this.#alive();
    if (session === null || this.#random(60) === 0) return this.#gate();
    if (this.#amended) return this.#amongSealed(session);
    switch (this.#random(26)) {
      case 0:
        return this.#random(4) === 0 ? this.#pause(session) : null;
      case 1:
        return this.#startService(session);
      case 2:
        return this.#stopService();
      case 3:
        return this.#unblind();
      case 4:
        return this.#verdict();
      case 5:
        return this.#recover(session);
      case 6:
        return { type: 'gate.refused', manifest: this.#context.manifest, mismatches: [], total: 0 };
      case 7:
        return this.#note();
      case 8:
        return this.#amend();
      default:
        return this.#proceed(session);
    }
  }

  /** An amended plan's ledger takes no more attempts; verdicts on them are late or unlawful. */
  #amongSealed(session: string): EntryDraft | null {
    switch (this.#random(4)) {
      case 0:
        return this.#unblind();
      case 1:
        return this.#unblinded ? this.#verdict() : null;
      case 2:
        return this.#startService(session);
      default:
        return this.#note();
    }
  }

  #note(): EntryDraft {
    const slots = { count: 1 + this.#random(3), digest: digestOf(`slots ${this.#random(9)}`) };
    return { type: 'deviation.noted', text: 'the driver was updated', selector: { arm: ['O'] }, slots };
  }

  #amend(): EntryDraft | null {
    if (this.#random(40) !== 0) return null;
    this.#amended = true;
    return { type: 'amended', successor: digestOf('the next plan'), revision: 2, reason: 'fewer seeds' };
  }

  #pick<T>(list: readonly T[]): T | null {
    return list[this.#random(Math.max(1, list.length))] ?? null;
  }

  #alive(): string | null {
    return this.#pick(this.#sessions.filter((id) => !this.#ended.has(id)));
  }

  #gate(): EntryDraft {
    const id = (this.#sessions.length + 16).toString(16).padStart(32, '0');
    this.#sessions.push(id);
    return { ...gateDraft(id, 100 + this.#sessions.length), manifest: this.#context.manifest };
  }

  #pause(session: string): EntryDraft {
    this.#ended.add(session);
    const reason = this.#pick(['finished', 'limit', 'signal', 'breaker', 'fault', 'disk_full'] as const);
    return {
      ...pausedDraft(reason ?? 'fault', session),
      detail: this.#random(2) === 0 ? null : 'as it came',
    };
  }

  #startService(session: string): EntryDraft {
    const service = `M#${this.#services.length}`;
    this.#services.push({ session, service, stopped: false });
    return {
      type: 'service.started',
      session,
      service,
      model: 'M',
      pid: 1,
      port: 1,
      start: 0,
      effective: null,
      seconds: this.#random(1000) / 7,
    };
  }

  #stopService(): EntryDraft | null {
    const service = this.#pick(this.#services.filter(({ stopped }) => !stopped));
    if (service === null) return null;
    service.stopped = true;
    return {
      type: 'service.stopped',
      session: service.session,
      service: service.service,
      model: 'M',
      reason: 'done',
      exit_status: 0,
      signal: null,
      seconds: this.#random(1000) / 3,
      gpus: 2,
    };
  }

  #unblind(): EntryDraft | null {
    if (this.#unblinded || this.#random(30) !== 0) return null;
    this.#unblinded = true;
    const phases = this.#slots.map(({ id }) => this.#state(id).phase);
    const settled = phases.filter((phase) => phase === 'settled').length;
    const unresolved = phases.filter((phase) => phase === 'unresolved').length;
    const planned = phases.length;
    return {
      type: 'unblinded',
      partial: true,
      planned,
      settled,
      unresolved,
      pending: planned - settled - unresolved,
    };
  }

  #verdict(): EntryDraft | null {
    const slot = this.#pick(
      this.#slots.filter(({ id }) => this.#state(id).phase === 'unresolved' || this.#byPerson(id)),
    );
    const state = slot === null ? null : this.#state(slot.id);
    if (slot === null || state === null || !('attempt' in state || state.phase === 'settled')) return null;
    return this.#take(slot, {
      type: 'attribution.recorded',
      attempt: state.attempts.at(-1) ?? '',
      slot: slot.id,
      attribution: this.#pick(['infrastructure', 'model', 'undetermined'] as const) ?? 'model',
      by: 'adjudicator',
      rule: null,
      late: this.#unblinded,
      reason: 'looked at the log',
    });
  }

  #byPerson(id: string): boolean {
    const state = this.#state(id);
    return state.phase === 'settled' && state.by === 'adjudicator';
  }

  #recover(session: string): EntryDraft | null {
    const open = this.#slots.filter(({ id }) => ['generating', 'grading'].includes(this.#state(id).phase));
    const slot = this.#pick(open);
    if (slot === null) return null;
    const state = this.#state(slot.id);
    return this.#take(slot, {
      type: 'attempt.recovered',
      attempt: state.attempts.at(-1) ?? '',
      slot: slot.id,
      session,
      found: state.phase === 'grading' ? 'candidate' : 'nothing',
      evidence: { reason: 'process_gone', boot_id: 'boot-1', pid: 100 },
    });
  }

  #proceed(session: string): EntryDraft | null {
    const slot = this.#pick(this.#slots);
    if (slot === null) return null;
    const rules = slotRules(this.#context.protocol, slot);
    const state = this.#state(slot.id);
    const action = nextAction(state, rules);
    if (action === null) return null;
    const names = { slot: slot.id, attempt: state.attempts.at(-1) ?? '' };
    switch (action.do) {
      case 'start': {
        const { queue, arm, trainingSeed, evaluationSeed, task, rep } = slot;
        const started: DraftOf<'attempt.started'> = {
          type: 'attempt.started',
          session,
          attempt: attemptId(slot.id, state.attempts.length + 1),
          slot: slot.id,
          key: { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep },
          kind: action.kind,
          of: action.of,
          sampling_seed: rules.samplingSeed,
          candidate: action.candidate,
          request: action.kind === 'regrade' ? null : digestOf(`request ${slot.id}`),
        };
        return this.#take(slot, started);
      }
      case 'generate':
      case 'grade': {
        const stage = action.do;
        const failed = this.#random(3) === 0;
        const result = failed
          ? { kind: 'failure' as const, signals: this.#signals(stage) }
          : stage === 'generate'
            ? { kind: 'candidate' as const, candidate: digestOf(`candidate ${names.attempt}`) }
            : {
                kind: 'report' as const,
                candidate: (action as { candidate: DraftOf<'ledger.opened'>['manifest'] }).candidate,
                report: digestOf(`report ${names.attempt}`),
                value: this.#random(2),
              };
        return this.#take(slot, {
          type: 'stage.finished',
          ...names,
          stage,
          result,
          objects: {},
          usage: this.#random(3) === 0 ? null : { prompt_tokens: 3, completion_tokens: this.#random(50) },
          finish_reason: null,
          seconds: this.#random(1000) / 7,
          queue_seconds: 0,
        });
      }
      case 'attribute': {
        if (state.phase !== 'failed' || state.signals === null) return null;
        const { attribution, rule } = classify(rules.rules, state.signals);
        const text = { by: 'rule' as const, late: false, reason: null };
        return this.#take(slot, { type: 'attribution.recorded', ...names, attribution, rule, ...text });
      }
      case 'finish':
        return this.#take(slot, { type: 'attempt.finished', ...names, outcome: action.outcome, seconds: 1 });
      case 'settle':
        return this.#take(slot, {
          type: 'slot.settled',
          slot: slot.id,
          value: action.value,
          basis: action.basis,
        });
      case 'unresolve':
        return this.#take(slot, { type: 'slot.unresolved', slot: slot.id, reason: action.reason });
    }
  }

  #signals(stage: 'generate' | 'grade'): FailureSignals {
    const phase = stage === 'generate' ? 'body' : 'collect';
    return failureSignals({ stage, phase, cause: this.#pick(CAUSES) ?? 'time_limit', text: 'line "1"\n' });
  }

  #state(id: string): SlotState {
    return this.#states.get(id) ?? PLANNED;
  }

  /** null when the state machine forbids it. */
  #take(slot: Slot, draft: EntryDraft): EntryDraft | null {
    const named = toSlotEvent(draft);
    if (named === null) return null;
    const result = step(this.#state(slot.id), named.event, slotRules(this.#context.protocol, slot));
    if (!result.ok) return null;
    this.#states.set(slot.id, result.state);
    return draft;
  }
}
