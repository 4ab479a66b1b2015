import type { JsonValue } from '../core/json.js';
import type { ProtocolFault } from './fault-list.js';
import { type Path, pointerOf } from './json-pointer.js';

const MAX_LENGTH = 200;

// Control characters, line separators and characters that cannot be seen: soft hyphen, zero-width space and
// word joiners, marks and overrides of direction, byte-order mark. Joiners that scripts need (U+200C, U+200D) pass.
const INVISIBLE =
  /[\p{Cc}\p{Zl}\p{Zp}\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/u;

/** What is wrong with a text as an id; null when nothing is. Holds for protocol ids and for task ids alike. */
export function idFault(id: string): { readonly message: string; readonly hint: string } | null {
  const shown = JSON.stringify(id.length > 60 ? `${id.slice(0, 60)}…` : id);
  if (id === '') return { message: 'an id is empty', hint: 'Give it a name.' };
  if (!id.isWellFormed()) {
    return { message: `the id ${shown} holds half of a surrogate pair`, hint: 'Write whole characters.' };
  }
  const invisible = INVISIBLE.exec(id);
  if (invisible !== null) {
    const code = (invisible[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return {
      message: `the id ${shown} holds the control or invisible character U+${code}`,
      hint: 'Remove it; ids are compared byte by byte and read by people.',
    };
  }
  if (id.trim() !== id) {
    return { message: `the id ${shown} begins or ends with white space`, hint: 'Remove the space.' };
  }
  if (id.normalize('NFC') !== id) {
    return {
      message: `the id ${shown} is not in normal form NFC`,
      hint: `Write it as ${JSON.stringify(id.normalize('NFC'))} in composed characters; nothing is normalised silently.`,
    };
  }
  if (id.length > MAX_LENGTH) {
    return {
      message: `the id ${shown} has ${id.length} characters`,
      hint: `At most ${MAX_LENGTH} are accepted.`,
    };
  }
  if (id === '__proto__') return { message: 'the id "__proto__" is not accepted', hint: 'Rename it.' };
  return null;
}

/** Ids that agree in this form look alike to people or to file systems. Upper case first unfolds ß and final sigma. */
export function foldId(id: string): string {
  return id.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');
}

/** Maps whose keys are ids, and lists whose members declare one. */
const ID_MAPS: readonly Path[] = [
  ['task_sets'],
  ['models'],
  ['conditions'],
  ['arms'],
  ['queues'],
  ['runner', 'sources'],
];
const ID_LISTS: readonly Path[] = [
  ['analysis', 'scores'],
  ['analysis', 'contrasts'],
  ['analysis', 'tables'],
  ['analysis', 'decisions'],
  ['attempts', 'rules'],
];

interface DeclaredId {
  readonly id: string;
  readonly path: Path;
  /** Whether the id is a key rather than a value. */
  readonly onKey: boolean;
}

/** Faults of all ids that a protocol declares: their form, and two of one kind that look alike (F-17). */
export function idFaults(valueAt: (path: Path) => JsonValue | undefined): readonly ProtocolFault[] {
  const kinds = [
    ...ID_MAPS.map((path) => keysOf(valueAt(path), path)),
    ...ID_LISTS.map((path) => membersOf(valueAt(path), path)),
    textsOf(valueAt(['pending']), ['pending']),
  ];
  const namespace = valueAt(['sampling', 'namespace']);
  if (typeof namespace === 'string')
    kinds.push([{ id: namespace, path: ['sampling', 'namespace'], onKey: false }]);
  return kinds.flatMap((ids) => [...formFaults(ids), ...lookalikes(ids)]);
}

function keysOf(value: JsonValue | undefined, path: Path): readonly DeclaredId[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.keys(value).map((id) => ({ id, path: [...path, id], onKey: true }));
}

function membersOf(value: JsonValue | undefined, path: Path): readonly DeclaredId[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((member: JsonValue, i) => {
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return [];
    const id = (member as { readonly id?: JsonValue }).id;
    return typeof id === 'string' ? [{ id, path: [...path, i, 'id'], onKey: false }] : [];
  });
}

function textsOf(value: JsonValue | undefined, path: Path): readonly DeclaredId[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((id: JsonValue, i) =>
    typeof id === 'string' ? [{ id, path: [...path, i], onKey: false }] : [],
  );
}

function formFaults(ids: readonly DeclaredId[]): readonly ProtocolFault[] {
  return ids.flatMap(({ id, path, onKey }) => {
    const fault = idFault(id);
    return fault === null ? [] : [{ path, onKey, ...fault }];
  });
}

function lookalikes(ids: readonly DeclaredId[]): readonly ProtocolFault[] {
  const seen = new Map<string, DeclaredId>();
  const faults: ProtocolFault[] = [];
  for (const declared of ids) {
    const folded = foldId(declared.id);
    const earlier = seen.get(folded);
    if (earlier === undefined) {
      seen.set(folded, declared);
      continue;
    }
    const same = earlier.id === declared.id;
    faults.push({
      path: declared.path,
      onKey: declared.onKey,
      message: same
        ? `${JSON.stringify(declared.id)} is declared twice (also at ${pointerOf(earlier.path)})`
        : `${JSON.stringify(declared.id)} and ${JSON.stringify(earlier.id)} differ in case or normal form only`,
      hint: 'Give each its own name; some file systems and readers take them for one.',
    });
  }
  return faults;
}
