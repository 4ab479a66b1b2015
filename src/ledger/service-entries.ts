import type { Violation } from '../attempts/violation.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { EntryOf } from './entries/entry.js';
import type { ServiceMarks } from './service-marks.js';
import type { ServiceRecord, SessionBook } from './sessions.js';

/** The books by which it is judged what a service may do. */
export interface ServiceSetting {
  readonly protocol: Protocol;
  readonly sessions: SessionBook;
  readonly services: ServiceMarks;
}

export function serviceUp(
  entry: EntryOf<'service.started' | 'service.attached'>,
  { protocol, sessions, services }: ServiceSetting,
): Violation | null {
  const violation = kindFault(entry, protocol) ?? sessions.startService(entry);
  if (violation === null) services.up(entry);
  return violation;
}

/** What a service that is up says, or how it answers. */
export function serviceSpoke(
  entry: EntryOf<'service.described' | 'canary.recorded'>,
  { protocol, sessions, services }: ServiceSetting,
): Violation | null {
  const { runner } = protocol;
  const record = sessions.service(entry);
  if ('clause' in record) return record;
  if (runner.adapter !== 'openai') return { clause: 'law 1', message: 'a command has no service' };
  const violation =
    entry.type === 'service.described'
      ? services.describe(entry, record)
      : services.recordCanary(entry, record, runner.service);
  if (violation === null) sessions.touch(entry.session, entry);
  return violation;
}

export function serviceDown(
  entry: EntryOf<'service.stopped'>,
  { protocol, sessions }: ServiceSetting,
): Violation | null {
  const record = sessions.get(entry.session)?.services.get(entry.service);
  const fault = record === undefined ? null : farewellFault(entry, record, protocol);
  return sessions.stopService(entry) ?? fault ?? otherDevices(entry, protocol);
}

/** P10: which kind of service the plan accepts. */
function kindFault(
  entry: EntryOf<'service.started' | 'service.attached'>,
  { runner }: Protocol,
): Violation | null {
  if (runner.adapter !== 'openai') return null;
  const external = 'external' in runner.service ? runner.service.external : null;
  if (entry.type === 'service.started')
    return external === null ? null : forbid('the plan names a service that the gate does not start');
  if (external === null) return forbid('the plan accepts no service that the gate did not start');
  const due = typeof external.origin === 'string' ? external.origin : external.origin[entry.model];
  return entry.origin === due
    ? null
    : forbid(`the plan names ${due ?? 'no address'}, it is at ${entry.origin}`);
}

/** A service that is done has answered the canary once more. */
function farewellFault(
  { reason }: EntryOf<'service.stopped'>,
  record: ServiceRecord,
  { runner }: Protocol,
): Violation | null {
  if (runner.adapter !== 'openai' || runner.service.canary === undefined) return null;
  return reason === 'done' && record.up !== null && record.canaries.end === null
    ? forbid('the service was done, and there is no canary at its end')
    : null;
}

/** P21: what a service held is declared, and not for its end to say. */
function otherDevices({ gpus }: EntryOf<'service.stopped'>, { runner }: Protocol): Violation | null {
  if (runner.adapter !== 'openai' || gpus === runner.service.gpus) return null;
  const message = `the service held ${gpus} GPUs, and ${runner.service.gpus} are declared`;
  return { clause: 'P21', message };
}

function forbid(message: string): Violation {
  return { clause: 'P10', message };
}
