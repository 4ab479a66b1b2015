import { describe, expect, it } from 'vitest';
import { hostsIn } from '../../src/adjudication/hosts.js';
import { identityOf } from '../../src/adjudication/identity.js';
import { EvidenceMask } from '../../src/adjudication/mask.js';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { readProtocol } from '../../src/protocol/read.js';
import { OPERATORS_WORD } from '../../src/protocol/schema/services.js';
import { PROTOCOL } from '../support/small-book.js';

const { protocol } = readProtocol(Buffer.from(PROTOCOL), 'small.yaml');
const mask = new EvidenceMask({
  ...identityOf(protocol, [1_694_223_412]),
  hosts: ['mercury'],
  accounts: ['ann'],
});

const R = '⟦reward⟧';
const b64 = (text: string) => Buffer.from(text).toString('base64');
const hex = (text: string) => Buffer.from(text).toString('hex');

/** As it stands in a log, in a member of JSON, and in JSON within JSON. */
function expectMasked(text: string, masked: string): void {
  expect(mask.text(text)).toBe(masked);
  const [plain, log] = [{ log: `begin\n${text}` }, { log: `begin\n${masked}` }];
  expect(mask.text(JSON.stringify(plain))).toBe(JSON.stringify(log));
  const twice = (value: object) => JSON.stringify({ body: JSON.stringify(value) });
  expect(mask.text(twice(plain))).toBe(twice(log));
}

describe('rewards', () => {
  it.each([
    ['rewards [1, 0]', `rewards ${R}`],
    ['rewards: [1.0, 0.5]', `rewards: ${R}`],
    ['rewards (1, 0) of two', `rewards ${R} of two`],
    ['rewards=array([1., 0.])', `rewards=${R}`],
    ['<reward>1</reward>', `<reward>${R}</reward>`],
    ['<total_score unit="x"> 0.5 </total_score>', `<total_score unit="x">${R}</total_score>`],
    ['reward_total>>1', `reward_total>>${R}`],
    ['reward := 1', `reward := ${R}`],
    ['| reward | 1 |', `| reward | ${R} |`],
    ['the rewards are 0.5', `the rewards are ${R}`],
    ['score\t0.5', `score\t${R}`],
    ['outcome: success', `outcome: ${R}`],
    // test programs
    ['ALL TESTS PASSED', `tests ${R}`],
    ['Some tests failed.', `tests ${R}.`],
    ['All 5 tests passed!', `${R}!`],
    ['test_add PASSED', `test_add ${R}`],
    ['test_add FAILED [ 50%]', `test_add ${R} [ 50%]`],
    ['FAILED test_add.py::test_b - assert 1 == 2', `${R} test_add.py::test_b - assert 1 == 2`],
    ['tests/test_a.py::test_b PASSED', `tests/test_a.py::test_b ${R}`],
    ['test_add (tests.T.test_add) ... ok', `test_add (tests.T.test_add) ... ${R}`],
    ['4 passed, 1 failed', R],
    ['==== 4 passed, 1 failed, 2 warnings in 2.10s ====', `==== ${R} in 2.10s ====`],
    ['4 passed in 0.1s', `${R} in 0.1s`],
    ['3/4 tests passed', R],
    ['100% tests passed, 0 tests failed out of 3', `${R} out of 3`],
    ['Tests run: 4, Failures: 0', `Tests run: ${R}`],
    [
      '[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE! - in a.B',
      `[ERROR] Tests run: ${R}, Time elapsed: 0.1 s <<< ${R} - in a.B`,
    ],
    ['BUILD SUCCESS', `BUILD ${R}`],
    ['ok 1 - foo', `${R} 1 - foo`],
    ['not ok 2 - bar', `${R} 2 - bar`],
    ['# pass 3', `# pass ${R}`],
    ['Ran 4 tests in 0.001s\n\nOK', `Ran 4 tests in 0.001s\n\n${R}`],
    ['Ran 4 tests in 0.001s\n\nFAILED (failures=1)', `Ran 4 tests in 0.001s\n\n${R}`],
    ['FAILED (failures=1, errors=2)', R],
    ['..F.\nFAILED', `..F.\n${R}`],
    ['--- FAIL: TestAdd (0.00s)', `--- ${R}: TestAdd (0.00s)`],
    ['--- PASS: TestAdd (0.00s)', `--- ${R}: TestAdd (0.00s)`],
    ['PASS', R],
    ['ok  pkg 0.1s', `${R}  pkg 0.1s`],
    ['ok  \texample.org/pkg\t0.1s', `${R}  \texample.org/pkg\t0.1s`],
    ['FAIL\texample.org/pkg\t0.1s', `${R}\texample.org/pkg\t0.1s`],
    [
      'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s',
      `test result: ${R}. ${R}; finished in 0.00s`,
    ],
    ['test result: ok. 3 passed; 0 failed', `test result: ${R}. ${R}`],
    ['test math::adds ... FAILED', `test math::adds ... ${R}`],
    ['Tests: 1 failed, 3 passed', `Tests: ${R}`],
    ['Tests:       1 failed, 3 passed, 4 total', `Tests:       ${R}`],
    ['Tests  1 failed | 3 passed (4)', `Tests  ${R} (4)`],
    ['FAIL src/add.test.js', `${R} src/add.test.js`],
    ['  ✓ adds (2 ms)', `  ${R} adds (2 ms)`],
    ['3 passing (10ms)', `${R} (10ms)`],
    ['3 examples, 1 failure', R],
    ['[  PASSED  ] 3 tests.', `[ ${R} ] 3 tests.`],
    ['[       OK ] Add.Works (0 ms)', `[ ${R} ] Add.Works (0 ms)`],
    ['AddTest > adds() PASSED', `AddTest > adds() ${R}`],
    ['OK (4 tests, 5 assertions)', R],
    ['RESULT: PASS', `RESULT: ${R}`],
  ])('%s', expectMasked);

  it('in attributes of JUnit, and by what stands in JSON', () => {
    expect(mask.text('<testsuite name="a" tests="4" failures="1" errors="0">')).toBe(
      `<testsuite name="a" tests="${R}" failures="${R}" errors="${R}">`,
    );
    expect(mask.text('{"Action":"pass","Test":"TestAdd"}')).toBe(`{"Action":"${R}","Test":"TestAdd"}`);
    expect(mask.text('{"passed":["a"],"failed":["b","c"],"success":"true","value":0.5}')).toBe(
      `{"passed":"${R}","failed":"${R}","success":"${R}","value":"${R}"}`,
    );
  });

  it('a good and a bad end look alike', () => {
    for (const [good, bad] of [
      ['4 passed in 0.1s', '3 passed, 1 failed in 0.1s'],
      ['ok 1 - foo', 'not ok 1 - foo'],
      ['ALL TESTS PASSED', 'SOME TESTS FAILED'],
      ['Ran 4 tests in 0.1s\n\nOK', 'Ran 4 tests in 0.1s\n\nFAILED (failures=1)'],
      ['Tests run: 4, Failures: 0', 'Tests run: 4, Failures: 4'],
      ['PASS', 'FAIL'],
    ] as const) {
      expect(mask.text(good)).toBe(mask.text(bad));
    }
  });
});

