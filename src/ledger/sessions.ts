import type { Violation } from '../attempts/violation.js';
import type { Digest } from '../core/digest.js';
import type { Entry, EntryOf } from './entries/entry.js';

/** One service process that a session started. */
export interface ServiceRecord {
  readonly name: string;
  readonly model: string;
  readonly startedAt: string;
  /** From spawn to ready. */
  readonly readySeconds: number;
  /** From spawn to end; null while it runs, or when the session died before it could say. */
  stoppedSeconds: number | null;
  gpus: number | null;
  /** The entry by which it was up, and what it said of itself; null when it never was. */
  readonly up: { readonly seq: number; readonly object: Digest | null } | null;
  /** How it answered the canary. */
  readonly canaries: { start: CanaryVerdict | null; end: CanaryVerdict | null };
  /** Off-time of the session before it was started. */
  readonly offBefore: number;
}

export type CanaryVerdict = EntryOf<'canary.recorded'>['verdict'];

/** One passage of the gate and what was executed under it. */
export interface Session {
  readonly id: string;
  readonly seq: number;
  readonly startedAt: string;
  /** Time of the last entry known to be the session's: nothing after it is counted as work (B8). */
  lastAt: string;
  /** Seconds between its first and last entry in which it gave no sign of life, although one was due (B8). */
  offSeconds: number;
  /** A sign of life is due after so many seconds without an entry; null where none was promised. */
  readonly heartbeat: number | null;
  readonly process: EntryOf<'gate.passed'>['process'];
  readonly host: EntryOf<'gate.passed'>['host'];
  readonly selection: EntryOf<'gate.passed'>['selection'];
  /** Why it ended; null while it runs, or when its process died. */
  end: {
    readonly seq: number;
    readonly reason: EntryOf<'run.paused'>['reason'];
    readonly detail: string | null;
  } | null;
  readonly services: Map<string, ServiceRecord>;
}

/** A session as plain data. */
export type SessionSnapshot = Omit<Session, 'services'> & { readonly services: readonly ServiceRecord[] };

/** The end of a session that was not its own decision. */
export interface Deviation {
  readonly seq: number;
  readonly session: string;
  readonly reason: EntryOf<'run.paused'>['reason'];
  readonly detail: string | null;
}

const PLANNED_ENDS: ReadonlySet<string> = new Set(['finished', 'limit', 'signal']);

/** One member for each field of a {@link SessionBook}. */
export interface SessionBookSnapshot {
  readonly sessions: readonly SessionSnapshot[];
}

/** Keeps the sessions of a ledger, and what is lawful for them. */
export class SessionBook {
  readonly #sessions = new Map<string, Session>();

