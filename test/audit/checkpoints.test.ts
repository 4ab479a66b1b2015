import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type AuditOptions, audit } from '../../src/audit/audit.js';
import { renderAudit } from '../../src/audit/render.js';
import { command } from '../../src/commands/audit.js';
import { type Checkpoint, checkpointOf, signCheckpoint } from '../../src/ledger/checkpoint.js';
import { keyOfLedger, parseOrigin } from '../../src/ledger/origin.js';
import { verifyConsistency } from '../../src/ledger/proofs.js';
import { parsePolicy } from '../../src/ledger/witness-policy.js';
import { formatVerifierKey, generateKey } from '../../src/signing/keys.js';
import { commandContext } from '../commands/context.js';
import { cosigned } from '../ledger/notes.js';
import { type Trial, trial } from '../runner/fixture.js';
import { Insider } from './insider.js';

const KEY = generateKey('lab.example');
const WITNESS = generateKey('w.example', 'cosignature');
const KEYS = { keys: [KEY.verifier] };
const POLICY = parsePolicy(
  Buffer.from(
    `log ${formatVerifierKey(KEY.verifier)}\nwitness w ${formatVerifierKey(WITNESS.verifier)}\nquorum w\n`,
  ),
);

let plan: Trial;
/** The first and the last signed checkpoint of the ledger. */
let sizes: { first: number; last: number };

beforeAll(async () => {
  plan = await trial({
    prompts: { right: 'right a', wrong: 'wrong b' },
    reps: 3,
    attempts: '{ replacements: 1, regrades: 1, breaker: 50, rules: [] }\ncheckpoints: { every_attempts: 2 }',
  });
  await plan.run({ workers: 1, key: KEY });
  const written = (await plan.of('checkpoint')).map(({ size }) => size);
  sizes = { first: written[0] ?? 0, last: written.at(-1) ?? 0 };
}, 60_000);

class Auditor extends Insider {
  note(size: number): string {
    return join(this.folder, 'checkpoints', `${size}.note`);
  }

  cosign(size: number): this {
    writeFileSync(this.note(size), cosigned(readFileSync(this.note(size)), WITNESS, 1_700_000_000n));
    return this;
  }

  async codes(options: AuditOptions = {}): Promise<string[]> {
    const { findings } = await audit(this.root, undefined, options);
    return findings.map(({ code, where }) => `${code} ${where.file ?? where.seq ?? ''}`.trim());
  }

  async unchecked(options: AuditOptions = {}): Promise<string> {
    return (await audit(this.root, undefined, options)).notChecked.join('\n');
  }
}

function known(note: Uint8Array, name = 'old.note') {
  return { name, note: Buffer.from(note) };
}