describe('hosts, names, seeds', () => {
  it.each([
    ['ssh to host gpu-node-17 failed', 'ssh to host ⟦host⟧ failed'],
    ['connect to host venus port 22: refused', 'connect to host ⟦host⟧ port ⟦host⟧: refused'],
    ['lost mercury at once', 'lost ⟦host⟧ at once'],
    ['hostname=venus', 'hostname=⟦host⟧'],
    ['host: gpu-node-17 is down', 'host: ⟦host⟧ is down'],
    ['USER=bob', 'USER=⟦host⟧'],
    ['user=bob uid=1000', 'user=⟦host⟧ uid=1000'],
    [`name ${hex('M@42')} loaded`, 'name ⟦hex⟧ loaded'],
    [`name 0x${hex('base')}`, 'name 0x62617365'],
    [`name ${hex('the base model')}`, 'name ⟦hex⟧'],
    [`name ${b64('M@42')} loaded`, 'name ⟦base64⟧ loaded'],
    [`name ${b64('base')} loaded`, 'name ⟦base64⟧ loaded'],
    [`name ${b64('mercury')} loaded`, 'name ⟦base64⟧ loaded'],
    [`${b64('base')}`, '⟦base64⟧'],
    ['base model', '⟦name⟧ model'],
    ['model: obme-x', 'model: ⟦name⟧'],
    ['seed: 7', 'seed: ⟦seed⟧'],
    ['reward: 1', 'reward: ⟦reward⟧'],
    [String.raw`C:\new\table is missing`, '⟦path⟧ is missing'],
    [String.raw`\x4d\x40\x34\x32`, '⟦name⟧'],
  ])('%s', (text, masked) => {
    // A prefix that belongs to the digits hides where they begin; everything else is found.
    if (text.includes('0x')) expect(mask.text(text)).not.toContain(hex('base'));
    else if (/^\\x|^C:/.test(text)) expect(mask.text(text)).toBe(masked);
    else expectMasked(text, masked);
  });

  it('hosts are those that the ledger names', () => {
    const gate = { type: 'gate.passed', host: { node: 'v20.20.0', platform: 'linux', arch: 'x64' } };
    const frame = { prev: '0'.repeat(64), time: '2026-11-30T00:00:00.000Z' };
    const id = '1'.repeat(32);
    const entries = [
      {
        ...gate,
        session: id,
        manifest: `sha256:${'0'.repeat(64)}`,
        files: 1,
        bytes: 1,
        process: { boot_id: 'b', pid: 1, started: '1' },
        host: { ...gate.host, slurm_job: '481516' },
        selection: {},
      },
      ...['http://venus.lab.example:8000', 'http://10.1.2.3:8000'].map((origin) => ({
        type: 'service.attached',
        session: id,
        service: 'base#1',
        model: 'base',
        origin,
        accepted: OPERATORS_WORD,
        effective: null,
        seconds: 1,
      })),
    ].map((entry, i) => ({ ...entry, ...frame, seq: i + 1 }));
    const rows = function* () {
      for (const entry of entries) {
        const leaf = Buffer.alloc(32);
        yield { seq: entry.seq, prev: leaf, leaf, body: canonicalBytes(entry) };
      }
    };
    const hosts = hostsIn({ rows });
    expect(hosts).toEqual(['481516', 'venus.lab.example', 'venus', '10.1.2.3']);
    const own = new EvidenceMask(identityOf(protocol, [], hosts));
    expect(own.text('job 481516 on Venus')).toBe('job ⟦host⟧ on ⟦host⟧');
  });

  it('of an environment and of a process an account is a host; what is asked of a model is not', () => {
    expect(mask.text('{"HOME":"/home/ann","USER":"bob","uid":1000}')).toContain('"USER":"⟦host⟧"');
    expect(mask.text('{"user":"bob","uid":1000}')).toBe('{"user":"⟦host⟧","uid":1000}');
    expect(mask.text('{"user":"ann"}')).toBe('{"user":"⟦host⟧"}');
  });
});

