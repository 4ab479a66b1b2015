import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '../core/errors.js';
import { type CgroupPlace, cgroupPlace, unusable } from './cgroup-place.js';
import { type Birthplace, endFound } from './process-group.js';
import { hasEnded, type ProcessStat, readStat } from './process-identity.js';
import { signalProcess } from './process-tree.js';

/** The control group of one stage. */
export interface StageCgroup extends Birthplace {
  /** How many of its processes the kernel has ended for want of memory. */
  oomKills(): number;
  /** Ends what is left in it and removes it. */
  remove(): Promise<void>;
}

/** Where stages get control groups of their own. */
export interface Cgroups {
  /** @throws {BoundbookError} CGROUP_UNUSABLE */
  make(name: string): StageCgroup;
  /** Ends and removes a group that a session left behind, if there is one. @throws {BoundbookError} PROCESS_NOT_ENDED */
  clear(name: string): Promise<void>;
}

/** Lists the processes of a group; one that is written into it enters the group with all its threads. */
const MEMBERS = 'cgroup.procs';
/** How often an empty group is tried to be removed: its last process may not be reaped yet. */
const REMOVALS = 50;
const PAUSE_MS = 10;

/**
 * A delegated folder of the kernel's control groups, v2 or the memory controller of v1, in which each stage gets a group.
 *
 * A process cannot be put into a group between its birth and its program by Node, and afterwards is too late: what it has
 * started by then would be left out. So this process itself steps into the group, starts the child, which is born
 * where its parent is, and steps out, all in one turn of the event loop. The limit is set after that, so that it is never
 * this process that meets it.
 */
export class CgroupFolder implements Cgroups {
  readonly #place: CgroupPlace;
  readonly #memoryBytes: number | null;

  private constructor(place: CgroupPlace, memoryBytes: number | null) {
    this.#place = place;
    this.#memoryBytes = memoryBytes;
  }

  /**
   * Makes sure that groups can be made, entered, left, read and removed there.
   *
   * @throws {BoundbookError} CGROUP_UNUSABLE
   */
  static open({ path, memory_bytes }: { path: string; memory_bytes?: number | undefined }): CgroupFolder {
    const folder = new CgroupFolder(cgroupPlace(path), memory_bytes ?? null);
    const name = `boundbook-probe-${randomBytes(8).toString('hex')}`;
    const group = folder.make(name);
    try {
      group.give(() => undefined);
      group.oomKills();
    } finally {
      rmdirSync(folder.#pathOf(name));
    }
    return folder;
  }

  make(name: string): StageCgroup {
    const path = this.#pathOf(name);
    try {
      mkdirSync(path);
    } catch (error) {
      // One that a process which would not end has kept is counted from where it is.
      if (systemCode(error) !== 'EEXIST') {
        throw unusable(path, `the group cannot be made (${systemCode(error)})`, error);
      }
    }
    return {
      give: (begin) => this.#give(path, begin),
      members: () => this.#members(path),
      oomKills: () => this.#oomKills(path),
      remove: () => this.#remove(path),
    };
  }

  async clear(name: string): Promise<void> {
    const path = this.#pathOf(name);
    if (existsSync(path)) await this.#remove(path);
  }

  #pathOf(name: string): string {
    return join(this.#place.folder, name);
  }

  #give<T>(path: string, begin: () => T): T {
    this.#write(join(path, MEMBERS), String(process.pid));
    let begun: T;
    try {
      begun = begin();
    } finally {
      this.#write(join(this.#place.own, MEMBERS), String(process.pid));
    }
    this.#limit(path);
    return begun;
  }

  /** A group that cannot be given its limit must not run without. */
  #limit(path: string): void {
    if (this.#memoryBytes === null) return;
    try {
      this.#write(join(path, this.#place.limit), String(this.#memoryBytes));
    } catch (error) {
      for (const stat of this.#members(path)) signalProcess(stat, 'SIGKILL');
      throw error;
    }
  }

  #members(path: string): readonly ProcessStat[] {
    const pids = this.#read(join(path, MEMBERS))
      .split('\n')
      .filter((line) => line !== '');
    return pids.flatMap((pid) => {
      const stat = Number(pid) === process.pid ? null : readStat(Number(pid));
      return stat === null || hasEnded(stat) ? [] : [stat];
    });
  }

  #oomKills(path: string): number {
    const text = this.#read(join(path, this.#place.events));
    const count = /^oom_kill ([0-9]+)$/m.exec(text)?.[1];
    if (count === undefined) throw unusable(path, `${this.#place.events} has no line oom_kill`);
    return Number(count);
  }

  async #remove(path: string): Promise<void> {
    await endFound(() => this.#members(path));
    for (let tries = 0; ; tries++) {
      try {
        rmdirSync(path);
        return;
      } catch (error) {
        const code = systemCode(error);
        if (code === 'ENOENT') return;
        // An empty group that cannot be removed does no harm.
        if (code !== 'EBUSY' || tries === REMOVALS) return;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }

  #write(file: string, text: string): void {
    try {
      writeFileSync(file, text, { flag: 'r+' });
    } catch (error) {
      throw unusable(file, `it cannot be written (${systemCode(error)})`, error);
    }
  }

  #read(file: string): string {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw unusable(file, `it cannot be read (${systemCode(error)})`, error);
    }
  }
}
