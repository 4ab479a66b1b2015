import type { Digest } from '../core/digest.js';
import type { Entry, EntryOf } from './entries/entry.js';

/**
 * The texts of the entries that make up nearly all of a ledger, as regular expressions: canonical JSON has one spelling,
 * so that one match of the text knows form and canonical bytes at once and gives the members, many times faster than
 * parser, schema and renderer. What is not recognised here (escapes in strings, failures, rare types) is left to those,
 * which have the last word; a test holds the two together.
 */

const HEX32 = '"([0-9a-f]{32})"';
const DIGEST = '"(sha256:[0-9a-f]{64})"';
const PREV = '(?:null|"([0-9a-f]{64})")';
const TIME = '"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z)"';
/** Few enough digits to be exact. */
const COUNT = '(0|[1-9][0-9]{0,14})';
const INTEGER = '(0|-?[1-9][0-9]{0,14})';
/** That it is the shortest spelling is checked apart. */
const NUMBER = '(-?[0-9][0-9.e+-]*)';
const SECONDS = '([0-9][0-9.e+-]*)';
/** Without escapes, a string is spelled as it is. */
const STRING = '"([^"\\\\\\u0000-\\u001f]*)"';

const orNull = (pattern: string): string => `(?:null|${pattern})`;
const whole = (pattern: string): RegExp => new RegExp(`^${pattern}$`);

const KEY =
  `\\{"arm":${STRING},"evaluation_seed":${INTEGER},"queue":${STRING},"rep":${COUNT},"task":${STRING},` +
  `"training_seed":${orNull(INTEGER)}\\}`;
const RESULT = `\\{"candidate":${DIGEST},"kind":(?:"candidate"|"report","report":${DIGEST},"value":${NUMBER})\\}`;
const OBJECTS = `\\{(?:"([a-z][a-z_]*)":${DIGEST})?\\}`;
const USAGE = `(\\{"completion_tokens":${orNull(INTEGER)},"prompt_tokens":${orNull(INTEGER)}\\})`;
const BASIS = `\\{"attempt":${HEX32},"kind":(?:"model_failure"|"report","report":${DIGEST})\\}`;

const STARTED = whole(
  `\\{"attempt":${HEX32},"candidate":${orNull(DIGEST)},"key":${KEY},"kind":"(first|replacement|regrade)",` +
    `"of":${orNull(HEX32)},"prev":${PREV},"request":${orNull(DIGEST)},"sampling_seed":${COUNT},"seq":${COUNT},` +
    `"session":${HEX32},"slot":${HEX32},"time":${TIME},"type":"attempt\\.started"\\}`,
);
const STAGE = whole(
  `\\{"attempt":${HEX32},"finish_reason":${orNull(STRING)},(?:"first_token_seconds":${SECONDS},)?"objects":${OBJECTS},` +
    `"prev":${PREV},` +
    `"queue_seconds":${SECONDS},"result":${RESULT},"seconds":${SECONDS},"seq":${COUNT},"slot":${HEX32},` +
    `"stage":"(generate|grade)","time":${TIME},"type":"stage\\.finished","usage":${orNull(USAGE)}\\}`,
);
const FINISHED = whole(
  `\\{"attempt":${HEX32},"outcome":"(report|failure)","prev":${PREV},"seconds":${SECONDS},"seq":${COUNT},` +
    `"slot":${HEX32},"time":${TIME},"type":"attempt\\.finished"\\}`,
);
const SETTLED = whole(
  `\\{"basis":${BASIS},"prev":${PREV},"seq":${COUNT},"slot":${HEX32},"time":${TIME},"type":"slot\\.settled",` +
    `"value":${NUMBER}\\}`,
);

/** Where the second member's name begins when the first is an attempt. */
const SECOND_NAME = '{"attempt":"'.length + 32 + '","'.length;

/** The entry of a text that is its canonical JSON, when it is of one of the common forms; null says nothing. */
export function readCommonEntry(text: string): Entry | null {
  if (text.startsWith('{"basis"')) return readSettled(text);
  switch (text.charAt(SECOND_NAME)) {
    case 'c':
      return readStarted(text);
    case 'f':
      return readStage(text);
    case 'o':
      return readFinished(text);
    default:
      return null;
  }
}

