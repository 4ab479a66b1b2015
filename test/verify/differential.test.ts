import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditBundle } from '../../src/audit/audit.js';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { BoundbookError } from '../../src/core/errors.js';
import { type Loose, LooseBundle } from '../support/loose-bundle.js';
import { makeSmallBook } from '../support/small-book.js';
import { call, hasPython, NO_PYTHON } from './python.js';

/**
 * Random edits of a sound bundle, made consistent again: the audit and the second verifier have to come to the same
 * verdict on each. BOUNDBOOK_EDITS sets how many, BOUNDBOOK_SEED where the random numbers begin.
 */
const EDITS = Number(process.env.BOUNDBOOK_EDITS ?? 120);
const SEED = Number(process.env.BOUNDBOOK_SEED ?? 1);

/** Parts of a report that a second verifier leaves out, see docs/formats/audit.md. */
const NOT_COMPARED =
  /^(delete )?\S*\/(costs|deviations|estimand|unit_of_replication|statements|notes|interval_notes|caveats|not_checked|generator|index|order|quantile)\b/;

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Numbers in [0, 1): mulberry32. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Editor {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = random(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** Changes one place inside a value. @returns what was done, in words */
  change(value: Json, others: readonly Json[]): string {
    const places = placesIn(value);
    const { holder, key, path } = this.pick(places);
    const slot = holder as Record<string, Json>;
    const old = slot[key] as Json;
    if (this.below(12) === 0 && !Array.isArray(holder)) {
      delete slot[key];
      return `delete ${path}`;
    }
    slot[key] = this.#replacement(old, others, path);
    return `${path}: ${JSON.stringify(old)} -> ${JSON.stringify(slot[key])}`;
  }

  #replacement(old: Json, others: readonly Json[], path: string): Json {
    const found = others.map((other) => at(other, path)).filter((item) => item !== undefined);
    if (found.length > 0 && this.below(2) === 0) return structuredClone(this.pick(found) as Json);
    if (typeof old === 'number') return this.pick([old + 1, old - 1, 0, 1, -1, 0.5, old + 0.25, 1e21]);
    if (typeof old === 'boolean') return !old;
    if (typeof old === 'string')
      return this.pick([
        `${old}x`,
        old.slice(0, -1),
        '',
        `${old.slice(0, -1)}0`,
        null,
        'generate',
        'grade',
        '{question}',
      ]);
    if (old === null) return this.pick([0, 1, '', 'x', {}, [], 503, `sha256:${'0'.repeat(64)}`]);
    if (Array.isArray(old))
      return this.pick([[], old.slice(1), [...old, ...old.slice(-1)], [...old].reverse()]);
    return this.pick([null, {}, { ...old, more: 1 }]);
  }
}

function placesIn(value: Json, path = ''): { holder: Json; key: string; path: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    { holder: value, key, path: `${path}/${key}` },
    ...placesIn(item, `${path}/${key}`),
  ]);
}

function at(value: Json, path: string): Json | undefined {
  return path
    .slice(1)
    .split('/')
    .reduce<Json | undefined>((item, key) => (item as Record<string, Json> | null | undefined)?.[key], value);
}

/** Changes one thing in a bundle. @returns what was done, in words */
function edit(loose: LooseBundle, editor: Editor): string {
  const { entries } = loose;
  const position = editor.below(entries.length);
  switch (editor.below(9)) {
    case 0: {
      const [gone] = entries.splice(position, 1);
      return `entry ${position} (${gone?.type}) removed`;
    }
    case 1: {
      const to = editor.below(entries.length);
      const [moved] = entries.splice(position, 1);
      entries.splice(to, 0, moved as Loose);
      retime(entries);
      return `entry ${position} (${moved?.type}) moved to ${to}`;
    }
    case 2: {
      const to = editor.below(entries.length + 1);
      loose.insert(to, structuredClone(entries[position] as Loose));
      retime(entries);
      return `entry ${position} (${entries[position]?.type}) repeated at ${to}`;
    }
    case 3:
      return editManifest(loose, editor);
    case 4:
      return editAnswer(loose, editor);
    case 5: {
      const bytes = loose.files.get('report/report.json');
      if (bytes === undefined) return editEntry(entries, position, editor);
      const parsed = () => JSON.parse(bytes.toString('utf8')) as Json;
      let report = parsed();
      let done = editor.change(report, []);
      // What the second verifier leaves out stays as it was.
      while (NOT_COMPARED.test(done)) {
        report = parsed();
        done = editor.change(report, []);
      }
      loose.files.set('report/report.json', canonicalBytes(report));
      return `report ${done}`;
    }
    default:
      return editEntry(entries, position, editor);
  }
}

function editEntry(entries: readonly Loose[], position: number, editor: Editor): string {
  const entry = entries[position] as Loose;
  const alike = entries.filter(({ type }) => type === entry.type);
  return `entry ${position} (${entry.type}) ${editor.change(entry as Json, alike as Json[])}`;
}

