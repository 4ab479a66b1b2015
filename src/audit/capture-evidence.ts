import type { Digest } from '../core/digest.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { Artifact, CommandRunner } from '../protocol/schema/command-runner.js';
import { CAPTURE, type Capture, readCapture } from '../runner/adapters/capture.js';
import { keptBytes } from '../runner/adapters/spool.js';
import type { Findings, Place } from './finding.js';
import type { ObjectShelf } from './objects.js';
import type { Unchecked } from './unchecked.js';

type StageEntry = Pick<EntryOf<'stage.finished'>, 'seq' | 'slot' | 'stage' | 'objects'>;

/** What a plan, or a corrected grader, says of the commands whose evidence is looked at. */
export type DeclaredCommands = Pick<CommandRunner, 'generate' | 'grade' | 'artifacts'>;

const ARTIFACT = 'artifact/';
const STREAMS = ['stdout', 'stderr'] as const;

/** Checks what a command's stage says of its own evidence: output that was cut, artifacts that were not kept. */
export class CaptureCheck {
  readonly #runner: DeclaredCommands;
  readonly #shelf: ObjectShelf;
  readonly #findings: Findings;
  readonly #unchecked: Unchecked;

  constructor(runner: DeclaredCommands, shelf: ObjectShelf, findings: Findings, unchecked: Unchecked) {
    this.#runner = runner;
    this.#shelf = shelf;
    this.#findings = findings;
    this.#unchecked = unchecked;
  }

  check(entry: StageEntry): void {
    const where = { seq: entry.seq, slot: entry.slot };
    const declared = entry.stage === 'generate' ? (this.#runner.artifacts ?? []) : [];
    const digest = entry.objects[CAPTURE];
    const capture = digest === undefined ? {} : this.#read(digest, where);
    this.#artifacts(entry, declared, capture, where);
    if (capture === null) return;
    this.#streams(entry, capture, where);
    const { stop } = capture;
    if (stop === undefined) return;
    if (this.#runner[entry.stage].stop === undefined || (stop.exit_status === 0 && !stop.timed_out)) {
      this.#add(where, 'it speaks of a stop command that is not declared, or did not fail');
    }
  }

  /** Null when it cannot be looked at, or is none. */
  #read(digest: Digest, where: Place): Capture | null {
    const bytes = this.#shelf.read(digest, { ...where, pointer: `/objects/${CAPTURE}` });
    if (this.#shelf.isRedacted(digest)) this.#unchecked.add('capture');
    if (bytes === null) return null;
    const capture = readCapture(bytes);
    if (capture === null) this.#add(where, 'it is not the canonical JSON of a capture');
    return capture;
  }

  #streams(entry: StageEntry, { streams = {} }: Capture, where: Place): void {
    const kept = keptBytes(this.#runner[entry.stage].output_bytes);
    for (const name of STREAMS) {
      const cut = streams[name];
      if (cut === undefined) continue;
      const size = this.#sizeOf(entry, name, where);
      if (cut.kept !== kept || cut.seen <= cut.kept || (size !== null && size !== cut.kept)) {
        this.#add(where, `${name} was not cut as it says: ${cut.kept} of ${cut.seen} bytes, cap ${kept}`);
      }
    }
  }

  /** Each declared artifact is kept or has a word, and nothing else is. */
  #artifacts(entry: StageEntry, declared: readonly Artifact[], capture: Capture | null, where: Place): void {
    const words = new Map(Object.entries(capture?.artifacts ?? {}));
    const kept = Object.keys(entry.objects).filter((name) => name.startsWith(ARTIFACT));
    const known = new Set(declared.map(({ name }) => name));
    const foreign = [...words.keys(), ...kept.map((name) => name.slice(ARTIFACT.length))].filter(
      (name) => !known.has(name),
    );
    for (const name of foreign) this.#add(where, `no artifact ${JSON.stringify(name)} is declared here`);
    for (const { name, max_bytes } of declared) {
      const word = words.get(name);
      const isKept = entry.objects[ARTIFACT + name] !== undefined;
      const size = isKept ? this.#sizeOf(entry, ARTIFACT + name, where) : null;
      if (isKept ? word !== undefined : word === undefined && capture !== null) {
        this.#add(where, `the artifact ${name} is both kept and not kept, or neither`);
      } else if ((size ?? 0) > max_bytes || (word?.found === 'too_large' && word.size <= max_bytes)) {
        this.#add(where, `the artifact ${name} is larger than it may be, or was not`);
      }
    }
  }

  /** Null when the object is not at hand; 0 when there is none. */
  #sizeOf(entry: StageEntry, name: string, where: Place): number | null {
    const digest = entry.objects[name];
    if (digest === undefined) return 0;
    return (
      this.#shelf.read(digest, { ...where, pointer: `/objects/${name.replaceAll('/', '~1')}` })?.length ??
      null
    );
  }

  #add(where: Place, message: string): void {
    this.#findings.add({
      code: 'CAPTURE_DIFFERS',
      where: { ...where, pointer: '/objects' },
      message: `what is said of the evidence of a stage: ${message}`,
      outcome: true,
    });
  }
}
