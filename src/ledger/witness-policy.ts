import { BoundbookError, type Fault } from '../core/errors.js';
import { decodeUtf8 } from '../core/files.js';
import { type KeyType, parseVerifierKey, type VerifierKey } from '../signing/keys.js';

/**
 * Policies on who must have cosigned a checkpoint (c2sp.org/tlog-policy, "Policy file syntax and structure"). Pure:
 * bytes in, policy out.
 *
 * Names are opaque octets there; here they are strings with one character for each octet, see {@link nameText}.
 */

const MAX_BYTES = 1_000_000;

export interface PolicyLog {
  readonly key: VerifierKey;
  readonly url: string | null;
}

export interface PolicyWitness {
  readonly name: string;
  readonly key: VerifierKey;
  readonly url: string | null;
}

export interface PolicyGroup {
  readonly name: string;
  /** How many members must have witnessed the checkpoint; 1 to the number of members. */
  readonly threshold: number;
  /** Names of witnesses and of groups defined before. No name is a member twice in a policy. */
  readonly members: readonly string[];
}

export interface WitnessPolicy {
  readonly logs: readonly PolicyLog[];
  readonly witnesses: readonly PolicyWitness[];
  readonly groups: readonly PolicyGroup[];
  /** A witness, a group, or `none`. */
  readonly quorum: string;
}

/** Reads a policy. @throws {BoundbookError} POLICY_INVALID with all faults and their lines. */
export function parsePolicy(bytes: Uint8Array, file = 'policy'): WitnessPolicy {
  const reader = new PolicyReader(file);
  reader.read(bytes);
  const { faults } = reader;
  if (faults.length > 0) {
    throw new BoundbookError(
      'POLICY_INVALID',
      `${file} has ${faults.length} fault${faults.length === 1 ? '' : 's'}`,
      {
        hint: 'The grammar: log VKEY · witness NAME VKEY · group NAME all|any|K NAME… · quorum NAME|none.',
        faults,
      },
    );
  }
  return {
    logs: reader.logs,
    witnesses: reader.witnesses,
    groups: reader.groups,
    quorum: reader.quorum ?? 'none',
  };
}

/** How a name of a policy is shown to people. */
export function nameText(name: string): string {
  return Buffer.from(name, 'latin1').toString('utf8');
}

/** Reads line by line and collects one fault for each line. */
class PolicyReader {
  readonly logs: PolicyLog[] = [];
  readonly witnesses: PolicyWitness[] = [];
  readonly groups: PolicyGroup[] = [];
  quorum: string | undefined;
  readonly faults: Fault[] = [];

  readonly #file: string;
  /** Witnesses and groups share one name space. */
  readonly #defined = new Set<string>();
  readonly #members = new Set<string>();
  #hasQuorum = false;

  constructor(file: string) {
    this.#file = file;
  }

