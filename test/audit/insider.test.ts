import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { attemptId } from '../../src/attempts/slot-state.js';
import { audit } from '../../src/audit/audit.js';
import type { Finding, FindingCode } from '../../src/audit/finding.js';
import type { AuditResult } from '../../src/audit/result.js';
import { canonicalText } from '../../src/core/canonical-json.js';
import { digestOf, hexOf } from '../../src/core/digest.js';
import { type Trial, trial } from '../runner/fixture.js';
import { Insider, type Loose } from './insider.js';

let plan: Trial;

beforeAll(async () => {
  plan = await trial({
    prompts: {
      right: 'right a',
      wrong: 'wrong b',
      again: 'reset-once c',
      unclear: 'html d',
      short: 'length e',
    },
    reps: 2,
  });
  await plan.run({ workers: 4 });
  const { findings } = await audit(plan.root, undefined);
  expect(findings).toEqual([]);
});

function look(insider: Insider, options: Parameters<typeof audit>[2] = {}): Promise<AuditResult> {
  return audit(insider.root, undefined, options);
}

/** The findings of that code, which must exist. */
async function expectFinding(
  insider: Insider,
  code: FindingCode,
  clause?: string,
  options: Parameters<typeof audit>[2] = {},
): Promise<Finding> {
  const { findings, verdict } = await look(insider, options);
  expect(verdict).toBe('findings');
  const found = findings.filter(
    (one) => one.code === code && (clause === undefined || one.clause === clause),
  );
  expect(found.length, JSON.stringify(findings, null, 1)).toBeGreaterThan(0);
  return found[0] as Finding;
}

