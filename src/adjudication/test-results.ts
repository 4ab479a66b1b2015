import { LINE_ENDS, TABS } from './escapes.js';
import { PLACEHOLDERS } from './placeholders.js';

/**
 * What test programs say of tests: lines of single tests and summaries, of pytest, unittest, TAP, JUnit, Maven, Gradle, .NET, PHPUnit,
 * Go, Cargo, Jest, Vitest, Mocha, RSpec, GoogleTest and CTest. It works on text whose escapes are folded.
 */

const R = PLACEHOLDERS.reward;
const BLANK = `[ ${TABS}]`;
/** Where a line begins: also in a string, behind the bracket of a log level or the bar of a log's source. */
const START = `(?<start>(?:^|[${LINE_ENDS}"'|\\]])${BLANK}*)`;
const END = `(?=${BLANK}*(?:$|[${LINE_ENDS}"'\\\\]))`;
/** Begin of a word, also behind an escape. */
const WORD = '(?<![\\p{L}\\p{N}_])';

const NUMBER = '\\d+(?:/\\d+| of \\d+)?%?';
const NOUN = '(?:tests?|examples?|specs?|assertions?|test cases?|runs?|suites?|test suites?|test files?)';
const OUTCOME =
  '(?:passed|failed|failures?|failing|passing|errors?|errored|skipped|skips|xfailed|xpassed|ignored|measured|filtered out|pending|todo|deselected|warnings?|total)';
const ITEM = `${NUMBER}[ ]+(?:${NOUN}[ ]+)?(?:completed|run\\b|${OUTCOME})(?![\\p{L}\\p{N}_])|${NUMBER}[ ]+${NOUN}(?=[,;])`;
const QUANTITY = '(?:(?:all|some|none|no|any)[ ]+(?:of[ ]+)?(?:the[ ]+|your[ ]+)?)?';
const COUNTS = new RegExp(
  `(?<![\\p{L}\\p{N}_.:-])${QUANTITY}(?:${ITEM})(?:[ ]*(?:,|;|\\||and)[ ]*(?:and[ ]+)?(?:${ITEM}))*`,
  'giu',
);
const DECIDES = /passed|failed|failure|failing|passing/i;
/** What may stand behind a summary; behind other words it is a sentence. */
const CLAUSE_END = new RegExp(
  `^(?:${BLANK}*(?:$|[,;.:!)\\](=<|"'\\\\${LINE_ENDS}-])|[ ]+(?:in[ ]+[\\d.]+|out of\\b|with[ ]+\\d))`,
  'u',
);
const PHRASE = new RegExp(
  `${WORD}(?:not[ ]+)?${QUANTITY}(?:unit[ ]+)?(?:tests?|specs?|assertions?|test cases?)[ ]+(?:have[ ]+|has[ ]+|were[ ]+|are[ ]+)?(?:passed|failed|passing|failing|succeeded|successful)(?![\\p{L}\\p{N}_])`,
  'giu',
);

type Rule = readonly [pattern: RegExp, replacement: string];

const STATUS = '(?:PASSED|FAILED|PASS|FAIL|ERROR|SKIPPED|XFAIL|XPASS)';
/** The begin of a test's name, not the end of another word. */
const TEST = '(?:(?<![A-Za-z])test|(?<![A-Z])Test|(?<![A-Za-z])TEST)';