describe('signed checkpoints without keys', () => {
  test('agree with the ledger; that nobody verified them is said', async () => {
    const here = new Auditor(plan);
    const result = await audit(here.root, undefined);
    expect(result.findings).toEqual([]);
    expect(result.checked.join('\n')).toMatch(
      /5 signed checkpoints: what they say of the entries before them/,
    );
    expect(result.notChecked.join('\n')).toContain(
      'whether the signatures of 5 signed checkpoints are genuine',
    );
    const bare = await trial({ prompts: { a: 'right a' } });
    await bare.run();
    const { notChecked } = await audit(bare.root, undefined);
    expect(notChecked.join('\n')).toContain(
      'whether anybody else ever saw a state of the ledger: no checkpoint is signed',
    );
  });

  test.each<[string, (here: Auditor) => void, string]>([
    [
      'a file that is no note',
      (here) => writeFileSync(here.note(sizes.first), 'hello'),
      `CHECKPOINT_DIFFERS checkpoints/2.note`,
    ],
    [
      'an empty file',
      (here) => writeFileSync(here.note(sizes.first), ''),
      'CHECKPOINT_DIFFERS checkpoints/2.note',
    ],
    [
      'a folder in its place',
      (here) => replaceByFolder(here.note(sizes.first)),
      'CHECKPOINT_DIFFERS checkpoints/2.note',
    ],
    [
      'a note under another size',
      (here) => cpSync(here.note(sizes.first), here.note(3)),
      'CHECKPOINT_DIFFERS checkpoints/3.note',
    ],
    [
      'a note of more entries than there are',
      (here) => writeFileSync(here.note(900), forged(here, { size: 900n })),
      'CHECKPOINT_DIFFERS checkpoints/900.note',
    ],
    [
      'a note with another root',
      (here) => writeFileSync(here.note(sizes.first), forged(here, { root: Buffer.alloc(32, 1) })),
      'CHECKPOINT_DIFFERS checkpoints/2.note',
    ],
    [
      'a note of another ledger',
      (here) =>
        writeFileSync(here.note(sizes.first), forged(here, { origin: `lab.example/${'0'.repeat(32)}/1` })),
      'CHECKPOINT_DIFFERS checkpoints/2.note',
    ],
    [
      'a note of 2^64 - 1 entries',
      (here) => writeFileSync(here.note(7), forged(here, { size: (1n << 64n) - 1n })),
      'CHECKPOINT_DIFFERS checkpoints/7.note',
    ],
  ])('%s is found', async (_, damage, finding) => {
    const here = new Auditor(plan);
    damage(here);
    expect(await here.codes()).toEqual([finding]);
    expect(await here.codes(KEYS)).toContain(finding);
  });

  test('a missing file is none: the entry has the note', async () => {
    const here = new Auditor(plan);
    rmSync(join(here.folder, 'checkpoints'), { recursive: true });
    expect(await here.codes(KEYS)).toEqual([]);
  });

  test('an entry with another root, size or note is found', async () => {
    for (const [changes, code] of [
      [{ root: '0'.repeat(64) }, 'CHECKPOINT_DIFFERS 2'],
      [{ size: 1 }, 'CHECKPOINT_DIFFERS 2'],
      [{ note: 'hello' }, 'CHECKPOINT_DIFFERS 2'],
    ] as const) {
      const here = new Auditor(plan);
      rmSync(join(here.folder, 'checkpoints'), { recursive: true });
      const entry = here.find('checkpoint');
      Object.assign(entry, changes);
      here.rechain({ roots: false });
      expect(await here.codes()).toContain(code);
    }
  });
});