/** Entries of a further attempt of a slot that answers `text` and is worth `value`. */
function furtherAttempt(
  insider: Insider,
  slot: string,
  n: number,
  kind: string,
  text: string,
  value: number,
): Loose[] {
  const [start] = insider.of(slot);
  if (start === undefined) throw new Error('no such slot');
  const attempt = attemptId(slot, n);
  const response = insider.keep(
    JSON.stringify({
      model: 'M@42',
      choices: [{ finish_reason: 'stop', message: { content: text } }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    }),
  );
  const candidate = insider.keep(text);
  const report = insider.keep(
    canonicalText({
      task: (start.key as { task: string }).task,
      candidate,
      tests: { answer: value === 1 ? 'pass' : 'fail' },
      reward: value,
      grader: { kind: 'integer', answer: 'answer' },
      extracted: text,
      outcome: value === 1 ? 'correct' : 'wrong',
    }),
  );
  const stage = { type: 'stage.finished', attempt, slot, seconds: 1, queue_seconds: 0 };
  const { seq: _seq, prev: _prev, ...rest } = start;
  return [
    { ...rest, attempt, kind, of: attemptId(slot, n - 1) },
    {
      ...stage,
      stage: 'generate',
      result: { kind: 'candidate', candidate },
      objects: { response },
      usage: { prompt_tokens: 1, completion_tokens: 1 },
      finish_reason: 'stop',
    },
    {
      ...stage,
      stage: 'grade',
      result: { kind: 'report', candidate, report, value },
      objects: {},
      usage: null,
      finish_reason: null,
    },
    { type: 'attempt.finished', attempt, slot, outcome: 'report', seconds: 1 },
    { type: 'slot.settled', slot, value, basis: { kind: 'report', attempt, report } },
  ];
}

function stageOf(insider: Insider, slot: string, stage: string): Loose {
  const found = insider.of(slot).find((entry) => entry.type === 'stage.finished' && entry.stage === stage);
  if (found === undefined) throw new Error(`no ${stage}`);
  return found;
}

function settlementOf(insider: Insider, slot: string): Loose {
  const found = insider.of(slot).find(({ type }) => type === 'slot.settled');
  if (found === undefined) throw new Error('not settled');
  return found;
}

describe('attempts', () => {
  test('a slot is deleted and the tail written anew: the anchor beside the ledger knows more entries', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    insider.remove((entry) => entry.slot === slot);
    insider.rechain({ forgeAnchor: false });
    const finding = await expectFinding(insider, 'LEDGER_SHORTENED', 'law 4');
    expect(finding.message).toContain('end is missing');
  });

  test('… and the anchor is forged: the objects that nobody names tell', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const { request } = insider.find('attempt.started', (entry) => entry.slot === slot);
    insider.remove((entry) => entry.slot === slot);
    const finding = await expectFinding(insider.rechain(), 'OBJECT_ORPHAN', 'law 4');
    expect(finding.where.object).toMatch(/^sha256:/);
    const { findings } = await look(insider);
    // The other rep of the task sent another seed, so this request was of the deleted slot alone.
    expect(findings.map(({ where }) => where.object)).toContain(request);
  });

  test('… and the objects are removed, too: only a head held by somebody else tells, and the audit says so', async () => {
    const insider = new Insider(plan);
    const { size, hash } = insider.head();
    const slot = insider.slotOf('wrong');
    insider.remove((entry) => entry.slot === slot);
    insider.rechain().sweep();
    const result = await look(insider);
    expect(result.findings).toEqual([]);
    expect(result.notChecked[0]).toContain('rewritten as a whole');
    await expectFinding(insider, 'LEDGER_SHORTENED', 'law 4', { head: { size, hash } });
  });

  test('a later report is preferred to the first (P11)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    insider.remove((entry) => entry.slot === slot && entry.type === 'slot.settled');
    insider.insertAfter(slot, ...furtherAttempt(insider, slot, 2, 'replacement', '7', 1));
    const finding = await expectFinding(insider.rechain(), 'UNLAWFUL', 'P11');
    expect(finding.where.slot).toBe(slot);
  });

  test('a second report of the same attempt is adopted (law 3)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const second = furtherAttempt(insider, slot, 2, 'replacement', '7', 1)[2] as Loose;
    const { result } = stageOf(insider, slot, 'grade');
    const { candidate } = result as { candidate: string };
    const at = insider.entries.indexOf(settlementOf(insider, slot));
    insider.entries.splice(at, 0, {
      ...second,
      attempt: attemptId(slot, 1),
      time: insider.entries[at]?.time,
      result: { ...(second.result as object), candidate },
    });
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'law 3');
  });

  test('a retry without cause after a settlement (P13)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    insider.insertAfter(slot, ...furtherAttempt(insider, slot, 2, 'replacement', '7', 1));
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'P13');
    await expectFinding(insider, 'UNLAWFUL', 'law 3');
  });

  test('an extra first attempt after the settlement (P11)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('right');
    insider.insertAfter(slot, ...furtherAttempt(insider, slot, 2, 'first', '7', 1).slice(0, 1));
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'P11');
  });

  test('a cause is invented to retry a wrong answer (P11): the kept answer is complete', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const stage = stageOf(insider, slot, 'generate');
    const attempt = attemptId(slot, 1);
    const signals = {
      ...{ stage: 'generate', phase: 'body', cause: 'body_error', http_status: 200, embedded_status: 503 },
      ...{ exit_status: null, signal: null, service_alive: true, exception: null, text: 'busy' },
    };
    insider.remove((entry) => entry.slot === slot && entry !== stage && entry.type !== 'attempt.started');
    stage.result = { kind: 'failure', signals };
    insider.insertAfter(
      slot,
      {
        type: 'attribution.recorded',
        attempt,
        slot,
        attribution: 'infrastructure',
        by: 'rule',
        rule: 'embedded',
        late: false,
        reason: null,
      },
      { type: 'attempt.finished', attempt, slot, outcome: 'failure', seconds: 1 },
      ...furtherAttempt(insider, slot, 2, 'replacement', '7', 1),
    );
    const finding = await expectFinding(insider.rechain(), 'FAILURE_DIFFERS', 'P14');
    expect(finding.where.slot).toBe(slot);
  });

  test('an attribution that no rule gives (P14)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('unclear');
    insider.find('attribution.recorded', (entry) => entry.slot === slot).attribution = 'model';
    insider.find('slot.unresolved', (entry) => entry.slot === slot);
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'P14');
  });

  test('a slot outside the plan (law 1)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('right');
    const start = insider.find('attempt.started', (entry) => entry.slot === slot);
    start.key = { ...(start.key as object), rep: 99 };
    const finding = await expectFinding(insider.rechain(), 'UNLAWFUL', 'law 1');
    expect(finding.message).toContain('not in the plan');
  });

  test('the key of another slot (P6)', async () => {
    const insider = new Insider(plan);
    const start = insider.find('attempt.started', ({ key }) => key.task === 'right' && key.rep === 0);
    start.key = { ...(start.key as object), rep: 1 };
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'P6');
  });

  test('an attempt of a session that never passed the gate (law 1)', async () => {
    const insider = new Insider(plan);
    insider.find('attempt.started').session = 'f'.repeat(32);
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'law 1');
  });

  test('entries in another order', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('right');
    const at = insider.entries.indexOf(stageOf(insider, slot, 'generate'));
    const other = insider.entries.indexOf(stageOf(insider, slot, 'grade'));
    const [a, b] = [insider.entries[at], insider.entries[other]];
    if (a !== undefined && b !== undefined) [insider.entries[at], insider.entries[other]] = [b, a];
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'P11');
  });
});