const RULES: readonly Rule[] = (
  [
    // pytest, and whatever prints a test's name beside a word in capitals
    [`(::[^\\s"]{1,300}${BLANK}+)${STATUS}(?![\\p{L}\\p{N}_])`, `$1${R}`],
    [
      `(${TEST}[^\\s"]{1,300}${BLANK}+(?:\\.{2,}${BLANK}*|[-:]${BLANK}+)?)${STATUS}(?![\\p{L}\\p{N}_])`,
      `$1${R}`,
    ],
    [`${WORD}${STATUS}(?=${BLANK}*[-:]?${BLANK}+[^\\s"]{0,200}(?:::|${TEST}[^\\s"]))`, R],
    // unittest
    [
      `(${WORD}test\\w* \\([\\w.]+\\)[^"${LINE_ENDS}]{0,300}\\.\\.\\. )(?:ok|FAIL|ERROR|skipped[^"${LINE_ENDS}]*|expected failure|unexpected success)${END}`,
      `$1${R}`,
    ],
    [`(Ran \\d+ tests? in [\\d.]+s[\\s${LINE_ENDS}]{1,20})(?:OK|FAILED)(?: \\([^)"]{0,200}\\))?`, `$1${R}`],
    [
      `${START}(?:FAILED|OK) \\((?:(?:failures|errors|skipped|expected failures|unexpected successes)=\\d+(?:, )?)+\\)`,
      `$<start>${R}`,
    ],
    [
      `(?<start>(?:^|[${LINE_ENDS}])(?:[.FEsxu]+|-{20,})${BLANK}*[${LINE_ENDS}]+${BLANK}*)(?:OK|FAILED)${END}`,
      `$<start>${R}`,
    ],
    // TAP
    [`${START}(?:not ok|ok)(?=${BLANK}+\\d+(?:$|[ ${TABS}${LINE_ENDS}"'\\\\]))`, `$<start>${R}`],
    [`(${START}# (?:pass|fail|failed|skipped|todo|cancelled)${BLANK}+)\\d+`, `$1${R}`],
    [`# (?:Looks like you )?failed \\d+ (?:tests?|of)\\b[^"${LINE_ENDS}]{0,100}`, `# ${R}`],
    // JUnit, Maven, Gradle
    [`Tests run:[ ]*\\d+(?:,[ ]*(?:Failures|Errors|Skipped|Flakes):[ ]*\\d+)*`, `Tests run: ${R}`],
    ['<<<[ ]*(?:FAILURE|ERROR)!', `<<< ${R}`],
    [`(\\s(?:tests|failures|errors|skipped)=\\\\*["'])\\d+`, `$1${R}`],
    [`( > [^>"${LINE_ENDS}]{1,200} )(?:PASSED|FAILED|SKIPPED)${END}`, `$1${R}`],
    [`${WORD}BUILD (?:SUCCESS|FAILURE|SUCCESSFUL|FAILED)(?![\\p{L}\\p{N}_])`, `BUILD ${R}`],
    // PHPUnit, .NET
    [`${START}OK \\(\\d+ tests?, \\d+ assertions?\\)`, `$<start>${R}`],
    [`${START}FAILURES!${END}`, `$<start>${R}`],
    [
      `Tests:[ ]*\\d+(?:,[ ]*(?:Assertions|Failures|Errors|Skipped|Warnings|Incomplete|Risky):[ ]*\\d+)+`,
      `Tests: ${R}`,
    ],
    [`(?:Passed|Failed)![ ]+-(?:[ ]*(?:Passed|Failed|Skipped|Total):[ ]*\\d+,?)+`, R],
    // Go
    ['(--- )(?:PASS|FAIL|SKIP)(?=: )', `$1${R}`],
    [`${START}(?:PASS|FAIL)${END}`, `$<start>${R}`],
    [
      `${START}(?:ok|FAIL)(?=${BLANK}+[^\\s"]+${BLANK}+(?:\\(cached\\)|[\\d.]+m?s(?![\\p{L}\\p{N}_])|\\[build failed\\]|\\[no test))`,
      `$<start>${R}`,
    ],
    [`(\\\\*"Action\\\\*"[ ]*:[ ]*\\\\*")(?:pass|fail|skip)(?=\\\\*")`, `$1${R}`],
    // Cargo
    ['(test result: )(?:ok|FAILED)(?=\\.)', `$1${R}`],
    [
      `(${WORD}test \\S{1,300}(?: - [^"${LINE_ENDS}]{1,100})? \\.\\.\\. )(?:ok|FAILED|ignored)(?![\\p{L}\\p{N}_])`,
      `$1${R}`,
    ],
    // Jest, Vitest, Mocha
    [`${START}(?:PASS|FAIL)(?=${BLANK}+[^\\s"]+\\.[A-Za-z]+)`, `$<start>${R}`],
    [`${START}[✓✔√✗✘✕×](?=[ ])`, `$<start>${R}`],
    // GoogleTest, CTest
    ['\\[(?:  PASSED  |  FAILED  | {7}OK |  SKIPPED )\\]', `[ ${R} ]`],
    [
      `(Test +#\\d+: [^"${LINE_ENDS}]{1,300}?)(?:\\*{3}(?:Failed|Exception|Timeout)|${BLANK}Passed)(?![\\p{L}\\p{N}_])`,
      `$1 ${R}`,
    ],
    [
      `(${WORD}results?[ ]*[:=][ ]*\\\\*["']?)(?:pass(?:ed)?|fail(?:ed|ure)?|success)(?![\\p{L}\\p{N}_])`,
      `$1${R}`,
    ],
  ] as const
).map(([pattern, replacement]) => [
  // The words of results are in any case where they stand behind that name only.
  new RegExp(pattern, pattern.includes('results?') ? 'giu' : 'gu'),
  replacement,
]);

export function maskTestResults(text: string): string {
  let masked = text
    .replace(COUNTS, (whole: string, offset: number, all: string) => {
      const rest = all.slice(offset + whole.length, offset + whole.length + 40);
      const timed = /^ in [\d.]+ ?m?s/.test(rest);
      return (DECIDES.test(whole) && CLAUSE_END.test(rest)) || timed ? R : whole;
    })
    .replace(PHRASE, (whole: string, offset: number, all: string) => {
      const rest = all.slice(offset + whole.length, offset + whole.length + 40);
      return CLAUSE_END.test(rest) ? `tests ${R}` : whole;
    });
  for (const [pattern, replacement] of RULES) masked = masked.replace(pattern, replacement);
  return masked;
}
