import type { JsonValue } from '../core/json.js';
import { visible } from '../core/visible.js';
import { TEXT_WIDTH, wrap } from '../report/text.js';
import type { Finding } from './finding.js';
import { FINDINGS } from './finding.js';
import type { AuditResult } from './result.js';

/** Findings of one kind that are written out in text; `--json` lists all. */
const SHOWN_PER_CODE = 20;

/** The audit as text for people. Everything from outside is made visible: no control characters, no line breaks. */
export function renderAudit(result: AuditResult): string {
  const { manifest, bundle, ledger, findings, omitted } = result;
  const { head } = ledger;
  const total = findings.length + omitted;
  const lines = [
    total === 0 ? 'audit: clean, no findings' : `audit: ${total} ${total === 1 ? 'finding' : 'findings'}`,
    '',
    ...(bundle === null
      ? []
      : [`bundle      ${bundle.name} (${bundle.form})`, `            ${bundle.digest}`]),
    `manifest    ${manifest.file}`,
    `            ${manifest.digest ?? 'none that can be read'}`,
    `ledger      ${ledger.name}`,
    `head        ${head.size}:${head.leaf ?? 'none'}`,
    `root        ${head.root}`,
    ...section('coverage', coverageLines(result)),
    ...section('findings', findingLines(findings, omitted)),
    ...section('checked', wrapped(result.checked)),
    ...section('remarks', result.remarks),
    ...section('order in time', result.order),
    ...section('not checked', wrapped(result.notChecked)),
  ];
  return lines.map(visible).join('\n');
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)];
}

/** Sentences, broken as a report's are; what belongs to one is set in. */
function wrapped(sentences: readonly string[]): string[] {
  return sentences.flatMap((sentence) =>
    wrap(visible(sentence), TEXT_WIDTH - 4).map((line, i) => (i === 0 ? line : `  ${line}`)),
  );
}

function coverageLines({ coverage }: AuditResult): string[] {
  return (coverage ?? []).map(
    ({ queue, role, planned, settled, unresolved, open, pending }) =>
      `${queue} (${role}): ${planned} planned, ${settled} settled, ${unresolved} unresolved, ${open} open, ${pending} pending`,
  );
}

function findingLines(findings: readonly Finding[], omitted: number): string[] {
  const counts = new Map<string, number>();
  const lines: string[] = [];
  for (const finding of findings) {
    const count = (counts.get(finding.code) ?? 0) + 1;
    counts.set(finding.code, count);
    if (count <= SHOWN_PER_CODE) lines.push(...describe(finding));
  }
  for (const [code, count] of counts) {
    if (count > SHOWN_PER_CODE) lines.push(`${code}: ${count - SHOWN_PER_CODE} more; --json lists them`);
  }
  if (omitted > 0) lines.push(`${omitted} more were counted and are not listed`);
  return lines;
}

function describe({ code, clause, where, message, evidence }: Finding): string[] {
  const { seq, slot, pointer, file, object } = where;
  const place = [
    seq === null ? null : `entry ${seq}`,
    slot === null ? null : `slot ${slot}`,
    pointer,
    file,
    seq === null ? object : null,
  ].filter((part) => part !== null && part !== '');
  return [
    `${code} (${clause}) ${place.join(' ')}`.trimEnd(),
    `    ${message}`,
    `    ${FINDINGS[code].title}`,
    ...(code === 'NOT_EXTENDED' ? contradiction(evidence) : []),
  ];
}

/** Both notes and the proof that fails: what a third party has to see. */
function contradiction(evidence: JsonValue): string[] {
  if (typeof evidence !== 'object' || evidence === null || Array.isArray(evidence)) return [];
  const lines = (title: string, text: string) => [
    `    ${title}:`,
    ...text.split('\n').map((line) => `      ${line}`.trimEnd()),
  ];
  const { older, newer, proof } = evidence as Readonly<Record<string, JsonValue>>;
  const hashes = Array.isArray(proof) ? proof : [];
  return [
    ...lines('older note', String(older).trimEnd()),
    ...lines('newer note', String(newer).trimEnd()),
    ...lines('proof', hashes.length === 0 ? '(no hashes)' : hashes.join('\n')),
  ];
}