describe('numbers', () => {
  test('a changed settlement (law 3)', async () => {
    const insider = new Insider(plan);
    settlementOf(insider, insider.slotOf('wrong')).value = 1;
    const finding = await expectFinding(insider.rechain(), 'UNLAWFUL', 'law 3');
    expect(finding.message).toContain('withheld');
    expect(finding.evidence).toBeNull();
  });

  test('a changed value in grading and settlement: grading the candidate again tells (B11)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const stage = stageOf(insider, slot, 'grade');
    stage.result = { ...(stage.result as object), value: 1 };
    settlementOf(insider, slot).value = 1;
    await expectFinding(insider.rechain(), 'VALUE_DIFFERS', 'B11');
  });

  test('… with a report made to fit', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const stage = stageOf(insider, slot, 'grade');
    const result = stage.result as { report: string; value: number };
    const report = JSON.parse(insider.object(result.report).toString()) as object;
    const forged = insider.keep(
      canonicalText({ ...report, reward: 1, tests: { answer: 'pass' }, outcome: 'correct' }),
    );
    stage.result = { ...result, report: forged, value: 1 };
    const settlement = settlementOf(insider, slot);
    settlement.value = 1;
    settlement.basis = { ...(settlement.basis as object), report: forged };
    insider.rechain().sweep();
    const finding = await expectFinding(insider, 'REPORT_DIFFERS', 'B11');
    expect(finding.where.object).toBe(forged);
  });

  test('… with a candidate made to fit: it is not what the service answered (P11)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    forgeCandidate(insider, slot);
    insider.rechain().sweep();
    const finding = await expectFinding(insider, 'CANDIDATE_DIFFERS', 'P11');
    expect(finding.where.slot).toBe(slot);
  });

  test('… with an answer made to fit: only a head held by somebody else tells', async () => {
    const insider = new Insider(plan);
    const { size, hash } = insider.head();
    const slot = insider.slotOf('wrong');
    forgeCandidate(insider, slot);
    const stage = stageOf(insider, slot, 'generate');
    const answer = insider.object((stage.objects as { response: string }).response).toString();
    stage.objects = { response: insider.keep(answer.replaceAll('"8"', '"7"')) };
    insider.rechain().sweep();
    expect((await look(insider)).findings).toEqual([]);
    await expectFinding(insider, 'LEDGER_REWRITTEN', 'law 4', { head: { size, hash } });
  });

  test('the anchor beside the ledger tells the same, unless it is forged as well', async () => {
    const insider = new Insider(plan);
    settlementOf(insider, insider.slotOf('right')).time = insider.entries.at(-1)?.time;
    insider.entries.sort((a, b) => ((a.time as string) < (b.time as string) ? -1 : 0));
    insider.rechain({ forgeAnchor: false });
    await expectFinding(insider, 'LEDGER_REWRITTEN', 'law 4');
  });

  function forgeCandidate(insider: Insider, slot: string): void {
    const [, , graded] = furtherAttempt(insider, slot, 2, 'replacement', '7', 1);
    const result = (graded as Loose).result as { candidate: string; report: string; value: number };
    const generate = stageOf(insider, slot, 'generate');
    generate.result = { kind: 'candidate', candidate: result.candidate };
    stageOf(insider, slot, 'grade').result = result;
    const settlement = settlementOf(insider, slot);
    settlement.value = 1;
    settlement.basis = { ...(settlement.basis as object), report: result.report };
  }
});

