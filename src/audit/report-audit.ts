import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import { decodeUtf8 } from '../core/files.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import { decodeEntry } from '../ledger/codec.js';
import type { Entry } from '../ledger/entries/entry.js';
import { LedgerFold } from '../ledger/fold.js';
import { CompactRange, leafHash } from '../ledger/merkle.js';
import type { LedgerHead } from '../ledger/reader.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import { supersededBy } from '../manifest/succession.js';
import { buildReport } from '../report/build.js';
import { reportInput } from '../report/input.js';
import { renderReport } from '../report/render.js';
import type { Report } from '../report/value.js';
import { differences, shorten, shown } from './difference.js';
import type { Findings } from './finding.js';
import type { RowSource } from './row-source.js';

/** How many differing places of one report are listed. */
const MAX_DIFFERENCES = 1000;

export interface ReportFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface ReportAuditSetting {
  readonly identified: IdentifiedManifest;
  /** The manifests that it rests on. */
  readonly lineage: readonly IdentifiedManifest[];
  readonly source: RowSource;
  /** The state after all entries. */
  readonly fold: LedgerFold;
  readonly head: LedgerHead;
  readonly findings: Findings;
}

/** The report that the whole ledger gives. */
export function reportNow(setting: ReportAuditSetting): Report {
  return rebuild({ ...setting, rebuilt: new Map() }, setting.head.size);
}

/** Rebuilds reports of one ledger; those of one moment are made once. */
interface Rebuilding extends ReportAuditSetting {
  readonly rebuilt: Map<number, Report>;
}

/**
 * Rebuilds reports from the book and compares them, see {@link auditReport}.
 *
 * @returns what was compared, in sentences
 */
export function auditReports(files: readonly ReportFile[], setting: ReportAuditSetting): readonly string[] {
  const rebuilding = { ...setting, rebuilt: new Map<number, Report>() };
  return files.flatMap((file) => auditReport(file, rebuilding) ?? []);
}

/**
 * Rebuilds a report from the book and compares it, place by place (law 10, B11). A JSON report says after how many
 * entries it was made and is rebuilt for that moment; text and Markdown are held against the whole ledger.
 *
 * @returns what was compared, in a sentence; null when nothing could be
 */
function auditReport(file: ReportFile, setting: Rebuilding): string | null {
  try {
    const text = decodeUtf8(file.bytes, file.name);
    if (/^\s*[{[]/.test(text)) return auditJson(file, text, setting);
    return auditText(file.name, text, setting);
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    setting.findings.add({
      code: 'REPORT_FORM',
      where: { file: file.name },
      message: `the report cannot be compared: ${error.message}`,
    });
    return null;
  }
}

function auditJson(file: ReportFile, text: string, setting: Rebuilding): string {
  const { findings, head } = setting;
  const given = parseStrictJson(file.bytes, file.name);
  const made = entriesOf(given) ?? head.size;
  if (made > head.size) {
    findings.add({
      code: 'LEDGER_SHORTENED',
      where: { seq: head.size, file: file.name },
      message: `the report was made of ${made} entries; the ledger has ${head.size}`,
      evidence: { report: made, ledger: head.size },
    });
  }
  const rebuilt = rebuild(setting, Math.min(made, head.size));
  const expected = JSON.parse(canonicalText(rebuilt)) as JsonValue;
  const found = differences(expected, given, MAX_DIFFERENCES);
  for (const { pointer, expected: due, actual } of found) {
    findings.add({
      code: 'REPORT_NUMBER',
      where: { file: file.name, pointer },
      message: `the report says ${shown(actual)} at ${pointer === '' ? 'its root' : pointer}; the book gives ${shown(due)}`,
      evidence: { expected: shorten(due), actual: shorten(actual) },
      outcome: true,
    });
  }
  const form = text.trimEnd() === canonicalText(rebuilt) ? 'byte by byte' : 'value by value';
  const moment = made === 0 ? 'before the first entry' : `after entry ${Math.min(made, head.size) - 1}`;
  return `the report ${file.name}, made ${moment}, ${form}`;
}

/** Lines that differ, by number. What a line holds may be an outcome. */
function auditText(name: string, text: string, setting: Rebuilding): string {
  const report = rebuild(setting, setting.head.size);
  const given = text.trimEnd().split('\n');
  const candidates = (['text', 'markdown'] as const).map((format) => {
    const lines = renderReport(report, format).trimEnd().split('\n');
    return { format, lines, differing: differingLines(lines, given) };
  });
  const [best] = candidates.sort((a, b) => a.differing.length - b.differing.length);
  if (best === undefined) throw new BoundbookError('INTERNAL', 'a report without a form');
  for (const line of best.differing.slice(0, MAX_DIFFERENCES)) {
    setting.findings.add({
      code: 'REPORT_NUMBER',
      where: { file: name, pointer: `line ${line + 1}` },
      message: `line ${line + 1} is ${shown(given[line])}; the book gives ${shown(best.lines[line])}`,
      evidence: { expected: shorten(best.lines[line]), actual: shorten(given[line]) },
      outcome: true,
    });
  }
  return `the report ${name} as ${best.format} of the whole ledger, line by line`;
}

function differingLines(expected: readonly string[], actual: readonly string[]): number[] {
  const count = Math.max(expected.length, actual.length);
  return Array.from({ length: count }, (_, i) => i).filter((i) => expected[i] !== actual[i]);
}

/** The report of the first `size` entries. */
function rebuild(setting: Rebuilding, size: number): Report {
  const { identified, source, rebuilt } = setting;
  const known = rebuilt.get(size);
  if (known !== undefined) return known;
  const { fold, head } = size === setting.head.size ? setting : stateAfter(setting, size);
  const report = buildReport(
    reportInput({
      manifest: identified.manifest,
      manifestDigest: identified.digest,
      superseded: supersededBy(identified.manifest, setting.lineage).plans,
      fold,
      head,
      entries: entries(source, size),
    }),
  );
  rebuilt.set(size, report);
  return report;
}

function stateAfter({ source, fold: whole }: Rebuilding, size: number) {
  const fold = new LedgerFold(whole.context);
  const range = new CompactRange();
  let leaf: string | null = null;
  for (const { body } of upTo(source, size)) {
    const hash = leafHash(body);
    leaf = hash.toString('hex');
    range.append(hash);
    const decoded = decodeEntry(body);
    if (decoded.ok) fold.apply(decoded.entry);
  }
  return { fold, head: { size, leaf, root: range.root().toString('hex') } };
}

function* entries(source: RowSource, size: number): Generator<Entry> {
  for (const { body } of upTo(source, size)) {
    const decoded = decodeEntry(body);
    if (decoded.ok) yield decoded.entry;
  }
}

function* upTo(source: RowSource, size: number): Generator<{ readonly body: Buffer }> {
  let left = size;
  for (const row of source.rows()) {
    if (left-- <= 0) return;
    yield row;
  }
}

function entriesOf(report: JsonValue): number | null {
  const entries = memberOf(memberOf(report, 'ledger'), 'entries');
  return typeof entries === 'number' && Number.isSafeInteger(entries) && entries >= 0 ? entries : null;
}

function memberOf(value: JsonValue | undefined, key: string): JsonValue | undefined {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isRecord && Object.hasOwn(value, key) ? (value as JsonObject)[key] : undefined;
}
