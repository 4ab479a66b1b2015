import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync, inflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { Findings } from '../../../src/audit/finding.js';
import { auditCommitOrder, type CommitOrderVerdict } from '../../../src/audit/repository/commit-order.js';
import type { GitOptions } from '../../../src/audit/repository/git.js';
import { rejectionOf } from '../../signing/support.js';
import { newFolder, TestRepository } from './support.js';

const PLAN = 'the manifest, byte for byte';
const REPORT = 'the report';
const NOTE = 'the newest checkpoint';
const PLAN_PATH = 'manifests/tiny.r1.json';

interface Judged extends CommitOrderVerdict {
  readonly findings: readonly { readonly code: string; readonly message: string }[];
}

async function judge(
  { folder }: { readonly folder: string },
  commit: string | null = null,
  options: GitOptions = {},
): Promise<Judged> {
  const findings = new Findings();
  const results = [
    { label: 'the report', bytes: Buffer.from(REPORT) },
    { label: 'the checkpoint', bytes: Buffer.from(NOTE) },
  ];
  const verdict = await auditCommitOrder(
    { folder, manifest: Buffer.from(PLAN), results, commit },
    findings,
    options,
  );
  return { ...verdict, findings: findings.list(true) };
}

/** Plan first, some work, then the report. */
function lawful(...args: string[]): { repository: TestRepository; plan: string; report: string } {
  const repository = new TestRepository(...args);
  repository.commit({ 'README.md': 'x' });
  const plan = repository.commit({ [PLAN_PATH]: PLAN });
  repository.commit({ 'notes.md': 'y' });
  const report = repository.commit({ 'results/report.json': REPORT });
  repository.commit({ 'README.md': 'z' });
  return { repository, plan, report };
}

function expectProved(
  verdict: Judged,
  plan: string,
  results: string,
  label: string,
  steps: number,
  path = PLAN_PATH,
): void {
  expect(verdict.findings).toEqual([]);
  expect(verdict.order).toEqual([
    `commit ${plan} holds the manifest (${path}) and comes before commit ${results}, which holds ${label}: ${steps} ${steps === 1 ? 'step' : 'steps'}, hash by hash`,
  ]);
  expect(verdict.notChecked[0]).toContain('when the commits were made');
}

function expectOpen(verdict: Judged, reason: RegExp): void {
  expect(verdict.findings).toEqual([]);
  expect(verdict.order).toEqual([]);
  expect(verdict.notChecked.join('\n')).toMatch(/^whether the manifest was committed before the results: /);
  expect(verdict.notChecked.join('\n')).toMatch(reason);
}

function expectFinding(verdict: Judged, message: RegExp): void {
  expect(verdict.findings).toMatchObject([{ code: 'COMMIT_ORDER' }]);
  expect(verdict.findings[0]?.message).toMatch(message);
  expect(verdict.order).toEqual([]);
}

