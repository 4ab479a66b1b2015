import { BoundbookError } from '../core/errors.js';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import { quote } from './adapters/openai-answer.js';
import { takeCanary } from './canary.js';
import { countedAttempts } from './interruptions.js';
import type { Served } from './served.js';
import { otherModels } from './service-client.js';
import { changedInUse, unanswered } from './service-faults.js';
import type { ServiceName, ServiceRecorder, StopReason } from './service-record.js';
import type { StopSwitch } from './stop.js';

export interface QuestionSetting {
  readonly runner: OpenaiRunner;
  readonly recorder: ServiceRecorder;
  readonly stop: StopSwitch;
  /** Aborts when nothing may be waited for any more. */
  readonly force: AbortSignal;
  /** What must be read again at the end of the session. */
  readonly warn: (line: string) => void;
}

/** How long a service that is of no more use may take to say that it is well. */
const FAREWELL_MS = 5000;
/** Different systems behind one start that are told of. */
const MAX_SYSTEMS = 10;

/** What a service is asked at its start and at its end, and what follows from its answers. */
export class ServiceQuestions {
  readonly #setting: QuestionSetting;
  /** The start of a service that was found to be another one. */
  #changed: string | null = null;
  /** What the answers of a start said of the system that gave them. */
  #systems: { readonly service: string; readonly seen: Set<string> } = { service: '', seen: new Set() };

  constructor(setting: QuestionSetting) {
    this.#setting = setting;
  }

  /** Nothing is attempted before the service has answered as the first one of its model did. */
  async firstCanary(service: Served, name: ServiceName): Promise<void> {
    const { runner, recorder, stop } = this.#setting;
    const { canary } = runner.service;
    if (canary === undefined) return;
    const taken = await takeCanary(service.pool, runner, canary, name.model, stop.abandoned);
    if (!taken.ok && stop.abandoned.aborted)
      throw new BoundbookError('STOPPED', 'stopped while a service was asked its canary');
    if (!taken.ok) throw unanswered(name, taken.reason);
    const { verdict, largest_logprob_difference: largest } = await recorder.canary(name, 'start', taken);
    if (verdict !== 'differs') return;
    throw new BoundbookError(
      'SERVICE_CHANGED',
      `the service ${name.service} answers the canary otherwise than the first service of ${name.model} did`,
      {
        hint: 'Weights, settings, version or hardware differ from those of the attempts that are in the ledger. Bring the service back to what it was, or amend the plan.',
        evidence: { service: name.service, largest_logprob_difference: largest },
      },
    );
  }

  /** Asks a service that is of no more use once more. @returns why it is ended */
  async farewell(service: Served, name: ServiceName, reason: StopReason): Promise<StopReason> {
    const { runner, recorder, force } = this.#setting;
    if (reason !== 'done' && reason !== 'run_ended') return reason;
    const died = () => (service.diedByItself ? 'died' : 'unresponsive');
    if (!(await service.isAlive(0))) return died();
    if (force.aborted) return 'run_ended';
    if (!(await service.answers(runner.service.ready.path, FAREWELL_MS, force)))
      return force.aborted ? 'run_ended' : died();
    const description = await service.describe(force);
    const changed = await recorder.atEnd(name, service, description);
    if (changed.length > 0) this.warnOfChanges(name, 'at its end than at its start', changed);
    const others = otherModels(description, name.model);
    if (others !== null) {
      this.#stop(name, `the service ${name.service} serves ${others} at its end, no more ${name.model}`);
    }
    const { canary } = runner.service;
    if (canary === undefined) return reason;
    const taken = await takeCanary(service.pool, runner, canary, name.model, force);
    if (!taken.ok && taken.otherModel !== null) {
      this.#stop(name, `${name.service} answered the canary at its end as ${quote(taken.otherModel)}`);
      return 'run_ended';
    }
    if (!taken.ok) {
      this.#setting.warn(`${name.service} has no canary at its end: ${taken.reason}`);
      return force.aborted ? 'run_ended' : died();
    }
    const last = recorder.lastCheck(name);
    const { verdict } = await recorder.canary(name, 'end', taken);
    if (verdict === 'differs') {
      this.#stop(name, `${name.service} answered the canary otherwise at its end than the reference`, last);
    }
    return reason;
  }

  /** An attempt's answer named another model. */
  answeredAs(name: ServiceName, said: string): void {
    this.#stop(name, `an answer of ${name.service} is from ${quote(said)}`);
  }

  /** Said once for each system behind one start: it may be another build, another host or another configuration. */
  answeredFrom({ service }: ServiceName, fingerprints: readonly string[]): void {
    if (this.#systems.service !== service) this.#systems = { service, seen: new Set() };
    const { seen } = this.#systems;
    for (const fingerprint of fingerprints) {
      if (seen.has(fingerprint) || seen.size >= MAX_SYSTEMS) continue;
      if (seen.size > 0) {
        const [first = ''] = seen;
        this.#setting.warn(
          `answers of ${service} are from more than one system (system_fingerprint): first ${quote(first)}, now ${quote(fingerprint)}`,
        );
      }
      seen.add(fingerprint);
    }
  }

  /** Nothing more is started: what was answered since the service was last found sound may be another model's. */
  #stop(name: ServiceName, finding: string, last = this.#setting.recorder.lastCheck(name)): void {
    if (this.#changed === name.service) return;
    this.#changed = name.service;
    const { since, attempts } = last;
    const detail = `${finding}: ${countedAttempts(attempts)} started since entry ${since}, its last good check, may have met another model, other weights or settings`;
    this.#setting.warn(detail);
    const error = changedInUse(name, detail);
    this.#setting.stop.request({ reason: 'service_changed', detail, error }, null);
  }

  /** @param than in comparison with what */
  warnOfChanges({ service }: ServiceName, than: string, changed: readonly string[]): void {
    const shown = changed.slice(0, 3).join(', ');
    this.#setting.warn(
      `${service} describes itself otherwise ${than}: ${shown}${changed.length > 3 ? ' …' : ''}`,
    );
  }
}
