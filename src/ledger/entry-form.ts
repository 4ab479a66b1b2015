import { CAUSES, PHASES } from '../protocol/schema.js';

/**
 * The canonical text of an entry of one of the forms that make up nearly all of a ledger, written out member by member
 * from checked values; null for every other value. Whoever compares it with the text that the value was parsed from
 * knows form and canonical bytes at once, in a fraction of the time that schema and renderer take. Those have the last
 * word on what is not recognised here; a test holds the two together.
 */
export function commonText(entry: Readonly<Record<string, unknown>>): string | null {
  const frame = frameOf(entry);
  if (frame === null) return null;
  switch (entry.type) {
    case 'attempt.started':
      return startText(entry, frame);
    case 'stage.finished':
      return stageText(entry, frame);
    case 'attempt.finished':
      return endText(entry, frame);
    case 'slot.settled':
      return settlementText(entry, frame);
    default:
      return null;
  }
}

type Members = Readonly<Record<string, unknown>>;

/** `seq`, `prev` and `time` as they stand in the text. */
interface Frame {
  readonly prev: string;
  readonly seq: string;
  readonly time: string;
}

const PHASE_NAMES: ReadonlySet<unknown> = new Set(PHASES);
const CAUSE_NAMES: ReadonlySet<unknown> = new Set(CAUSES);
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function frameOf({ prev, seq, time }: Members): Frame | null {
  const isLeaf = typeof prev === 'string' && prev.length === 64 && isHex(prev, 0);
  if (!isCount(seq) || !(isLeaf || prev === null) || typeof time !== 'string' || !TIME.test(time))
    return null;
  return { prev: prev === null ? 'null' : `"${prev}"`, seq: String(seq), time: `"${time}"` };
}

function startText(entry: Members, { prev, seq, time }: Frame): string | null {
  const { attempt, candidate, key, kind, of, request, sampling_seed, session, slot } = entry;
  const keyText = isRecord(key) ? slotKeyText(key) : null;
  const isKind = kind === 'first' || kind === 'replacement' || kind === 'regrade';
  if (keyText === null || !isKind || !isHex32(attempt) || !isHex32(session) || !isHex32(slot)) return null;
  if (!(candidate === null || isDigest(candidate)) || !(request === null || isDigest(request))) return null;
  if (!(of === null || isHex32(of)) || !isCount(sampling_seed)) return null;
  return (
    `{"attempt":"${attempt}","candidate":${orNull(candidate)},"key":${keyText},"kind":"${kind}","of":${orNull(of)},` +
    `"prev":${prev},"request":${orNull(request)},"sampling_seed":${sampling_seed},"seq":${seq},` +
    `"session":"${session}","slot":"${slot}","time":${time},"type":"attempt.started"}`
  );
}

function slotKeyText({ arm, evaluation_seed, queue, rep, task, training_seed }: Members): string | null {
  if (typeof arm !== 'string' || typeof queue !== 'string' || typeof task !== 'string') return null;
  if (!isInteger(evaluation_seed) || !isCount(rep) || !isIntegerOrNull(training_seed)) return null;
  return (
    `{"arm":${JSON.stringify(arm)},"evaluation_seed":${evaluation_seed},"queue":${JSON.stringify(queue)},` +
    `"rep":${rep},"task":${JSON.stringify(task)},"training_seed":${training_seed}}`
  );
}

function stageText(entry: Members, { prev, seq, time }: Frame): string | null {
  const { attempt, finish_reason, objects, queue_seconds, result, seconds, slot, stage, usage } = entry;
  const resultText = isRecord(result) ? resultTextOf(result) : null;
  const objectsText = isRecord(objects) ? digestsText(objects) : null;
  const usageText = isRecord(usage) ? usageTextOf(usage) : usage === null ? 'null' : null;
  if (resultText === null || objectsText === null || usageText === null) return null;
  if (!isHex32(attempt) || !isHex32(slot) || !isSeconds(seconds) || !isSeconds(queue_seconds)) return null;
  if (stage !== 'generate' && stage !== 'grade') return null;
  if (!isStringOrNull(finish_reason)) return null;
  return (
    `{"attempt":"${attempt}","finish_reason":${JSON.stringify(finish_reason)},"objects":${objectsText},` +
    `"prev":${prev},"queue_seconds":${queue_seconds},"result":${resultText},"seconds":${seconds},"seq":${seq},` +
    `"slot":"${slot}","stage":"${stage}","time":${time},"type":"stage.finished","usage":${usageText}}`
  );
}