describe('the plan was committed first', () => {
  test.each([[[]], [['--object-format=sha256']]])('on one line (git init %j)', async (args) => {
    const { repository, plan, report } = lawful(...args);
    expectProved(await judge(repository), plan, report, 'the report', 2);
  });

  test('the newest thing that any commit holds stands for the results', async () => {
    const repository = new TestRepository();
    const plan = repository.commit({ [PLAN_PATH]: PLAN });
    const note = repository.commit({ 'checkpoints/9.note': NOTE });
    expectProved(await judge(repository), plan, note, 'the checkpoint', 1);
  });

  test('on a branch that was merged, and by a merge that brought it itself', async () => {
    const repository = new TestRepository();
    repository.commit({ a: '1' });
    repository.git('checkout', '-q', '-b', 'plan');
    const plan = repository.commit({ [PLAN_PATH]: PLAN });
    repository.git('checkout', '-q', 'main');
    repository.commit({ b: '2' });
    repository.git('merge', '-q', '--no-ff', '-m', 'merge', 'plan');
    const merge = repository.git('rev-parse', 'HEAD');
    const report = repository.commit({ 'report.json': REPORT });
    // The nearest commit that brings it into the history is the merge.
    expectProved(await judge(repository), merge, report, 'the report', 1);
    expect(repository.git('merge-base', '--is-ancestor', plan, merge)).toBe('');

    const evil = new TestRepository();
    evil.commit({ a: '1' });
    evil.git('checkout', '-q', '-b', 'side');
    evil.commit({ b: '2' });
    evil.git('checkout', '-q', 'main');
    evil.commit({ c: '3' });
    evil.git('merge', '-q', '--no-commit', '--no-ff', 'side');
    const brought = evil.commit({ [PLAN_PATH]: PLAN }, 'a merge that adds the plan');
    const after = evil.commit({ 'report.json': REPORT });
    expectProved(await judge(evil), brought, after, 'the report', 1);
  });

  test('a copy of the results without history elsewhere is named', async () => {
    const { repository, plan, report } = lawful();
    repository.git('checkout', '-q', '--orphan', 'pages');
    repository.git('rm', '-rfq', '.');
    const copy = repository.commit({ 'index.json': REPORT });
    const verdict = await judge(repository);
    expectProved(verdict, plan, report, 'the report', 2);
    expect(verdict.notChecked[1]).toBe(
      `whether commit ${copy}, which holds the report too and no manifest in its history, came later`,
    );
  });

  test('a plan that was removed later, and odd names', async () => {
    const repository = new TestRepository();
    const odd = 'größe \n "x"/-plan ñ.json';
    const plan = repository.commit({ [odd]: PLAN });
    repository.commit({ [odd]: null });
    const report = repository.commit({ '--report.json': REPORT });
    expectProved(await judge(repository), plan, report, 'the report', 2, odd);
  });

  test('in a subfolder, and in a bare clone', async () => {
    const { repository, plan, report } = lawful();
    expectProved(await judge({ folder: join(repository.folder, 'results') }), plan, report, 'the report', 2);
    const bare = newFolder();
    repository.git('clone', '-q', '--bare', repository.folder, bare);
    expectProved(await judge({ folder: bare }), plan, report, 'the report', 2);
  });
});

describe('the plan was not committed first', () => {
  test('results before the plan (F-173)', async () => {
    const repository = new TestRepository();
    const report = repository.commit({ 'report.json': REPORT });
    repository.commit({ a: '1' });
    repository.commit({ [PLAN_PATH]: PLAN });
    expectFinding(
      await judge(repository),
      new RegExp(`${report} holds the report \\(report.json\\) and comes before every`),
    );
  });

  test('results before the plan, removed and added again after it', async () => {
    const repository = new TestRepository();
    const report = repository.commit({ 'report.json': REPORT });
    repository.commit({ 'report.json': null });
    repository.commit({ [PLAN_PATH]: PLAN });
    repository.commit({ 'report.json': REPORT });
    expectFinding(
      await judge(repository),
      new RegExp(`${report} holds the report \\(report.json\\) and comes before every`),
    );
  });

  test('a manifest that was rewritten after the results', async () => {
    const repository = new TestRepository();
    repository.commit({ [PLAN_PATH]: 'another manifest' });
    const report = repository.commit({ 'report.json': REPORT });
    repository.commit({ [PLAN_PATH]: PLAN });
    expectFinding(await judge(repository), new RegExp(report));
  });

  test('a manifest that no commit holds, or only a branch beside', async () => {
    const repository = new TestRepository();
    repository.commit({ [PLAN_PATH]: 'another manifest' });
    const report = repository.commit({ 'report.json': REPORT });
    expectFinding(
      await judge(repository),
      new RegExp(`${report} holds the report \\(report.json\\); no commit holds the manifest as it is now`),
    );
    repository.git('checkout', '-q', '-b', 'beside', 'HEAD~1');
    const beside = repository.commit({ [PLAN_PATH]: PLAN });
    expectFinding(await judge(repository), new RegExp(`not in its history but in that of ${beside}`));
  });

  test('a squashed history shows neither', async () => {
    const repository = new TestRepository();
    repository.commit({ a: '1' });
    const both = repository.commit({ [PLAN_PATH]: PLAN, 'report.json': REPORT });
    repository.commit({ a: '2' });
    expectOpen(
      await judge(repository),
      new RegExp(`commit ${both} brings the manifest and the report at once`),
    );
  });

  test('no results, or nothing at all', async () => {
    const repository = new TestRepository();
    repository.commit({ a: '1' });
    expectOpen(await judge(repository), /no commit holds the manifest, and none a report/);
    const plan = repository.commit({ [PLAN_PATH]: PLAN });
    expectOpen(
      await judge(repository),
      new RegExp(`commit ${plan} holds the manifest \\(${PLAN_PATH}\\); none holds a report`),
    );
    expectOpen(await judge(new TestRepository()), /no commit holds the manifest/);
  });
});