type Parts = readonly [text: string, ...members: (string | undefined)[]];

function readStarted(text: string): EntryOf<'attempt.started'> | null {
  const match = STARTED.exec(text) as Parts | null;
  if (match === null) return null;
  const [
    ,
    attempt = '',
    candidate,
    arm = '',
    evaluation,
    queue = '',
    rep,
    task = '',
    training,
    kind,
    ...rest
  ] = match;
  const [of = null, prev = null, request, sampling, seq, session = '', slot = '', time = ''] = rest;
  return {
    attempt,
    candidate: toDigestOrNull(candidate),
    key: {
      arm,
      evaluation_seed: Number(evaluation),
      queue,
      rep: Number(rep),
      task,
      training_seed: toNumberOrNull(training),
    },
    kind: kind as EntryOf<'attempt.started'>['kind'],
    of,
    prev,
    request: toDigestOrNull(request),
    sampling_seed: Number(sampling),
    seq: Number(seq),
    session,
    slot,
    time,
    type: 'attempt.started',
  };
}

function readStage(text: string): EntryOf<'stage.finished'> | null {
  const match = STAGE.exec(text) as Parts | null;
  if (match === null) return null;
  const [
    ,
    attempt = '',
    reason = null,
    first,
    name,
    object,
    prev = null,
    queued,
    candidate,
    report,
    ...rest
  ] = match;
  const [value, seconds, seq, slot = '', stage, time = '', usage, completion, prompt] = rest;
  if (![queued, seconds, value, first].every(isShortest)) return null;
  return {
    attempt,
    finish_reason: reason,
    ...(first === undefined ? {} : { first_token_seconds: Number(first) }),
    objects: name === undefined ? {} : { [name]: object as Digest },
    prev,
    queue_seconds: Number(queued),
    result:
      report === undefined
        ? { candidate: candidate as Digest, kind: 'candidate' }
        : { candidate: candidate as Digest, kind: 'report', report: report as Digest, value: Number(value) },
    seconds: Number(seconds),
    seq: Number(seq),
    slot,
    stage: stage as EntryOf<'stage.finished'>['stage'],
    time,
    type: 'stage.finished',
    usage:
      usage === undefined
        ? null
        : { completion_tokens: toNumberOrNull(completion), prompt_tokens: toNumberOrNull(prompt) },
  };
}

function readFinished(text: string): EntryOf<'attempt.finished'> | null {
  const match = FINISHED.exec(text) as Parts | null;
  if (match === null) return null;
  const [, attempt = '', outcome, prev = null, seconds, seq, slot = '', time = ''] = match;
  if (!isShortest(seconds)) return null;
  return {
    attempt,
    outcome: outcome as EntryOf<'attempt.finished'>['outcome'],
    prev,
    seconds: Number(seconds),
    seq: Number(seq),
    slot,
    time,
    type: 'attempt.finished',
  };
}

function readSettled(text: string): EntryOf<'slot.settled'> | null {
  const match = SETTLED.exec(text) as Parts | null;
  if (match === null) return null;
  const [, attempt = '', report, prev = null, seq, slot = '', time = '', value] = match;
  if (!isShortest(value)) return null;
  return {
    basis:
      report === undefined
        ? { attempt, kind: 'model_failure' }
        : { attempt, kind: 'report', report: report as Digest },
    prev,
    seq: Number(seq),
    slot,
    time,
    type: 'slot.settled',
    value: Number(value),
  };
}

function toDigestOrNull(text: string | undefined): Digest | null {
  return text === undefined ? null : (text as Digest);
}

function toNumberOrNull(text: string | undefined): number | null {
  return text === undefined ? null : Number(text);
}

/** Whether a number is spelled as JSON spells it; one that is not there is. */
function isShortest(text: string | undefined): boolean {
  if (text === undefined || text === '0' || text === '1') return true;
  const value = Number(text);
  return Number.isFinite(value) && String(value) === text;
}
