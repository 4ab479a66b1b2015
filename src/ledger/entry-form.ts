/**
 * The texts of the entries that make up nearly all of a ledger, as regular expressions: canonical JSON has one spelling,
 * so that one test of the text knows form and canonical bytes at once, many times faster than schema and renderer. What
 * is not recognised here (escapes in strings, failures, rare types) is left to those, which have the last word; a test
 * holds the two together.
 */

const HEX32 = '"[0-9a-f]{32}"';
const DIGEST = '"sha256:[0-9a-f]{64}"';
const PREV = '(?:null|"[0-9a-f]{64}")';
const TIME = '"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"';
/** Few enough digits to be exact. */
const COUNT = '(?:0|[1-9][0-9]{0,14})';
const INTEGER = '(?:0|-?[1-9][0-9]{0,14})';
/** Captured: that it is the shortest spelling is checked apart. */
const NUMBER = '(-?[0-9][0-9.e+-]*)';
const SECONDS = '([0-9][0-9.e+-]*)';
/** Without escapes, a string is spelled as it is. */
const STRING = '"[^"\\\\\\u0000-\\u001f]*"';

const orNull = (pattern: string): string => `(?:null|${pattern})`;

const KEY =
  `\\{"arm":${STRING},"evaluation_seed":${INTEGER},"queue":${STRING},"rep":${COUNT},"task":${STRING},` +
  `"training_seed":${orNull(INTEGER)}\\}`;
const RESULT = `\\{"candidate":${DIGEST},"kind":(?:"candidate"|"report","report":${DIGEST},"value":${NUMBER})\\}`;
const OBJECTS = `\\{(?:"[a-z][a-z_]*":${DIGEST})?\\}`;
const USAGE = `\\{"completion_tokens":${orNull(INTEGER)},"prompt_tokens":${orNull(INTEGER)}\\}`;
const BASIS = `\\{"attempt":${HEX32},"kind":(?:"model_failure"|"report","report":${DIGEST})\\}`;

const FORMS: readonly RegExp[] = [
  `\\{"attempt":${HEX32},"candidate":${orNull(DIGEST)},"key":${KEY},"kind":"(?:first|replacement|regrade)",` +
    `"of":${orNull(HEX32)},"prev":${PREV},"request":${orNull(DIGEST)},"sampling_seed":${COUNT},"seq":${COUNT},` +
    `"session":${HEX32},"slot":${HEX32},"time":${TIME},"type":"attempt\\.started"\\}`,
  `\\{"attempt":${HEX32},"finish_reason":${orNull(STRING)},"objects":${OBJECTS},"prev":${PREV},` +
    `"queue_seconds":${SECONDS},"result":${RESULT},"seconds":${SECONDS},"seq":${COUNT},"slot":${HEX32},` +
    `"stage":"(?:generate|grade)","time":${TIME},"type":"stage\\.finished","usage":${orNull(USAGE)}\\}`,
  `\\{"attempt":${HEX32},"outcome":"(?:report|failure)","prev":${PREV},"seconds":${SECONDS},"seq":${COUNT},` +
    `"slot":${HEX32},"time":${TIME},"type":"attempt\\.finished"\\}`,
  `\\{"basis":${BASIS},"prev":${PREV},"seq":${COUNT},"slot":${HEX32},"time":${TIME},"type":"slot\\.settled",` +
    `"value":${NUMBER}\\}`,
].map((pattern) => new RegExp(`^${pattern}$`));

/** Whether a text is the canonical JSON of an entry of one of the common forms; false says nothing. */
export function isCommonEntry(text: string): boolean {
  for (const form of FORMS) {
    const match = form.exec(text);
    if (match !== null) return match.every((part, i) => i === 0 || part === undefined || isShortest(part));
  }
  return false;
}

/** Whether a number is spelled as JSON spells it. */
function isShortest(text: string): boolean {
  const value = Number(text);
  return Number.isFinite(value) && String(value) === text;
}