describe("a ledger's own copy of the manifest is no plan", () => {
  const COPY = `ledger/tiny.r1.0123456789ab/objects/5f/${'3a'.repeat(31)}`;

  test('results with their ledger, then the manifest', async () => {
    const repository = new TestRepository();
    const ledger = repository.commit({ [COPY]: PLAN, 'report.json': REPORT });
    const plan = repository.commit({ [PLAN_PATH]: PLAN });
    expectFinding(
      await judge(repository),
      new RegExp(
        `^commit ${ledger} holds a ledger of it \\(${COPY}\\) and comes before every commit with the manifest, the first of them ${plan}$`,
      ),
    );
  });

  test('also where the report, or the commit that is named, came after the manifest', async () => {
    const repository = new TestRepository();
    const ledger = repository.commit({ [COPY]: PLAN });
    repository.commit({ [PLAN_PATH]: PLAN });
    repository.commit({ 'report.json': REPORT });
    expectFinding(await judge(repository), new RegExp(`^commit ${ledger} holds a ledger of it`));
    expectFinding(await judge(repository, 'main'), new RegExp(`^commit ${ledger} holds a ledger of it`));
  });

  test('a head or checkpoint before the manifest counts although the report came after it', async () => {
    const repository = new TestRepository();
    const note = repository.commit({ '9.note': NOTE });
    repository.commit({ [PLAN_PATH]: PLAN });
    repository.commit({ 'report.json': REPORT });
    expectFinding(await judge(repository), new RegExp(`^commit ${note} holds the checkpoint \\(9.note\\)`));
    const clone = newFolder();
    repository.git('clone', '-q', '--depth', '2', `file://${repository.folder}`, clone);
    expect((await judge({ folder: clone })).order).toHaveLength(1);
  });

  test('a ledger without any manifest holds none', async () => {
    const repository = new TestRepository();
    repository.commit({ [COPY]: PLAN });
    repository.commit({ 'report.json': REPORT });
    expectFinding(await judge(repository), /no commit holds the manifest as it is now/);
  });

  test('a commit that brings both is passed, and said', async () => {
    const repository = new TestRepository();
    const both = repository.commit({ [COPY]: PLAN, [PLAN_PATH]: PLAN });
    const report = repository.commit({ 'report.json': REPORT });
    const verdict = await judge(repository);
    expectProved(verdict, both, report, 'the report', 1);
    expect(verdict.notChecked[1]).toBe(
      `whether the manifest was committed before the run began: commit ${both} brings it and a ledger of it at once`,
    );
  });

  test('the plan, then its ledger', async () => {
    const repository = new TestRepository();
    const plan = repository.commit({ [PLAN_PATH]: PLAN });
    const report = repository.commit({ [COPY]: PLAN, 'report.json': REPORT });
    const verdict = await judge(repository);
    expectProved(verdict, plan, report, 'the report', 1);
    expect(verdict.notChecked).toHaveLength(1);
  });
});

describe('a commit that a person names', () => {
  test('by id, branch or tag, also where no branch leads to it', async () => {
    const { repository, plan, report } = lawful();
    repository.git('tag', 'results', report);
    for (const name of [report, report.slice(0, 12), 'results', 'main~1']) {
      const verdict = await judge(repository, name);
      expectProved(verdict, plan, report, 'the results, as was said', 2);
      expect(verdict.notChecked[1]).toBe(
        'whether the commit that was named as that of the results holds them',
      );
    }
    repository.git('checkout', '-q', '--detach', 'main');
    const loose = repository.commit({ b: '5' });
    repository.git('checkout', '-q', 'main');
    expectProved(await judge(repository, loose), plan, loose, 'the results, as was said', 4);
    expectFinding(await judge(repository, `${plan}~1`), /comes before every commit with the manifest/);
    expectOpen(await judge(repository, plan), /at once/);
  });

  test.each(['nothing', '--all', 'HEAD:README.md', '', '-h', 'a\nb'])('%j is none', async (name) => {
    const { repository } = lawful();
    const error = await rejectionOf(judge(repository, name));
    expect(error.code).toBe('REPOSITORY_INVALID');
    expect(error.exitCode).toBe(2);
  });
});