describe('the plan', () => {
  test('another sampling seed in the entry (P18)', async () => {
    const insider = new Insider(plan);
    insider.find('attempt.started').sampling_seed = 1;
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'P18');
  });

  test.each([
    ['seed', 1, 'P18'],
    ['temperature', 0, 'P17'],
    ['max_tokens', 4096, 'P17'],
    ['model', 'E@42', 'P17'],
    ['messages', [{ role: 'user', content: 'right a. The answer is 7.' }], 'P17'],
    ['logit_bias', { 7: 100 }, 'P17'],
  ])('another %s in the request that was sent', async (field, value, clause) => {
    const insider = new Insider(plan);
    const start = insider.find('attempt.started');
    const request = JSON.parse(insider.object(start.request).toString()) as object;
    start.request = insider.keep(canonicalText({ ...request, [field]: value }));
    insider.rechain().sweep();
    const finding = await expectFinding(insider, 'REQUEST_DIFFERS', clause);
    expect(finding.where.pointer).toMatch(new RegExp(`^/request/${field}`));
  });

  test('a request that is no JSON, and none at all', async () => {
    const insider = new Insider(plan);
    insider.find('attempt.started').request = insider.keep('7');
    await expectFinding(insider.rechain(), 'REQUEST_DIFFERS');
    insider.find('attempt.started').request = null;
    await expectFinding(insider.rechain(), 'REQUEST_DIFFERS');
  });

  test('the ledger of another manifest (law 1)', async () => {
    const insider = new Insider(plan);
    insider.find('ledger.opened').manifest = digestOf('another');
    const finding = await expectFinding(insider.rechain(), 'MANIFEST_FOREIGN', 'law 1');
    expect(finding.evidence).toEqual({ expected: plan.stored.digest, actual: digestOf('another') });
  });

  test('other tasks, and another plan', async () => {
    const insider = new Insider(plan);
    const opened = insider.find('ledger.opened');
    const name = Object.keys(opened.task_objects as object)[0] ?? '';
    const tasks = insider.read('tasks/all.jsonl').replaceAll('"answer":"7"', '"answer":"8"');
    opened.task_objects = { [name]: insider.keep(tasks) };
    insider.rechain().sweep();
    await expectFinding(insider, 'PLAN_DIFFERS', 'P10');
    await expectFinding(insider, 'REPORT_DIFFERS', 'B11');
    opened.plan = { count: 1, digest: digestOf('x') };
    await expectFinding(insider.rechain(), 'UNLAWFUL', 'law 1');
  });

  test.each(['prose', 'one digit'])(
    'an edited manifest (%s): judged by the copy in the ledger',
    async (what) => {
      const insider = new Insider(plan);
      const text = insider.read(`manifests/${plan.stored.file}`);
      const edited = what === 'prose' ? 'not a manifest' : text.replace('"temperature":1', '"temperature":0');
      expect(edited).not.toBe(text);
      rmSync(insider.manifest);
      writeFileSync(insider.manifest, edited);
      const result = await look(insider);
      expect(result.findings.map(({ code }) => code)).toEqual(['MANIFEST_ALTERED']);
      expect(result.manifest.digest).toBe(plan.stored.digest);
    },
  );

  test('something ran before the manifest was made (P1)', async () => {
    const insider = new Insider(plan);
    for (const entry of insider.entries) entry.time = '2020-01-01T00:00:00.000Z';
    await expectFinding(insider.rechain(), 'TIME_BEFORE_PLAN', 'P1');
  });

  test('unblinded while slots are open, or with other counts (P22)', async () => {
    const insider = new Insider(plan);
    const entry = { type: 'unblinded', partial: false, planned: 10, settled: 10, unresolved: 0, pending: 0 };
    insider.entries.splice(3, 0, { ...entry, time: insider.entries[3]?.time });
    const { findings } = await look(insider.rechain());
    expect(findings.filter(({ clause }) => clause === 'P22').length).toBeGreaterThan(0);
  });
});