  read(bytes: Uint8Array): void {
    // Octets, not characters: what a name means does not depend on a version of Unicode.
    const lines = Buffer.from(bytes.subarray(0, MAX_BYTES)).toString('latin1').split('\n');
    const unended = lines.at(-1) !== '';
    if (!unended) lines.pop();
    for (const [i, line] of lines.entries()) this.#collect(i + 1, () => this.#readLine(line));
    this.#collect(Math.max(lines.length, 1), () => {
      if (bytes.length > MAX_BYTES) refuse(`the file has more than ${MAX_BYTES} bytes`);
      if (unended) refuse('the last line does not end with a line break');
    });
    if (this.#hasQuorum) return;
    const end = lines.length + 1;
    this.#collect(end, () => refuse('there is no quorum line; "quorum none" asks for no cosignature'));
  }

  #collect(line: number, act: () => void): void {
    try {
      act();
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      this.faults.push({ where: `${this.#file}:${line}`, message: error.message, line });
    }
  }

  #readLine(line: string): void {
    const bad = [...line].find((octet) => (octet < ' ' && octet !== '\t') || octet === '\x7f');
    if (bad !== undefined)
      refuse(`the line holds the control character 0x${Buffer.from(bad).toString('hex')}`);
    const [keyword, ...items] = line.split(/[ \t]+/).filter((item) => item !== '');
    if (keyword === undefined || keyword.startsWith('#')) return;
    if (keyword === 'log') this.#readLog(items);
    else if (keyword === 'witness') this.#readWitness(items);
    else if (keyword === 'group') this.#readGroup(items);
    else if (keyword === 'quorum') this.#readQuorum(items);
    else refuse('the line begins with none of log, witness, group, quorum and #');
  }

  #readLog([vkey, url, ...more]: string[]): void {
    if (vkey === undefined || more.length > 0) refuse('expected: log VKEY [URL]');
    const key = readKey(vkey, 'ed25519');
    if (this.logs.some((log) => log.key.publicKey.equals(key.publicKey))) {
      refuse('the public key of this log was given before');
    }
    this.logs.push({ key, url: url ?? null });
  }

  #readWitness([name, vkey, url, ...more]: string[]): void {
    if (name === undefined || vkey === undefined || more.length > 0)
      refuse('expected: witness NAME VKEY [URL]');
    this.#assertNew(name);
    this.#defined.add(name);
    const key = readKey(vkey, 'cosignature');
    // One key under two names could fill a quorum alone.
    if (this.witnesses.some((witness) => witness.key.publicKey.equals(key.publicKey))) {
      refuse('the public key of this witness was given before');
    }
    this.witnesses.push({ name, key, url: url ?? null });
  }

  #readGroup([name, rule, ...members]: string[]): void {
    if (name === undefined || rule === undefined || members.length === 0) {
      refuse('expected: group NAME all|any|K NAME…');
    }
    this.#assertNew(name);
    try {
      const threshold = thresholdOf(rule, members.length);
      for (const member of members) this.#useMember(member);
      this.groups.push({ name, threshold, members });
    } finally {
      // After its members, so that a group is no member of itself; always, so that one fault is not told twice.
      this.#defined.add(name);
    }
  }

  #readQuorum([name, ...more]: string[]): void {
    if (this.#hasQuorum) refuse('there is a second quorum line');
    this.#hasQuorum = true;
    if (name === undefined || more.length > 0) refuse('expected: quorum NAME or quorum none');
    this.quorum = name;
    if (name !== 'none' && !this.#defined.has(name)) refuse(`${quoted(name)} is not defined above`);
  }

  #assertNew(name: string): void {
    if (name === 'none') refuse('the name "none" is reserved');
    if (this.#defined.has(name)) refuse(`${quoted(name)} was defined before`);
  }

  /** Each witness may count in one way only. */
  #useMember(name: string): void {
    if (!this.#defined.has(name)) refuse(`${quoted(name)} is not defined above`);
    if (this.#members.has(name)) refuse(`${quoted(name)} is a member already`);
    this.#members.add(name);
  }
}

function readKey(octets: string, type: KeyType): VerifierKey {
  const key = parseVerifierKey(decodeUtf8(Buffer.from(octets, 'latin1'), 'the vkey'));
  const kinds = { ed25519: 'a plain Ed25519 key (01)', cosignature: 'an Ed25519 cosignature key (04)' };
  if (key.type !== type) refuse(`${kinds[type]} is needed here, not ${kinds[key.type]}`);
  return key;
}

function thresholdOf(rule: string, members: number): number {
  if (rule === 'all') return members;
  if (rule === 'any') return 1;
  const threshold = /^[1-9][0-9]{0,5}$/.test(rule) ? Number(rule) : members + 1;
  if (threshold > members)
    refuse(`the threshold is neither "all" nor "any" nor a number from 1 to ${members}`);
  return threshold;
}

function quoted(name: string): string {
  return JSON.stringify(nameText(name));
}

function refuse(message: string): never {
  throw new BoundbookError('POLICY_INVALID', message);
}
