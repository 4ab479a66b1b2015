import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Event } from './recording.js';

/**
 * A disk as a power cut meets it. What was written and not synced may be there, in part or not at all: data by sectors
 * of 512 bytes, in any order; names each by itself. A file's data are durable after a sync of the file, its name after
 * one of its folder, and of that folder's after one of the folder's folder.
 */
const SECTOR = 512;

/** A file or a folder, whatever it is called. */
interface Node {
  readonly kind: 'file' | 'folder';
  /** Of a file: what a power cut can't take any more. */
  data: Buffer<ArrayBufferLike>;
  pending: (
    | { readonly op: 'write'; readonly offset: number; readonly data: Buffer }
    | { readonly op: 'truncate'; readonly length: number }
  )[];
  /** Of a folder: names as a running program sees them, and as they are after a power cut at the worst time. */
  readonly names: Map<string, Node>;
  readonly durable: Map<string, Node>;
  /** Changes of names since the last sync; those of one entry happen together. */
  renamings: (readonly (readonly [string, Node | null])[])[];
}

/** Whether something that was not synced is kept. */
export type Choice = () => boolean;

export const KEEP: Choice = () => true;
export const DROP: Choice = () => false;

export class Disk {
  readonly #root = newNode('folder');
  readonly #base: string;

  /** @param base the folder below which everything happens; it is there, and durable */
  constructor(base: string) {
    this.#base = base;
  }

  apply(event: Event): void {
    switch (event.op) {
      case 'create':
        if (this.#find(event.path) === null) this.#name(event.path, newNode('file'));
        break;
      case 'mkdir':
        this.#name(event.path, newNode('folder'));
        break;
      case 'write':
      case 'truncate':
        this.#find(event.path)?.pending.push(event);
        break;
      case 'sync':
        sync(this.#find(event.path));
        break;
      case 'link':
        this.#name(event.to, this.#find(event.from));
        break;
      case 'rename':
        this.#rename(event.from, event.to);
        break;
      case 'unlink':
      case 'rmdir':
        this.#name(event.path, null);
        break;
      case 'say':
        break;
      default:
        event satisfies never;
    }
  }

  /** The files that are there after a power cut now, by their path below the base. */
  after(choice: Choice): ReadonlyMap<string, Buffer | null> {
    const files = new Map<string, Buffer | null>();
    const contents = new Map<Node, Buffer>();
    const visit = (node: Node, path: string): void => {
      const names = new Map(node.durable);
      for (const change of node.renamings) {
        if (!choice()) continue;
        for (const [name, to] of change) {
          if (to === null) names.delete(name);
          else names.set(name, to);
        }
      }
      for (const [name, child] of names) {
        const at = path === '' ? name : `${path}/${name}`;
        if (child.kind === 'folder') {
          files.set(at, null);
          visit(child, at);
          continue;
        }
        // One file under two names is the same after the cut, too.
        const content = contents.get(child) ?? contentOf(child, choice);
        contents.set(child, content);
        files.set(at, content);
      }
    };
    visit(this.#root, '');
    return files;
  }

  #rename(from: string, to: string): void {
    const node = this.#find(from);
    if (node === null) return;
    const [source, oldName] = this.#place(from);
    const [target, newName] = this.#place(to);
    if (source === null || target === null) return;
    if (source !== target) throw new Error('a rename between folders is not modelled');
    source.names.set(newName, node);
    source.names.delete(oldName);
    source.renamings.push([
      [newName, node],
      [oldName, null],
    ]);
  }

  #name(path: string, node: Node | null): void {
    const [folder, name] = this.#place(path);
    if (folder === null) return;
    if (node === null) folder.names.delete(name);
    else folder.names.set(name, node);
    folder.renamings.push([[name, node]]);
  }

  #place(path: string): readonly [Node | null, string] {
    const at = path.lastIndexOf('/');
    return [this.#find(path.slice(0, at)), path.slice(at + 1)];
  }

  #find(path: string): Node | null {
    const below = relative(this.#base, path);
    if (below.startsWith('..')) return null;
    let at: Node | null = this.#root;
    for (const part of below === '' ? [] : below.split('/')) at = at?.names.get(part) ?? null;
    return at;
  }
}

function newNode(kind: Node['kind']): Node {
  return { kind, data: Buffer.alloc(0), pending: [], names: new Map(), durable: new Map(), renamings: [] };
}

function sync(node: Node | null): void {
  if (node === null) return;
  node.data = contentOf(node, KEEP);
  node.pending = [];
  for (const change of node.renamings) {
    for (const [name, to] of change) {
      if (to === null) node.durable.delete(name);
      else node.durable.set(name, to);
    }
  }
  node.renamings = [];
}

function contentOf({ data, pending }: Node, choice: Choice): Buffer {
  if (pending.length === 0) return data;
  let content: Buffer = Buffer.from(data);
  for (const change of pending) {
    if (change.op === 'truncate') {
      if (choice()) content = resized(content, change.length);
      continue;
    }
    for (let at = 0; at < change.data.length; ) {
      const end = Math.min(change.data.length, at + SECTOR - ((change.offset + at) % SECTOR));
      if (choice()) {
        if (content.length < change.offset + end) content = resized(content, change.offset + end);
        change.data.copy(content, change.offset + at, at, end);
      }
      at = end;
    }
  }
  return content;
}

function resized(content: Buffer, length: number): Buffer {
  const next = Buffer.alloc(length);
  content.copy(next);
  return next;
}

/** Puts files of {@link Disk.after} into a folder. */
export function layOut(files: ReadonlyMap<string, Buffer | null>, folder: string): void {
  for (const [path, content] of files) {
    const target = join(folder, path);
    if (content === null) mkdirSync(target, { recursive: true });
    else {
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, content);
    }
  }
}
