import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import { type GradingReport, TEST_RESULTS, type TestResult } from './report.js';
import type { ReportSchema } from './report-schema.js';

/** What the plan says a report must be about. */
export interface ReportExpectations {
  readonly task: string;
  readonly candidate: Digest;
  /** Names of the tests that the report must cover, no more and no fewer; null when none are declared. */
  readonly tests: readonly string[] | null;
  readonly reward: { readonly min: number; readonly max: number };
  /** The declared JSON Schema, when there is one. */
  readonly schema: ReportSchema | null;
}

export type ReportFaultKind =
  | 'not_json'
  | 'form'
  | 'schema'
  | 'other_task'
  | 'other_candidate'
  | 'other_tests'
  | 'reward_out_of_range'
  | 'reward_disagrees';

export interface ReportFault {
  readonly kind: ReportFaultKind;
  /** At most a few hundred characters; becomes the text of the failure `report_invalid`. */
  readonly message: string;
}

/** A hostile report can have a million faults; the first few say enough. */
const FAULT_LIMIT = 10;

export type ReportVerdict =
  | { readonly ok: true; readonly report: GradingReport; readonly value: number }
  | { readonly ok: false; readonly faults: readonly ReportFault[] };

/**
 * Decides whether a grade command's report is valid (P11). It is strict JSON, passes the declared schema, names this
 * task and this candidate, covers exactly the expected tests, and has a finite reward in the declared range, which is
 * never clipped. Where tests are expected the reward must agree with them: it is the highest exactly when all pass,
 * and the lowest when none passes; between the two, fractions are the grader's affair.
 */
export function validateReport(bytes: Uint8Array, expected: ReportExpectations): ReportVerdict {
  let value: JsonValue;
  try {
    value = parseStrictJson(bytes, 'the report');
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    return { ok: false, faults: [{ kind: 'not_json', message: error.message.slice(0, 400) }] };
  }
  if (expected.schema !== null) {
    const fault = expected.schema(value);
    if (fault !== null) return { ok: false, faults: [{ kind: 'schema', message: fault }] };
  }
  const { report, faults } = readForm(value);
  if (report === null) return { ok: false, faults };
  const contradictions = [...identityFaults(report, expected), ...rewardFaults(report, expected)];
  return contradictions.length > 0
    ? { ok: false, faults: contradictions }
    : { ok: true, report, value: report.reward };
}

/** All faults of a report in one line, for the failure's text. */
export function faultText(faults: readonly ReportFault[]): string {
  return faults.map((fault) => fault.message).join('; ');
}

function readForm(value: JsonValue): { report: GradingReport | null; faults: ReportFault[] } {
  const faults: ReportFault[] = [];
  const complain = (message: string) => {
    if (faults.length < FAULT_LIMIT) faults.push({ kind: 'form', message });
  };
  if (!isObject(value)) {
    complain('the report is not an object');
    return { report: null, faults };
  }
  const { task, candidate, reward } = value;
  const tests = readTests(value.tests, complain);
  if (typeof task !== 'string') complain('the report names no task');
  if (typeof candidate !== 'string') complain('the report names no candidate');
  if (typeof reward !== 'number') {
    complain(reward === undefined ? 'the report has no reward' : 'the reward is not a number');
  }
  if (faults.length > 0) return { report: null, faults };
  // -0 would be written as 0 anyway; one value, one form.
  const number = reward === 0 ? 0 : (reward as number);
  return {
    report: { task: task as string, candidate: candidate as Digest, tests, reward: number },
    faults,
  };
}

function readTests(
  value: JsonValue | undefined,
  complain: (message: string) => void,
): Record<string, TestResult> {
  const tests: Record<string, TestResult> = Object.create(null) as Record<string, TestResult>;
  if (value === undefined) return tests;
  if (!isObject(value)) {
    complain('"tests" is not an object');
    return tests;
  }
  for (const [name, result] of Object.entries(value)) {
    if (isTestResult(result)) tests[name] = result;
    else complain(`the test ${quote(name)} came to ${quote(result)}, not one of ${TEST_RESULTS.join(', ')}`);
  }
  return tests;
}

function identityFaults(report: GradingReport, expected: ReportExpectations): ReportFault[] {
  const faults: ReportFault[] = [];
  if (report.task !== expected.task) {
    const message = `the report is about task ${quote(report.task)}, not ${quote(expected.task)}`;
    faults.push({ kind: 'other_task', message });
  }
  if (report.candidate !== expected.candidate) {
    const message = `the report is about candidate ${quote(report.candidate)}, not ${expected.candidate}`;
    faults.push({ kind: 'other_candidate', message });
  }
  if (expected.tests === null) return faults;
  const missing = expected.tests.filter((name) => !Object.hasOwn(report.tests, name));
  const known = new Set(expected.tests);
  const surplus = Object.keys(report.tests).filter((name) => !known.has(name));
  if (missing.length > 0) faults.push({ kind: 'other_tests', message: `not covered: ${listed(missing)}` });
  if (surplus.length > 0) faults.push({ kind: 'other_tests', message: `not expected: ${listed(surplus)}` });
  return faults;
}

function rewardFaults(report: GradingReport, expected: ReportExpectations): ReportFault[] {
  const { reward } = report;
  const { min, max } = expected.reward;
  if (!(reward >= min && reward <= max)) {
    return [{ kind: 'reward_out_of_range', message: `the reward ${reward} lies outside [${min}, ${max}]` }];
  }
  if (expected.tests === null) return [];
  const passed = expected.tests.filter((name) => report.tests[name] === 'pass').length;
  const total = expected.tests.length;
  if ((passed === total) === (reward === max) && (passed > 0 || reward === min)) return [];
  const message = `the reward ${reward} does not agree with ${passed} of ${total} tests passed`;
  return [{ kind: 'reward_disagrees', message }];
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTestResult(value: JsonValue | undefined): value is TestResult {
  return TEST_RESULTS.some((result) => result === value);
}

/** A foreign value, short enough to show. */
function quote(value: JsonValue | undefined): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length <= 80 ? text : `${text.slice(0, 77).toWellFormed()}…`;
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 3).map(quote).join(', ');
  return names.length <= 3 ? shown : `${shown} and ${names.length - 3} more`;
}