describe('signed checkpoints under keys of the auditor', () => {
  test('verify, and what none of them covers is said', async () => {
    const here = new Auditor(plan);
    const result = await audit(here.root, undefined, KEYS);
    expect(result.findings).toEqual([]);
    expect(result.checked.join('\n')).toContain(
      `signatures of 5 notes by given keys; the newest covers ${sizes.last} entries`,
    );
    expect(result.notChecked.join('\n')).toContain(
      `whether the entries from ${sizes.last} on were changed since`,
    );
    // Under the full name of its origin it is the same key.
    const [opened] = await plan.of('ledger.opened');
    const full = keyOfLedger(KEY, { ledger: opened?.ledger ?? '', incarnation: 1 }).verifier;
    expect((await audit(here.root, undefined, { keys: [full] })).findings).toEqual([]);
  });

  test('of which none signed the ledger prove nothing, which is said and no finding', async () => {
    const here = new Auditor(plan);
    const stranger = { keys: [generateKey('somebody.else').verifier] };
    expect(await here.codes(stranger)).toEqual([]);
    expect(await here.unchecked(stranger)).toContain('no checkpoint is signed by a given key');
    expect(await here.unchecked(stranger)).toContain('5 notes of checkpoints that no given key signed');
  });

  test('whose signature fails in an entry or a file are findings', async () => {
    const here = new Auditor(plan);
    const note = String(here.find('checkpoint').note);
    const [text = '', line = ''] = note.split('\n\n');
    const blob = Buffer.from(line.trimEnd().split(' ').at(-1) ?? '', 'base64');
    blob[20] = (blob[20] ?? 0) ^ 1;
    const broken = `${text}\n\n${line.trimEnd().replace(/ [^ ]+$/, ` ${blob.toString('base64')}`)}\n`;
    writeFileSync(here.note(sizes.first), broken);
    expect(await here.codes()).toEqual([]);
    expect(await here.codes(KEYS)).toEqual(['CHECKPOINT_SIGNATURE checkpoints/2.note']);
    Object.assign(here.find('checkpoint'), { note: broken });
    here.rechain();
    expect(await here.codes(KEYS)).toContain('CHECKPOINT_SIGNATURE 2');
  });

  test('an insider who rewrites the ledger cannot sign it again', async () => {
    const here = new Auditor(plan);
    rmSync(join(here.folder, 'checkpoints'), { recursive: true });
    here.entries.pop();
    const first = here.find('attempt.finished');
    Object.assign(first, { seconds: 1234 });
    here.rechain();
    expect(await here.codes()).toContain(`CHECKPOINT_DIFFERS ${sizes.last}`);
    // Without notes the ledger agrees with itself; only who was promised signatures can tell.
    for (const entry of here.entries) if (entry.type === 'checkpoint') entry.note = null;
    here.rechain();
    expect(await here.codes(KEYS)).toEqual([]);
    expect(await here.unchecked(KEYS)).toContain('no checkpoint is signed by a given key');
    expect(await here.codes({ ...KEYS, policy: POLICY })).toEqual(['QUORUM_UNMET']);
  });

  test('a quorum that no checkpoint has is a finding; one that some have is a reach', async () => {
    const here = new Auditor(plan);
    const options = { policy: POLICY };
    const { findings } = await audit(here.root, undefined, options);
    expect(findings).toMatchObject([
      {
        code: 'QUORUM_UNMET',
        evidence: { quorum: 'w', missing: ['w'], cosigned: [], size: String(sizes.last) },
      },
    ]);
    here.cosign(sizes.first);
    expect(await here.codes(options)).toEqual([]);
    const result = await audit(here.root, undefined, options);
    expect(result.checked.join('\n')).toContain('the quorum of the policy, for the first 2 entries');
    expect(result.notChecked.join('\n')).toContain('whether others saw the entries from 2 on');
    // A cosignature that fails is one, too.
    const bytes = readFileSync(here.note(sizes.first), 'utf8');
    const line = bytes.trimEnd().split('\n').at(-1) ?? '';
    const blob = Buffer.from(line.split(' ').at(-1) ?? '', 'base64');
    blob[7] = (blob[7] ?? 0) ^ 1;
    writeFileSync(here.note(sizes.first), bytes.replace(line, `— w.example ${blob.toString('base64')}`));
    expect(await here.codes(options)).toEqual([
      'CHECKPOINT_SIGNATURE checkpoints/2.note',
      `QUORUM_UNMET ${sizes.last}`,
    ]);
  });
});

