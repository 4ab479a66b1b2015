import { describe, expect, it } from 'vitest';
import { identityOf } from '../../src/adjudication/identity.js';
import { EvidenceMask } from '../../src/adjudication/mask.js';
import { attemptId } from '../../src/attempts/slot-state.js';
import { readProtocol } from '../../src/protocol/read.js';
import { resolveTaskSets } from '../../src/protocol/tasks.js';
import { CommandAdapter } from '../../src/runner/adapters/command.js';
import { buildRequest } from '../../src/runner/adapters/openai-request.js';
import { jobOf } from '../../src/runner/plan-queue.js';
import { expandSlots } from '../../src/slots/plan.js';
import { PROTOCOL, TASKS } from '../support/small-book.js';

const SEED = 1_694_223_412;

function maskOf(edit: (text: string) => string = (text) => text): EvidenceMask {
  const protocol = protocolOf(edit(PROTOCOL));
  return new EvidenceMask({ ...identityOf(protocol, [SEED]), hosts: ['gpu-17'] });
}

const mask = maskOf();

describe('evidence is masked', () => {
  it.each([
    ['a member of JSON', '{"model":"M@42","seed":42,"n":1}', '{"model":"⟦name⟧","seed":"⟦seed⟧","n":1}'],
    ['JSON with blanks', '{ "reward" : 0.5, "log": "x" }', '{ "reward" : "⟦reward⟧", "log": "x" }'],
    [
      'JSON inside a string',
      String.raw`{"log":"{\"reward\": 1.0, \"a\": 2}"}`,
      String.raw`{"log":"{\"reward\": \"⟦reward⟧\", \"a\": 2}"}`,
    ],
    ['an object below a name', '{"scores":{"a":[1,{"b":"}"}]},"c":3}', '{"scores":"⟦reward⟧","c":3}'],
    ['tests of a report', '{"tests":{"adds":"pass"},"task":"t"}', '{"tests":"⟦reward⟧","task":"t"}'],
    ['what is cut short', '{"a":1,"reward":{"x":1,"y":', '{"a":1,"reward":"⟦reward⟧"'],
    ['a string that is cut short', '{"model":"M@4', '{"model":"⟦name⟧"'],
    ['Python', "{'reward': 0.25, 'ok': True}", "{'reward': '⟦reward⟧', 'ok': True}"],
    ['a log', 'final_reward=1.0 after 3 s; score: 0.5', 'final_reward=⟦reward⟧ after 3 s; score: ⟦reward⟧'],
    ['a sentence', 'the reward is 0.75 now', 'the reward is ⟦reward⟧ now'],
    ['a number beside a name', 'accuracy 0.875', 'accuracy ⟦reward⟧'],
    ['names in capitals and camel case', 'totalScore: 12', 'totalScore: ⟦reward⟧'],
    ['test programs', '3 passed, 1 failed in 2.1s', '⟦reward⟧ in 2.1s'],
    ['lines of test programs', 'tests/test_a.py::test_b PASSED', 'tests/test_a.py::test_b ⟦reward⟧'],
    ['names', 'loading base and M for default', 'loading ⟦name⟧ and ⟦name⟧ for ⟦name⟧'],
    ['names with seeds', 'served as M@42, from M-42', 'served as ⟦name⟧, from ⟦name⟧'],
    ['no part of another word', 'database64 Mmm', 'database64 Mmm'],
    ['sampling seeds', `drawn with ${SEED}.`, 'drawn with ⟦seed⟧.'],
    ['no part of another number', `x${SEED}1`, `x${SEED}1`],
    [
      'short seeds where they are called so',
      '--seed 42 seed=7 42 apples',
      '--seed=⟦seed⟧ seed=⟦seed⟧ 42 apples',
    ],
    ['escapes', String.raw`{"\u0072eward":1,"x":"\u004d@42"}`, '{"reward":"⟦reward⟧","x":"⟦name⟧"}'],
    ['URLs', 'POST http://10.0.0.7:9000/v1/chat/completions', 'POST http://⟦host⟧/v1/chat/completions'],
    ['paths in URLs', 'https://h.example/get?f=%2Fhome%2Fann%2Fmodels%2FM-42', 'https://⟦host⟧/get?f=⟦path⟧'],
    [
      'addresses',
      'connect to 10.1.2.3:8000 and localhost:80 on gpu-17',
      'connect to ⟦host⟧ and ⟦host⟧ on ⟦host⟧',
    ],
    ['paths', 'open /data/models/M-42/model.safetensors failed', 'open ⟦path⟧ failed'],
    ['the file of a fault', 'File "/home/ann/w/verifier.py", line 3', 'File "⟦path⟧/verifier.py", line 3'],
    [
      'not the folders of a system',
      'File "/usr/lib/python3.11/json/decoder.py"',
      'File "/usr/lib/python3.11/json/decoder.py"',
    ],
    ['fractions stay', 'and/or 1/2', 'and/or 1/2'],
    [
      'digests and ids',
      `object sha256:${'ab'.repeat(32)} of ${'0f'.repeat(16)}`,
      'object ⟦digest⟧ of ⟦digest⟧',
    ],
    [
      'times',
      '2026-11-30T12:51:26.123Z and Nov 30 12:51:26, created 1790000000',
      '⟦time⟧ and ⟦time⟧, created ⟦time⟧',
    ],
    [
      'base64 of what is masked',
      `x ${Buffer.from('the model is M@42, ok?').toString('base64')} y`,
      'x ⟦base64⟧ y',
    ],
    [
      'not base64 of other things',
      Buffer.from('nothing to see here, ok').toString('base64'),
      Buffer.from('nothing to see here, ok').toString('base64'),
    ],
    ['exceptions stay', 'RewardFileNotFoundError: no file', 'RewardFileNotFoundError: no file'],
    ['arguments', '["--seed", "42", "-v", "1"]', '["--seed", "⟦seed⟧", "-v", "1"]'],
    ['seeds in names', 'runs/seed42/log and seed-42', 'runs/⟦name⟧/log and ⟦name⟧'],
    ['processes', 'pid=4711 killed', 'pid=⟦host⟧ killed'],
  ])('%s', (_, text, masked) => {
    expect(mask.text(text)).toBe(masked);
  });

  it('by placeholders whose length does not tell', () => {
    expect(mask.text('{"reward":0}')).toBe(mask.text('{"reward":0.123456789}'));
    expect(mask.text('M')).toBe(mask.text('base'));
    expect(mask.text('seed=1')).toBe(mask.text('seed=123456'));
  });

  it('again without a change', () => {
    const once = mask.text('{"reward":1,"model":"M@42","path":"/a/b/c.py"} at 10.0.0.1:80');
    expect(mask.text(once)).toBe(once);
  });

  const TWO = `  default:
    prompt: { system: "Answer with a number.", user: "{question}" }
    decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    reasoning: off
    grader: { kind: integer, answer: answer }
  warm:
    prompt: { system: "Answer with care.", user: "{question}" }
    decoding: { temperature: 0.5, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 }
    reasoning: off
    grader: { kind: integer, answer: answer }
arms:
  M: { model: M, condition: warm }`;

  it('settings and prompts, where arms differ in them and only there', () => {
    const other = maskOf((text) =>
      text.replace(/ {2}default:[\s\S]*?M: \{ model: M, condition: default \}/, TWO),
    );
    const request = '{"messages":[{"role":"system","content":"x"}],"temperature":0.5,"top_p":1}';
    expect(other.text(request)).toBe('{"messages":"⟦prompt⟧","temperature":"⟦setting⟧","top_p":1}');
    expect(mask.text(request)).toBe(request);
  });

  const OTHER = `arms:
  M: { model: M, condition: warm }`;

  it.each([
    ['a server', null],
    ['a server, where conditions differ', TWO],
    ['a command', null],
    ['a command, where conditions differ', TWO],
  ] as const)('requests to %s do not tell arms apart', (runner, conditions) => {
    const edit = (text: string) =>
      conditions === null
        ? text
        : text.replace(/ {2}default:[\s\S]*?M: \{ model: M, condition: default \}/, () => conditions);
    const protocol = protocolOf(edit(PROTOCOL));
    expect(conditions === null || conditions.includes(OTHER)).toBe(true);
    const rows = TASKS.map((task) => `${JSON.stringify(task)}\n`).join('');
    const files = { 'tasks/all': rows, 'tasks/two': 'sum-1\nsum-2\n' };
    const bytes = new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]));
    const { ids, tasks } = resolveTaskSets(protocol, bytes);
    const slots = [...expandSlots(protocol, ids)].filter(
      ({ queue, task, rep }) => queue === 'main' && task === 'sum-1' && rep === 0,
    );
    const works = slots.flatMap((slot) => jobOf(protocol, tasks, slot)?.work ?? []);
    expect(works.map(({ model }) => model).sort()).toEqual(['M@42', 'base']);
    const own = new EvidenceMask(
      identityOf(
        protocol,
        works.map(({ samplingSeed }) => samplingSeed),
      ),
    );
    const modelPaths = (model: string) => ({ weights: `/weights/${model}`, tokenizer: null });
    const texts = works.map((work) => {
      const { condition, model, fields, samplingSeed, slot } = work;
      const request = runner.startsWith('a server')
        ? buildRequest('chat', condition, model, fields, samplingSeed)
        : new CommandAdapter({ modelPaths } as never).request(work, attemptId(slot.id, 1));
      return own.text(request.toString('utf8'));
    });
    expect(texts[0]).toBe(texts[1]);
    expect(texts[0]).toContain(conditions === null ? '5+7=' : '⟦prompt⟧');
  });

  it('in time that grows with the text alone', () => {
    for (const part of ['{"a":', '"reward":[', '\\"', '/a', 'a.b-', 'score ', 'M@']) {
      expect(mask.text(part.repeat(20_000)).length).toBeGreaterThan(0);
    }
  });
});

function protocolOf(text: string) {
  return readProtocol(Buffer.from(text), 'small.yaml').protocol;
}