describe('history that is not all there', () => {
  test('a shallow clone', async () => {
    const { repository } = lawful();
    const clone = newFolder();
    repository.git('clone', '-q', '--depth', '1', `file://${repository.folder}`, clone);
    expectOpen(await judge({ folder: clone }), /a shallow clone lacks history/);
    const deep = newFolder();
    repository.git('clone', '-q', '--depth', '4', `file://${repository.folder}`, deep);
    // What is there suffices.
    expect((await judge({ folder: deep })).order).toHaveLength(1);
  });

  test('a shallow clone whose results come before the plan as far as it goes', async () => {
    const repository = new TestRepository();
    repository.commit({ [PLAN_PATH]: PLAN });
    repository.commit({ [PLAN_PATH]: null, 'report.json': REPORT });
    repository.commit({ [PLAN_PATH]: PLAN });
    const clone = newFolder();
    repository.git('clone', '-q', '--depth', '2', `file://${repository.folder}`, clone);
    expectOpen(await judge({ folder: clone }), /a shallow clone/);
  });

  test('a partial clone fetches nothing', async () => {
    const { repository } = lawful();
    repository.git('config', 'uploadpack.allowFilter', 'true');
    const clone = newFolder();
    const from = ['--no-checkout', '--filter=blob:none', `file://${repository.folder}`];
    repository.git('clone', '-q', ...from, clone);
    const verdict = await judge({ folder: clone });
    expect(verdict.findings).toEqual([]);
    expect(verdict.order).toEqual([]);
    expect(verdict.notChecked[0]).toMatch(/whether the manifest was committed before the results/);
  });
});

describe('without git or a repository', () => {
  test('no repository', async () => {
    const error = await rejectionOf(judge({ folder: newFolder() }));
    expect(error.code).toBe('REPOSITORY_INVALID');
    expect(error.message).toContain('not a git repository');
    expect((await rejectionOf(judge({ folder: '/no/such/folder' }))).code).toBe('REPOSITORY_INVALID');
  });

  test('git is missing, does not end, or never stops talking: said, not thrown', async () => {
    const { repository } = lawful();
    expectOpen(await judge(repository, null, { program: '/no/such/git' }), /does not run \(ENOENT\)/);
    const folder = newFolder();
    const script = (name: string, body: string): string => {
      const path = join(folder, name);
      writeFileSync(path, `#!/bin/sh\n${body}\n`);
      chmodSync(path, 0o755);
      return path;
    };
    const slow = { program: script('slow', 'exec sleep 60'), timeoutMs: 200 };
    expectOpen(await judge(repository, null, slow), /did not end within 0.2 seconds/);
    expectOpen(
      await judge(repository, null, { program: script('loud', 'exec yes') }),
      /says more than is read/,
    );
    const failing = script(
      'failing',
      'case "$*" in *rev-parse*) echo false; exit 0;; esac; echo broken >&2; exit 128',
    );
    expectOpen(await judge(repository, null, { program: failing }), /git \S+ failed: broken/);
  });
});