describe('audit --since', () => {
  test('proves that the ledger continues each of its checkpoints', async () => {
    const here = new Auditor(plan);
    for (const name of readdirSync(join(here.folder, 'checkpoints'))) {
      const note = readFileSync(join(here.folder, 'checkpoints', name));
      const result = await audit(here.root, undefined, { since: known(note), ...KEYS });
      expect(result.findings).toEqual([]);
      const { size, origin } = checkpointOf(note);
      expect(result.checked).toContain(
        `the ledger of ${result.ledger.head.size} entries extends the known checkpoint of ${size} (${origin})`,
      );
      expect(result.notChecked.join('\n')).not.toContain('whether the older checkpoint is genuine');
    }
    const note = readFileSync(here.note(sizes.first));
    expect(await here.unchecked({ since: known(note) })).toContain(
      'whether the older checkpoint is genuine: no key was given',
    );
  });

  test('shows both signed notes and the proof that fails when entries were rewritten and signed again', async () => {
    const here = new Auditor(plan);
    const old = readFileSync(here.note(sizes.last));
    rmSync(join(here.folder, 'checkpoints'), { recursive: true });
    Object.assign(here.find('attempt.finished'), { seconds: 1234 });
    here.rechain({ key: KEY });
    expect(await here.codes(KEYS)).toEqual([]);
    const options = { since: known(old), ...KEYS };
    const result = await audit(here.root, undefined, options);
    expect(result.verdict).toBe('findings');
    const [finding] = result.findings;
    expect(result.findings).toMatchObject([
      { code: 'NOT_EXTENDED', clause: 'law 4', where: { file: 'old.note' } },
    ]);
    const { older, newer, proof } = contradiction(finding?.evidence);
    expect(older).toBe(old.toString('utf8'));
    // Signed by the same key, of the same size and with another root: it convicts.
    const [was, is] = [checkpointOf(Buffer.from(older)), checkpointOf(Buffer.from(newer))];
    expect(is.origin).toBe(was.origin);
    expect(() =>
      verifyConsistency({
        oldSize: was.size,
        oldRoot: was.root,
        newSize: is.size,
        newRoot: is.root,
        proof: proof.map((one) => Buffer.from(one, 'base64')),
      }),
    ).toThrowError(expect.objectContaining({ code: 'PROOF_INVALID' }));
    const text = renderAudit(result);
    for (const line of [...older.trimEnd().split('\n'), ...newer.trimEnd().split('\n')]) {
      if (line !== '') expect(text).toContain(line);
    }
  });

  test('a ledger that was cut off, emptied of its signatures or made anew is found', async () => {
    const here = new Auditor(plan);
    const old = readFileSync(here.note(sizes.last));
    rmSync(join(here.folder, 'checkpoints'), { recursive: true });
    here.entries = here.entries.slice(0, 9);
    for (const entry of here.entries) if (entry.type === 'checkpoint') entry.note = null;
    here.rechain();
    const cut = await audit(here.root, undefined, { since: known(old) });
    expect(cut.findings.find(({ code }) => code === 'NOT_EXTENDED')).toMatchObject({
      message: `the ledger does not extend the checkpoint of ${sizes.last} entries: the ledger has 9 entries: those from 9 to ${sizes.last - 1} are missing`,
      evidence: { older: old.toString('utf8'), proof: [] },
    });
    Object.assign(here.find('ledger.opened'), { ledger: '0'.repeat(32) });
    here.rechain();
    const anew = await audit(here.root, undefined, { since: known(old) });
    expect(anew.findings.find(({ code }) => code === 'NOT_EXTENDED')?.message).toContain(
      'it is of another ledger',
    );
  });

  test('a note of a later or an earlier incarnation is judged by what it can have seen', async () => {
    const here = new Auditor(plan);
    const origin = checkpointOf(readFileSync(here.note(sizes.first))).origin;
    const later = signed({
      ...checkpointOf(readFileSync(here.note(sizes.first))),
      origin: `${origin.slice(0, -1)}2`,
    });
    const result = await audit(here.root, undefined, { since: known(later) });
    expect(result.findings).toMatchObject([
      {
        code: 'NOT_EXTENDED',
        message: expect.stringContaining(
          'it is of incarnation 2; this is a copy of incarnation 1, which is older',
        ),
      },
    ]);
  });

  test('where an older copy was put back: what it still had is proven, what was lost is said to be', async () => {
    const here = new Auditor(plan);
    const [early, late] = [sizes.first, sizes.last].map((size) => readFileSync(here.note(size)));
    if (early === undefined || late === undefined) throw new Error('no notes');
    const opened = here.find('ledger.opened');
    const time = here.entries[4]?.time;
    const restored = {
      size: sizes.last,
      root: '1'.repeat(64),
      leaf: null,
      note: null,
      reason: 'a disk died',
    };
    here.entries = [
      ...here.entries.slice(0, 5),
      { ...opened, time, incarnation: 2, carries: null, restored },
    ];
    here.rechain();
    const kept = await audit(here.root, undefined, { since: known(early) });
    expect(kept.findings.filter(({ code }) => code === 'NOT_EXTENDED')).toEqual([]);
    expect(kept.checked.join('\n')).toContain('extends the known checkpoint of 2');
    expect(kept.checked.join('\n')).toContain('an older copy was put back later, with entry 5');
    const lost = await audit(here.root, undefined, { since: known(late) });
    expect(lost.findings.find(({ code }) => code === 'NOT_EXTENDED')?.message).toBe(
      `the ledger does not extend the checkpoint of ${sizes.last} entries: an older copy was put back: the entries 5 to ${sizes.last - 1} of incarnation 1 are lost since entry 5, which says so itself (it quotes a state of ${sizes.last} entries)`,
    );
    // Files of lost checkpoints lie there still: worth a remark.
    expect(kept.findings.filter(({ code }) => code === 'CHECKPOINT_DIFFERS')).toEqual([]);
    expect(
      kept.remarks.filter((line) => line.includes('was lost when an older copy was put back')).length,
    ).toBe(4);
  });

  test('a note that is none, or not signed by the given key, is refused', async () => {
    const here = new Auditor(plan);
    const note = readFileSync(here.note(sizes.first));
    await expect(audit(here.root, undefined, { since: known(Buffer.from('x')) })).rejects.toMatchObject({
      code: 'NOTE_INVALID',
    });
    const altered = Buffer.from(note.toString('utf8').replace('\n2\n', '\n3\n'));
    await expect(audit(here.root, undefined, { since: known(altered), ...KEYS })).rejects.toMatchObject({
      code: 'SIGNATURE_INVALID',
      exitCode: 4,
    });
    await expect(audit(here.root, undefined, { since: known(note), policy: POLICY })).rejects.toMatchObject({
      code: 'QUORUM_UNMET',
    });
    const stranger = { keys: [generateKey('lab.example').verifier] };
    expect(await here.unchecked({ since: known(note), ...stranger })).toContain(
      'whether the older checkpoint is genuine',
    );
  });

  test('from the command line: exit 4 and both notes', async () => {
    const here = new Auditor(plan);
    const old = join(here.root, 'old.note');
    cpSync(here.note(sizes.last), old);
    const vkey = formatVerifierKey(KEY.verifier);
    const fine = await command.run([], { since: 'old.note', key: [vkey] }, commandContext(here.root));
    expect(fine.exitCode ?? 0).toBe(0);
    expect(fine.text).toContain('extends the known checkpoint');
    here.entries = here.entries.slice(0, 5);
    here.rechain();
    rmSync(join(here.folder, 'checkpoints'), { recursive: true });
    const cut = await command.run([], { since: 'old.note', key: [vkey] }, commandContext(here.root));
    expect(cut.exitCode).toBe(4);
    expect(cut.text).toContain('older note:');
    expect(cut.text).toContain(readFileSync(old, 'utf8').split('\n')[2]);
    expect(existsSync(join(here.folder, 'checkpoints'))).toBe(false);
  });
});

function contradiction(evidence: unknown): { older: string; newer: string; proof: string[] } {
  return evidence as { older: string; newer: string; proof: string[] };
}

function signed(checkpoint: Checkpoint): Buffer {
  const { ledger = '', incarnation = 1 } = parseOrigin(checkpoint.origin) ?? {};
  return signCheckpoint(checkpoint, keyOfLedger(KEY, { ledger, incarnation }));
}

/** A note with a change, signed by the ledger's own key. */
function forged(here: Auditor, changes: Partial<Checkpoint>): Buffer {
  return signed({ ...checkpointOf(Buffer.from(String(here.find('checkpoint').note))), ...changes });
}

function replaceByFolder(file: string): void {
  rmSync(file);
  mkdirSync(file);
}
