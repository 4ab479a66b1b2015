import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LooseBundle } from '../loose-bundle.js';
import { type BaseName, makeBase } from './bases.js';
import { type Case, chainAnew } from './case.js';

/**
 * Writes the folders of cases: `<name>/why` and `<name>/bundle/`, and what the reader of the bundle knows: `<name>/keys`
 * and `<name>/policy`. The same cases give the same bytes.
 */
export class Generator {
  readonly #scratch = mkdtempSync(join(tmpdir(), 'boundbook-conformance-'));
  readonly #bases = new Map<BaseName, Promise<string>>();

  async write(one: Case, into: string): Promise<void> {
    const folder = join(into, one.name);
    const bundle = LooseBundle.read(await this.#base(one.base ?? 'full'));
    one.edit?.(bundle);
    if (one.asWritten !== true) chainAnew(bundle.entries);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    bundle.write(join(folder, 'bundle'), { chained: one.asWritten !== true });
    one.after?.(join(folder, 'bundle'));
    for (const [name, lines] of Object.entries({ why: [one.why], keys: one.keys, policy: one.policy })) {
      if (lines !== undefined && lines.length > 0)
        writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(''));
    }
  }

  close(): void {
    rmSync(this.#scratch, { recursive: true, force: true });
  }

  #base(name: BaseName): Promise<string> {
    const made = this.#bases.get(name) ?? this.#make(name);
    this.#bases.set(name, made);
    return made;
  }

  async #make(name: BaseName): Promise<string> {
    const root = join(this.#scratch, name);
    mkdirSync(root);
    return (await makeBase(name, root)).write(join(this.#scratch, `${name}-base`));
  }
}