  get(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  all(): IterableIterator<Session> {
    return this.#sessions.values();
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Ends of sessions that were not their own decision, in the order of the ledger. */
  get deviations(): readonly Deviation[] {
    return [...this.#sessions.values()]
      .flatMap(({ id, end }) =>
        end === null || PLANNED_ENDS.has(end.reason)
          ? []
          : [{ seq: end.seq, session: id, reason: end.reason, detail: end.detail }],
      )
      .sort((a, b) => a.seq - b.seq);
  }

  /** Shares what it holds with the book: to be written down before the next entry is taken. */
  snapshot(): SessionBookSnapshot {
    return {
      sessions: [...this.#sessions.values()].map((session) => ({
        ...session,
        services: [...session.services.values()],
      })),
    };
  }

  /** Puts an empty book into the state of another one. */
  restore({ sessions }: SessionBookSnapshot): void {
    for (const { services, ...session } of sessions) {
      this.#sessions.set(session.id, {
        ...session,
        services: new Map(services.map((service) => [service.name, service])),
      });
    }
  }

  open(entry: EntryOf<'gate.passed'>): Violation | null {
    if (this.#sessions.has(entry.session)) return forbid(`session ${entry.session} passed the gate before`);
    const { session: id, seq, time, process, host, selection, heartbeat_s: heartbeat = null } = entry;
    const session = {
      id,
      seq,
      startedAt: time,
      lastAt: time,
      offSeconds: 0,
      heartbeat,
      process,
      host,
      selection,
      end: null,
      services: new Map(),
    };
    this.#sessions.set(id, session);
    return null;
  }

  /** Whether a session may start something now. */
  mayStart(id: string): Violation | null {
    const session = this.#sessions.get(id);
    if (session === undefined) return forbid(`session ${id} never passed the gate`);
    return session.end === null ? null : forbid(`session ${id} ended before (${session.end.reason})`);
  }

  touch(id: string | null, entry: Entry): void {
    const session = id === null ? undefined : this.#sessions.get(id);
    if (session !== undefined) advance(session, entry.time);
  }

  /** A sign of life: nothing happened since the last entry, and the session was at work all the same. */
  alive(entry: EntryOf<'session.alive'>): Violation | null {
    const violation = this.mayStart(entry.session);
    if (violation === null) this.touch(entry.session, entry);
    return violation;
  }

  pause(entry: EntryOf<'run.paused'>): Violation | null {
    const violation = this.mayStart(entry.session);
    const session = this.#sessions.get(entry.session);
    if (violation !== null || session === undefined) return violation;
    session.end = { seq: entry.seq, reason: entry.reason, detail: entry.detail };
    advance(session, entry.time);
    return null;
  }

  startService(entry: EntryOf<'service.started' | 'service.attached'>): Violation | null {
    const violation = this.mayStart(entry.session);
    const session = this.#sessions.get(entry.session);
    if (violation !== null || session === undefined) return violation;
    if (session.services.has(entry.service)) return forbid(`service ${entry.service} was started before`);
    advance(session, entry.time);
    session.services.set(entry.service, {
      name: entry.service,
      model: entry.model,
      startedAt: entry.time,
      readySeconds: entry.seconds,
      stoppedSeconds: null,
      gpus: null,
      up: { seq: entry.seq, object: entry.effective },
      canaries: { start: null, end: null },
      offBefore: session.offSeconds,
    });
    return null;
  }

  /** The service of an open session that an entry speaks of, while it is up. */
  service(entry: EntryOf<'service.described' | 'canary.recorded'>): ServiceRecord | Violation {
    const violation = this.mayStart(entry.session);
    if (violation !== null) return violation;
    const record = this.#sessions.get(entry.session)?.services.get(entry.service);
    if (record === undefined || record.up === null || record.model !== entry.model)
      return forbid(`service ${entry.service} of ${entry.model} was not started`);
    return record.stoppedSeconds === null ? record : forbid(`service ${entry.service} was stopped before`);
  }

  /** A service may stop after its session's end; it is the last thing that a session does. */
  stopService(entry: EntryOf<'service.stopped'>): Violation | null {
    const session = this.#sessions.get(entry.session);
    if (session === undefined) return forbid(`session ${entry.session} never passed the gate`);
    // A service that never became ready stops without having been started for the book.
    const service = session.services.get(entry.service) ?? {
      name: entry.service,
      model: entry.model,
      startedAt: entry.time,
      readySeconds: entry.seconds,
      stoppedSeconds: null,
      gpus: null,
      up: null,
      canaries: { start: null, end: null },
      offBefore: session.offSeconds,
    };
    if (service.stoppedSeconds !== null) return forbid(`service ${entry.service} was stopped before`);
    service.stoppedSeconds = entry.seconds;
    service.gpus = entry.gpus;
    session.services.set(entry.service, service);
    advance(session, entry.time);
    return null;
  }
}

/** How many heartbeats may stay out before the time without them counts as off. */
const MISSED_BEATS = 3;

function advance(session: Session, time: string): void {
  const gap = secondsBetween(session.lastAt, time);
  if (session.heartbeat !== null && gap > MISSED_BEATS * session.heartbeat) session.offSeconds += gap;
  session.lastAt = time;
}

/**
 * Seconds that a session was at work: from the gate to its last entry. Off-time is not in it: neither what came after a
 * crash nor a time, longer than three heartbeats, in which it gave no sign of life, as on a host that slept (B8).
 */
export function sessionSeconds(session: Session): number {
  return secondsBetween(session.startedAt, session.lastAt) - session.offSeconds;
}

/**
 * Seconds that a service held its devices. Its own end says them, by a clock that stands still while the host sleeps;
 * without a recorded end they go up to the last entry of its session, off-time left out.
 */
export function serviceSeconds(session: Session, service: ServiceRecord): number {
  const upToLast =
    secondsBetween(service.startedAt, session.lastAt) - (session.offSeconds - service.offBefore);
  return service.stoppedSeconds ?? service.readySeconds + upToLast;
}

function secondsBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from)) / 1000;
}

function forbid(message: string): Violation {
  return { clause: 'law 1', message };
}