describe('the book', () => {
  test('an object is altered', async () => {
    const insider = new Insider(plan);
    const { report } = stageOf(insider, insider.slotOf('right'), 'grade').result as { report: string };
    insider.sql((db) => {
      db.prepare('UPDATE object SET bytes = ? WHERE digest = ?').run(
        Buffer.from('{}'),
        Buffer.from(hexOf(report as never), 'hex'),
      );
    });
    const finding = await expectFinding(insider, 'OBJECT_ALTERED', 'P16');
    expect(finding.where.object).toBe(report);
  });

  test.each(['request', 'response', 'candidate', 'report'])('a missing %s', async (name) => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const { result, objects } = stageOf(insider, slot, 'generate') as unknown as {
      result: { candidate: string };
      objects: { response: string };
    };
    const graded = stageOf(insider, slot, 'grade').result as { report: string };
    const digests = {
      request: insider.find('attempt.started', (entry) => entry.slot === slot).request as string,
      response: objects.response,
      candidate: result.candidate,
      report: graded.report,
    };
    const digest = digests[name as keyof typeof digests];
    insider.sql((db) => {
      db.prepare('DELETE FROM object WHERE digest = ?').run(Buffer.from(hexOf(digest as never), 'hex'));
    });
    const finding = await expectFinding(insider, 'OBJECT_MISSING', 'P16');
    expect(finding.where.object).toBe(digest);
    expect(finding.where.seq).not.toBeNull();
  });

  test('a rewritten time', async () => {
    const insider = new Insider(plan);
    settlementOf(insider, insider.slotOf('right')).time = insider.entries[0]?.time;
    const finding = await expectFinding(insider.rechain(), 'CHAIN_BROKEN', 'law 4');
    expect(finding.message).toContain('before');
  });

  test('a body that is not canonical', async () => {
    const insider = new Insider(plan).sql((db) => {
      db.exec("UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), ',', ', ') AS BLOB) WHERE seq = 4");
    });
    const { findings } = await look(insider);
    expect(findings.filter(({ where }) => where.seq === 4).map(({ message }) => message)).toEqual(
      expect.arrayContaining(['the body is not canonical JSON', 'the leaf is not the hash of the body']),
    );
  });

  test('INSERT OR REPLACE goes around triggers, not around hashes (F-101)', async () => {
    const insider = new Insider(plan).sql((db) => {
      db.exec(
        `INSERT OR REPLACE INTO entry SELECT seq, prev, leaf, CAST(replace(CAST(body AS TEXT), '"value":0', '"value":1') AS BLOB)
         FROM entry WHERE CAST(body AS TEXT) LIKE '%slot.settled%"value":0%'`,
      );
    });
    await expectFinding(insider, 'CHAIN_BROKEN', 'law 4');
  });

  test('an entry of an unknown form, a foreign field, a missing row', async () => {
    const insider = new Insider(plan);
    settlementOf(insider, insider.slotOf('right')).note = 'adopted by hand';
    await expectFinding(insider.rechain(), 'CHAIN_BROKEN', 'law 4');
    const gap = new Insider(plan).sql((db) => void db.exec('DELETE FROM entry WHERE seq = 5'));
    const finding = await expectFinding(gap, 'CHAIN_BROKEN', 'law 4');
    expect(finding.where.seq).toBe(6);
  });

  test('the last entries are cut off (F-111)', async () => {
    const cut = (insider: Insider, forgeAnchor: boolean) => {
      // A first attempt sends a request that no other slot sends; its replacement sends the same once more.
      const isFirst = ({ type, kind }: Loose) => type === 'attempt.started' && kind === 'first';
      insider.entries.splice(insider.entries.findLastIndex(isFirst));
      return insider.rechain({ forgeAnchor });
    };
    const { size, hash } = new Insider(plan).head();
    await expectFinding(cut(new Insider(plan), false), 'LEDGER_SHORTENED', 'law 4');
    await expectFinding(cut(new Insider(plan).removeAnchor(), true), 'OBJECT_ORPHAN', 'law 4');
    const swept = cut(new Insider(plan), true).sweep();
    expect((await look(swept)).findings).toEqual([]);
    await expectFinding(swept, 'LEDGER_SHORTENED', 'law 4', { head: { size, hash } });
  });

  test('triggers that are gone, and a table that was added', async () => {
    const naked = new Insider(plan).sql(() => undefined, { triggersBack: false });
    await expectFinding(naked, 'LEDGER_SCHEMA', 'law 4');
    const more = new Insider(plan).sql((db) => void db.exec('CREATE TABLE notes (x)'));
    await expectFinding(more, 'LEDGER_SCHEMA', 'law 4');
  });

  test('a second ledger of the same manifest', async () => {
    const insider = new Insider(plan);
    cpSync(insider.folder, join(insider.root, 'ledger/rerun'), { recursive: true });
    const finding = await expectFinding(insider, 'LEDGER_SECOND', 'law 4');
    expect(finding.where.file).toBe('ledger/rerun');
  });

  test('a work folder without an attempt (law 2); an object file without an entry is a remark', async () => {
    const insider = new Insider(plan);
    mkdirSync(join(insider.folder, 'work', 'e'.repeat(32)), { recursive: true });
    mkdirSync(join(insider.folder, 'objects/aa'), { recursive: true });
    writeFileSync(join(insider.folder, 'objects/aa', 'b'.repeat(62)), 'x');
    await expectFinding(insider, 'WORK_ORPHAN', 'law 2');
    const { findings, remarks } = await look(insider);
    expect(findings.map(({ code }) => code)).toEqual(['WORK_ORPHAN']);
    expect(remarks.join()).toContain('objects/aa/');
  });

  test('a stage that goes on after the end of its session (law 1)', async () => {
    const insider = new Insider(plan);
    const at = insider.entries.findIndex(({ type }) => type === 'run.paused');
    const [paused] = insider.entries.splice(at, 1);
    const stage = insider.entries.findLastIndex(({ type }) => type === 'stage.finished');
    if (paused !== undefined)
      insider.entries.splice(stage, 0, { ...paused, time: insider.entries[stage]?.time });
    await expectFinding(insider.rechain(), 'SESSION_OVER', 'law 1');
  });

  test('nothing is shown by arm or value before unblinding (law 8)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const stage = stageOf(insider, slot, 'grade');
    stage.result = { ...(stage.result as object), value: 1 };
    insider.rechain();
    const { findings } = await look(insider);
    expect(findings.length).toBeGreaterThan(0);
    for (const { message, evidence } of findings) {
      expect(message).toContain('withheld');
      expect(evidence).toBeNull();
    }
  });
});