describe('a hostile repository', () => {
  test('runs no program of its choice', async () => {
    const { repository, plan, report } = lawful();
    const marker = join(repository.folder, 'ran');
    const script = join(repository.folder, 'evil.sh');
    writeFileSync(script, `#!/bin/sh\necho "$0 $*" >> ${marker}\ncat >/dev/null 2>&1\nexit 0\n`);
    chmodSync(script, 0o755);
    for (const [key, value] of [
      ['core.fsmonitor', script],
      ['core.hooksPath', repository.folder],
      ['core.pager', script],
      ['core.editor', script],
      ['core.sshCommand', script],
      ['core.askPass', script],
      ['core.alternateRefsCommand', script],
      ['core.gitProxy', script],
      ['pager.log', script],
      ['log.showSignature', 'true'],
      ['gpg.program', script],
      ['gpg.ssh.program', script],
      ['gpg.x509.program', script],
      ['diff.external', script],
      ['diff.evil.textconv', script],
      ['diff.evil.command', script],
      ['filter.evil.clean', script],
      ['filter.evil.smudge', script],
      ['filter.evil.process', script],
      ['credential.helper', script],
      ['alias.log', `!${script}`],
      ['alias.rev-list', `!${script}`],
      ['remote.origin.url', `ext::${script}`],
      ['remote.origin.promisor', 'true'],
      ['protocol.ext.allow', 'always'],
      ['uploadpack.packObjectsHook', script],
      ['trace2.eventTarget', marker],
    ] as const) {
      repository.git('config', key, value);
    }
    for (const hook of [
      'post-index-change',
      'reference-transaction',
      'post-checkout',
      'fsmonitor-watchman',
    ]) {
      writeFileSync(join(repository.folder, hook), readFileSync(script));
      chmodSync(join(repository.folder, hook), 0o755);
    }
    writeFileSync(join(repository.folder, '.git/info/attributes'), '* diff=evil filter=evil\n');
    // A commit that claims a signature, so that a look at signatures would start a program.
    const signature = 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n';
    const raw = repository.git('cat-file', 'commit', 'HEAD').replace(/^(committer .*\n)/m, `$1${signature}`);
    const signed = repository.pipe(raw, 'hash-object', '-t', 'commit', '-w', '--stdin');
    repository.git('update-ref', 'refs/heads/signed', signed);
    rmSync(marker, { force: true });
    const verdict = await judge(repository);
    expectProved(verdict, plan, report, 'the report', 2);
    expect((await judge(repository, 'f'.repeat(40)).catch((error: unknown) => error)) instanceof Error).toBe(
      true,
    );
    expect(existsSync(marker) ? readFileSync(marker, 'utf8') : '').toBe('');
  });

  test('replaced objects and grafts do not make the plan older', async () => {
    const repository = new TestRepository();
    const report = repository.commit({ 'report.json': REPORT });
    const later = repository.commit({ 'report.json': `${REPORT}.` });
    repository.git('checkout', '-q', '--orphan', 'plan');
    repository.git('rm', '-rfq', '.');
    const plan = repository.commit({ [PLAN_PATH]: PLAN });
    repository.git('replace', '--graft', report, plan);
    repository.write('.git/info/grafts', `${report} ${plan}\n${later} ${plan}\n`);
    expect(repository.git('log', '--format=%H', report)).toContain(plan);
    expectFinding(
      await judge(repository),
      new RegExp(`${report} holds the report \\(report.json\\); the manifest is not in its history`),
    );
  });

  test('a commit whose content is not what its name says proves nothing', async () => {
    const repository = new TestRepository();
    const report = repository.commit({ 'report.json': REPORT });
    repository.git('checkout', '-q', '--orphan', 'plan');
    repository.git('rm', '-rfq', '.');
    const plan = repository.commit({ [PLAN_PATH]: PLAN });
    // The commit of the report gets the plan for a parent, and keeps its name.
    rewriteObject(repository, report, (content) => content.replace(/^(tree .*\n)/, `$1parent ${plan}\n`));
    expect(repository.git('log', '--format=%H', report)).toContain(plan);
    expectOpen(await judge(repository), new RegExp(`the commit ${report} has another hash`));
  });

  test('a tree whose content is not what its name says proves nothing', async () => {
    const repository = new TestRepository();
    const plan = repository.commit({ 'plan.json': 'the plan as it was' });
    repository.commit({ 'report.json': REPORT });
    const now = repository.pipe(PLAN, 'hash-object', '-w', '--stdin');
    const was = repository.git('rev-parse', `${plan}:plan.json`);
    const tree = repository.git('rev-parse', `${plan}^{tree}`);
    rewriteObject(repository, tree, (content) =>
      content.replace(Buffer.from(was, 'hex').toString('latin1'), Buffer.from(now, 'hex').toString('latin1')),
    );
    expectOpen(await judge(repository), /has another hash|no commit holds|damaged|failed/);
  });
});

/** Puts other content under the name of a loose object. */
function rewriteObject(repository: TestRepository, id: string, change: (content: string) => string): void {
  const path = join(repository.folder, '.git/objects', id.slice(0, 2), id.slice(2));
  const raw = inflateSync(readFileSync(path)).toString('latin1');
  const end = raw.indexOf('\0');
  const type = raw.slice(0, raw.indexOf(' '));
  const content = change(raw.slice(end + 1));
  const bytes = Buffer.from(`${type} ${content.length}\0${content}`, 'latin1');
  expect(createHash('sha1').update(bytes).digest('hex')).not.toBe(id);
  chmodSync(path, 0o644);
  writeFileSync(path, deflateSync(bytes));
}
