import { gateError } from '../gate/refusal.js';
import { type Admission, type GateOptions, inspectModel } from './admission.js';
import type { Announcer } from './announcer.js';
import type { BindingsWatch } from './bindings-watch.js';
import type { Journal } from './journal.js';
import { ServiceKeeper } from './service-keeper.js';
import { ServiceRecorder } from './service-record.js';
import type { StopSwitch } from './stop.js';
import type { Workshop } from './workshop.js';

export interface SessionServicesSetting {
  readonly workshop: Extract<Workshop, { kind: 'openai' }>;
  readonly admission: Admission;
  /** Under which a model's files are hashed again before its service is started again. */
  readonly gate: GateOptions;
  readonly journal: Journal;
  readonly stop: StopSwitch;
  readonly force: AbortSignal;
  readonly watch: BindingsWatch;
  readonly announcer: Announcer;
}

/** Whoever keeps the services of a session up, as the protocol says. */
export function sessionServices(setting: SessionServicesSetting): ServiceKeeper {
  const { workshop, admission, gate, journal, stop, force, watch, announcer } = setting;
  const { book, session } = admission;
  const { runner, adapter, launch } = workshop;
  const { service } = runner;
  const isExternal = 'external' in service;
  return new ServiceKeeper({
    adapter,
    runner,
    session,
    recorder: new ServiceRecorder(journal, book.context.protocol, runner),
    stop,
    force,
    restarts: isExternal ? 0 : service.restarts,
    maxUp: isExternal ? Number.POSITIVE_INFINITY : (service.max_up ?? 1),
    progress: (line) => announcer.say(line),
    warn: (line) => announcer.warn(line),
    verify: async (model) => {
      const inspection = await inspectModel(book.manifest, model, gate);
      if (inspection.mismatches.length > 0) throw gateError('the manifest', inspection.mismatches);
    },
    beforeStart: () => watch.look(),
    launch,
  });
}