function resultTextOf(result: Members): string | null {
  const { candidate, kind, report, value, signals } = result;
  switch (kind) {
    case 'candidate':
      return isDigest(candidate) ? `{"candidate":"${candidate}","kind":"candidate"}` : null;
    case 'report':
      return isDigest(candidate) && isDigest(report) && isNumber(value)
        ? `{"candidate":"${candidate}","kind":"report","report":"${report}","value":${value}}`
        : null;
    case 'failure': {
      const text = isRecord(signals) ? signalsText(signals) : null;
      return text === null ? null : `{"kind":"failure","signals":${text}}`;
    }
    default:
      return null;
  }
}

function signalsText(signals: Members): string | null {
  const { cause, embedded_status, exception, exit_status, http_status } = signals;
  const { phase, service_alive, signal, stage, text } = signals;
  if (!CAUSE_NAMES.has(cause) || !PHASE_NAMES.has(phase) || (stage !== 'generate' && stage !== 'grade'))
    return null;
  if (![embedded_status, exit_status, http_status].every(isIntegerOrNull)) return null;
  if (![exception, signal, text].every(isStringOrNull)) return null;
  if (service_alive !== null && typeof service_alive !== 'boolean') return null;
  return (
    `{"cause":"${cause}","embedded_status":${embedded_status},"exception":${JSON.stringify(exception)},` +
    `"exit_status":${exit_status},"http_status":${http_status},"phase":"${phase}","service_alive":${service_alive},` +
    `"signal":${JSON.stringify(signal)},"stage":"${stage}","text":${JSON.stringify(text)}}`
  );
}

/** An object of digests by name, its names ascending. */
function digestsText(objects: Members): string | null {
  let text = '';
  let last: string | null = null;
  for (const name of Object.keys(objects)) {
    const digest = objects[name];
    if (!isDigest(digest) || name === '__proto__' || (last !== null && name <= last)) return null;
    text += `${last === null ? '' : ','}${JSON.stringify(name)}:"${digest}"`;
    last = name;
  }
  return `{${text}}`;
}

function usageTextOf({ completion_tokens, prompt_tokens }: Members): string | null {
  return isIntegerOrNull(completion_tokens) && isIntegerOrNull(prompt_tokens)
    ? `{"completion_tokens":${completion_tokens},"prompt_tokens":${prompt_tokens}}`
    : null;
}

function endText({ attempt, outcome, seconds, slot }: Members, { prev, seq, time }: Frame): string | null {
  if (!isHex32(attempt) || !isHex32(slot) || !isSeconds(seconds)) return null;
  if (outcome !== 'report' && outcome !== 'failure') return null;
  return (
    `{"attempt":"${attempt}","outcome":"${outcome}","prev":${prev},"seconds":${seconds},"seq":${seq},` +
    `"slot":"${slot}","time":${time},"type":"attempt.finished"}`
  );
}

function settlementText({ basis, slot, value }: Members, { prev, seq, time }: Frame): string | null {
  const basisText = isRecord(basis) ? basisTextOf(basis) : null;
  if (basisText === null || !isHex32(slot) || !isNumber(value)) return null;
  return (
    `{"basis":${basisText},"prev":${prev},"seq":${seq},"slot":"${slot}","time":${time},` +
    `"type":"slot.settled","value":${value}}`
  );
}

function basisTextOf({ attempt, kind, report }: Members): string | null {
  if (!isHex32(attempt)) return null;
  if (kind === 'model_failure') return `{"attempt":"${attempt}","kind":"model_failure"}`;
  return kind === 'report' && isDigest(report)
    ? `{"attempt":"${attempt}","kind":"report","report":"${report}"}`
    : null;
}

function orNull(text: unknown): string {
  return text === null ? 'null' : `"${text}"`;
}

function isRecord(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value);
}

function isSeconds(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY;
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isIntegerOrNull(value: unknown): boolean {
  return value === null || Number.isSafeInteger(value);
}

function isStringOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

function isCount(value: unknown): boolean {
  return isInteger(value) && value >= 0;
}

function isHex32(value: unknown): boolean {
  return typeof value === 'string' && value.length === 32 && isHex(value, 0);
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && value.length === 71 && value.startsWith('sha256:') && isHex(value, 7);
}

function isHex(text: string, from: number): boolean {
  for (let i = from; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (!((unit >= 0x30 && unit <= 0x39) || (unit >= 0x61 && unit <= 0x66))) return false;
  }
  return true;
}