/** Every entry has the time of the one before it, or a later one. */
function retime(entries: readonly Loose[]): void {
  const times = entries.map(({ time }) => time as string).sort();
  for (const [i, entry] of entries.entries()) entry.time = times[i];
}

/** Edits the manifest, and makes everything that names it follow. */
function editManifest(loose: LooseBundle, editor: Editor): string {
  const [path = ''] = [...loose.files.keys()].filter((name) => name.startsWith('manifests/'));
  const manifest = JSON.parse(loose.files.get(path)?.toString('utf8') ?? '') as Record<string, Json>;
  const inside = editor.below(4) === 0 ? manifest : (manifest.protocol as Json);
  const done = editor.change(inside, []);
  const digest = loose.replaceManifest(path.slice('manifests/'.length), manifest);
  for (const entry of loose.entries) {
    if (entry.manifest === loose.manifest) entry.manifest = digest;
    if (entry.manifest_object === loose.manifest) entry.manifest_object = digest;
  }
  loose.keep(canonicalBytes(manifest));
  loose.manifest = digest;
  loose.files.delete('report/report.json');
  return `manifest ${done}`;
}

/** Edits an answer that was kept, or what a command made. */
function editAnswer(loose: LooseBundle, editor: Editor): string {
  const stages = loose.entries.filter((entry) => 'response' in ((entry.objects as object | undefined) ?? {}));
  if (stages.length === 0) return editRequest(loose, editor);
  const stage = editor.pick(stages);
  const objects = stage.objects as Record<string, string>;
  const text = loose.object(objects.response).toString('utf8');
  let done = 'cut';
  let body: string | Buffer = text.slice(0, editor.below(text.length));
  if (text.startsWith('{"') && editor.below(5) > 0) {
    try {
      const value = JSON.parse(text) as Json;
      done = editor.change(value, []);
      body = JSON.stringify(value);
    } catch {
      done = 'cut';
    }
  }
  objects.response = loose.keep(body);
  loose.files.delete('report/report.json');
  return `answer ${done}`;
}

/** Edits what a command was asked, or a report that it wrote. */
function editRequest(loose: LooseBundle, editor: Editor): string {
  const reports = loose.entries.flatMap(({ type, result }) => {
    const named = result as { kind: string } | undefined;
    return type === 'stage.finished' && named?.kind === 'report' ? [named as unknown as Loose] : [];
  });
  const starts = loose.entries.filter(({ request }) => typeof request === 'string');
  if (starts.length === 0) return editEntry(loose.entries, 0, editor);
  const isReport = editor.below(2) === 0;
  const holder = editor.pick(isReport ? reports : starts);
  const member = isReport ? 'report' : 'request';
  const value = JSON.parse(loose.object(holder[member]).toString('utf8')) as Json;
  const done = editor.change(value, []);
  const [before, after] = [String(holder[member]), loose.keep(canonicalBytes(value))];
  loose.ledger.entries = loose.entries.map(
    (entry) => JSON.parse(JSON.stringify(entry).replaceAll(before, after)) as Loose,
  );
  loose.files.delete('report/report.json');
  return `${member} ${done}`;
}

/** Sound bundles of other kinds that are edited, too. */
const OTHERS = ['command', 'restored', 'amended-twice', 'checkpoints-signed', 'verdict-in-time'];

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'boundbook-differential-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function audited(bundle: string): Promise<string> {
  try {
    return (await auditBundle(bundle)).verdict;
  } catch (error) {
    if (!(error instanceof BoundbookError) || error.exitCode !== 4) throw error;
    return 'findings';
  }
}

describe.skipIf(!hasPython)(`second verifier: random edits (${NO_PYTHON})`, () => {
  it(`agrees with the audit on ${EDITS} of them`, { timeout: 3_600_000 }, async () => {
    await makeSmallBook(root);
    const { folder } = await exportBundle(root, undefined, { out: 'bundle' });
    const edits: { done: string; folder: string; audit: string }[] = [];
    for (let i = 0; i < EDITS; i++) {
      const other = OTHERS[i % (2 * OTHERS.length)];
      const from =
        other === undefined ? folder : join(import.meta.dirname, '../conformance', other, 'bundle');
      const loose = LooseBundle.read(from);
      const done = `${SEED + i}: ${other ?? 'small'}, ${edit(loose, new Editor(SEED + i))}`;
      const made = loose.write(join(root, `edit-${i}`));
      edits.push({ done, folder: made, audit: await audited(made) });
    }
    const answers = call(edits.map((one) => ['verify', [one.folder]] as const));
    const verdicts = answers.map(
      ({ value }) => value as { document: { verdict: string; findings: unknown[] } },
    );
    const apart = edits.flatMap(({ done, audit }, i) => {
      const document = verdicts[i]?.document;
      return document?.verdict === audit ? [] : [[done, audit, document?.findings.slice(0, 2) ?? null]];
    });
    expect(apart).toEqual([]);
    const clean = edits.filter(({ audit }) => audit === 'clean').length;
    expect(clean).toBeLessThan(EDITS);
  });
});
