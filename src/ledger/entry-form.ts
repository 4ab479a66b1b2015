import { CAUSES, PHASES } from '../protocol/schema.js';

/**
 * A quick check of the forms that make up nearly all of a ledger. It says yes only to what the schema in `entries.ts`
 * accepts; whatever it does not recognise is left to the schema, which also says what is wrong. A test holds the two
 * together.
 *
 * @param entry an entry with its frame `seq`, `prev` and `time`, whose values are checked elsewhere
 */
export function hasCommonForm(entry: Readonly<Record<string, unknown>>): boolean {
  switch (entry.type) {
    case 'attempt.started':
      return isStart(entry);
    case 'stage.finished':
      return isStageEnd(entry);
    case 'attempt.finished':
      return (
        isHex32(entry.attempt) &&
        isHex32(entry.slot) &&
        (entry.outcome === 'report' || entry.outcome === 'failure') &&
        isSeconds(entry.seconds) &&
        hasEntryMembers(entry, 5)
      );
    case 'slot.settled':
      return (
        isHex32(entry.slot) && isNumber(entry.value) && isBasis(entry.basis) && hasEntryMembers(entry, 4)
      );
    default:
      return false;
  }
}

type Members = Readonly<Record<string, unknown>>;

/** `seq`, `prev`, `time` */
const FRAME_MEMBERS = 3;

const PHASE_NAMES: ReadonlySet<unknown> = new Set(PHASES);
const CAUSE_NAMES: ReadonlySet<unknown> = new Set(CAUSES);

function isStart(entry: Members): boolean {
  const { key, kind } = entry;
  return (
    isHex32(entry.session) &&
    isHex32(entry.attempt) &&
    isHex32(entry.slot) &&
    (kind === 'first' || kind === 'replacement' || kind === 'regrade') &&
    (entry.of === null || isHex32(entry.of)) &&
    isCount(entry.sampling_seed) &&
    (entry.candidate === null || isDigest(entry.candidate)) &&
    (entry.request === null || isDigest(entry.request)) &&
    isRecord(key) &&
    typeof key.queue === 'string' &&
    typeof key.arm === 'string' &&
    (key.training_seed === null || Number.isSafeInteger(key.training_seed)) &&
    Number.isSafeInteger(key.evaluation_seed) &&
    typeof key.task === 'string' &&
    isCount(key.rep) &&
    hasMembers(key, 6) &&
    hasEntryMembers(entry, 10)
  );
}

function isStageEnd(entry: Members): boolean {
  const { finish_reason, objects, result, stage, usage } = entry;
  return (
    isHex32(entry.attempt) &&
    isHex32(entry.slot) &&
    (stage === 'generate' || stage === 'grade') &&
    isRecord(result) &&
    isResult(result) &&
    isRecord(objects) &&
    Object.entries(objects).every(([name, digest]) => name !== '__proto__' && isDigest(digest)) &&
    (usage === null || (isRecord(usage) && isUsage(usage))) &&
    (finish_reason === null || typeof finish_reason === 'string') &&
    isSeconds(entry.seconds) &&
    isSeconds(entry.queue_seconds) &&
    hasEntryMembers(entry, 10)
  );
}

function isResult(result: Members): boolean {
  switch (result.kind) {
    case 'candidate':
      return isDigest(result.candidate) && hasMembers(result, 2);
    case 'report':
      return (
        isDigest(result.candidate) &&
        isDigest(result.report) &&
        isNumber(result.value) &&
        hasMembers(result, 4)
      );
    case 'failure':
      return isRecord(result.signals) && isSignals(result.signals) && hasMembers(result, 2);
    default:
      return false;
  }
}

function isSignals(signals: Members): boolean {
  const { stage, exit_status, http_status, embedded_status, exception, service_alive, signal, text } =
    signals;
  return (
    (stage === 'generate' || stage === 'grade') &&
    PHASE_NAMES.has(signals.phase) &&
    CAUSE_NAMES.has(signals.cause) &&
    [http_status, embedded_status, exit_status].every((n) => n === null || Number.isSafeInteger(n)) &&
    [signal, exception, text].every((s) => s === null || typeof s === 'string') &&
    (service_alive === null || typeof service_alive === 'boolean') &&
    hasMembers(signals, 10)
  );
}

function isUsage({ prompt_tokens, completion_tokens, ...rest }: Members): boolean {
  return (
    (prompt_tokens === null || Number.isSafeInteger(prompt_tokens)) &&
    (completion_tokens === null || Number.isSafeInteger(completion_tokens)) &&
    hasMembers(rest, 0)
  );
}

function isBasis(basis: unknown): boolean {
  if (!isRecord(basis) || !isHex32(basis.attempt)) return false;
  if (basis.kind === 'report') return isDigest(basis.report) && hasMembers(basis, 3);
  return basis.kind === 'model_failure' && hasMembers(basis, 2);
}

function isRecord(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasEntryMembers(entry: Members, count: number): boolean {
  return hasMembers(entry, count + FRAME_MEMBERS);
}

/** With every member checked by name, their number leaves no room for another. */
function hasMembers(value: Members, count: number): boolean {
  return Object.keys(value).length === count;
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value);
}

function isSeconds(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
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