describe('what stays whole', () => {
  it.each([
    '{"prompt":{"system":null,"user":"5+7="}}',
    '{"prompt":{"system":"Answer with a number.","user":"Who is Ann? Say it in one word."}}',
    '{"prompt":{"system":null,"user":"hello"}}',
    '{"messages":[{"role":"user","content":"Say hello"}]}',
    '{"user":"Write a test. All of them."}',
    'the tests passed to the function',
    'tests passed as arguments, tests failed over to the second node',
    '+  ok = True',
    '-    return ok, 1',
    '+ok := run(1)',
    'it looks ok 1 or 2 times',
    'Checking the disk ... ok',
    'OK',
    'HTTP/1.1 200 OK',
    'after 3 failed attempts to connect',
    '2 errors generated.',
    'latest ERROR: no space left on device',
    'ERROR: connection refused',
    'Failed to start the grader',
    '[FAILED] Failed to start docker.service',
    '[  OK  ] Started docker.service',
    'systemd: unit entered failed state',
    'health checks passed',
    'model: not found on this server',
    'model_error: out of memory',
    '{"model_load_error":"CUDA out of memory"}',
    '{"score_error":"division by zero"}',
    '{"outcome":"the server closed the connection"}',
    'grade: exit status 1 after 3 s',
    '{"grade":{"stderr":"no such file or directory"}}',
    'host: connection refused',
    'host key verification failed',
    'server: uvicorn',
    '{"server":"nginx/1.25.3"}',
    '{"node":"v20.20.0"}',
    '{"failed":"connection refused by peer"}',
    '{"value":"not a number at all"}',
    '{"user":"someone"}',
    'date: unknown option',
    'workspace: read only',
    'port: already in use',
    'seed: not set by the caller',
    'resolved: no address for name',
    'checkpoint: not enough space left',
    'the passage of time, a compass, bypass 3',
    'a score of years; points of interest',
    'if (reward) { return }',
    hex('nothing to see here'),
    b64('nothing to see'),
    'deadbeefcafe 0123456789',
  ])('%s', (text) => {
    expect(mask.text(text)).toBe(text);
    const log = JSON.stringify({ log: `begin\n${text}\nend` });
    expect(mask.text(log)).toBe(log);
  });
});

it('in time that grows with the text alone', () => {
  for (const part of [
    'test',
    'test ',
    '3 passed, ',
    '<a>',
    'ok 1\n',
    '[',
    'reward [',
    '(1,',
    '\\n',
    'base',
    'YmFzZQ',
    'PASSED ',
    '1 test ',
    'Ran 1 test in 1s\n',
    ' > a',
    'host ',
    '....\n',
  ]) {
    expect(mask.text(part.repeat(20_000)).length).toBeGreaterThan(0);
  }
});