describe('what is said of answers and failures', () => {
  test.each([
    ['finish_reason', 'length', '/finish_reason'],
    ['finish_reason', null, '/finish_reason'],
    ['usage', null, '/usage'],
    ['usage', { prompt_tokens: 3, completion_tokens: 9 }, '/usage/completion_tokens'],
  ])('another %s than the answer has (%s)', async (member, value, pointer) => {
    const insider = new Insider(plan);
    const stage = stageOf(insider, insider.slotOf('right'), 'generate');
    stage[member] = value;
    const finding = await expectFinding(insider.rechain(), 'ANSWER_DIFFERS', 'P21');
    expect(finding.where).toMatchObject({ seq: stage.seq, pointer });
  });

  test.each([
    ['finish_reason', 'stop'],
    ['usage', { prompt_tokens: null, completion_tokens: 1 }],
  ])('a %s where there is no answer: of a grading, and of a failure', async (member, value) => {
    for (const [task, name] of [
      ['right', 'grade'],
      ['unclear', 'generate'],
    ] as const) {
      const insider = new Insider(plan);
      stageOf(insider, insider.slotOf(task), name)[member] = value;
      await expectFinding(insider.rechain(), 'ANSWER_DIFFERS', 'P21');
    }
  });

  test.each<[string, object]>([
    ['another cause', { cause: 'body_malformed' }],
    ['a cause of the body under another status', { http_status: 502 }],
    ['a cause of the body without a status', { http_status: null }],
    ['an embedded status that the body does not name', { embedded_status: 503 }],
    ['an exception that the body does not name', { exception: 'OverloadedError' }],
    ['a cause of the status under 200', { cause: 'http_status', phase: 'headers' }],
    ['a busy server that said 200', { cause: 'queue_limit', phase: 'queue' }],
    ['an embedded status without an error body', { cause: 'connection_lost', embedded_status: 503 }],
    ['an exception without an error body', { cause: 'connection_lost', exception: 'OverloadedError' }],
  ])('%s', async (_what, edit) => {
    const insider = new Insider(plan);
    const stage = stageOf(insider, insider.slotOf('unclear'), 'generate');
    const result = stage.result as { signals: object };
    stage.result = { ...result, signals: { ...result.signals, ...edit } };
    const finding = await expectFinding(insider.rechain(), 'FAILURE_DIFFERS', 'P14');
    expect(finding.where.seq).toBe(stage.seq);
  });

  test('a body that was malformed, and not kept', async () => {
    const insider = new Insider(plan);
    const stage = stageOf(insider, insider.slotOf('unclear'), 'generate');
    const result = stage.result as { signals: object };
    stage.objects = {};
    stage.result = { ...result, signals: { ...result.signals, cause: 'body_malformed' } };
    insider.rechain().sweep();
    await expectFinding(insider, 'FAILURE_DIFFERS', 'P14');
  });

  test('a grading in this process that is said to have failed: it cannot (P11)', async () => {
    const insider = new Insider(plan);
    const slot = insider.slotOf('wrong');
    const stage = stageOf(insider, slot, 'grade');
    stage.result = {
      kind: 'failure',
      signals: {
        ...{ stage: 'grade', phase: 'running', cause: 'grader_fault', http_status: null },
        ...{ embedded_status: null, exit_status: null, signal: null, service_alive: null },
        ...{ exception: null, text: null },
      },
    };
    await expectFinding(insider.rechain(), 'FAILURE_DIFFERS', 'P11');
  });
});
