import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import { decodeUtf8 } from '../core/files.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import { idFault } from './ids.js';
import type { TaskFaults } from './task-faults.js';

/** One task as its file holds it. */
export interface Task {
  readonly id: string;
  /** All fields of the line, the id included. */
  readonly fields: JsonObject;
}

/** Reads a JSONL file of tasks, in file order. Lines with faults are left out and reported. */
export function readTaskLines(
  bytes: Uint8Array,
  file: string,
  idField: string,
  faults: TaskFaults,
): ReadonlyMap<string, Task> {
  const tasks = new Map<string, Task>();
  const firstLine = new Map<string, number>();
  for (const { number, text } of linesOf(bytes, file, faults)) {
    const fields = parseLine(text, file, number, faults);
    if (fields === null) continue;
    const id = taskId(fields, idField, file, number, faults);
    if (id === null) continue;
    const earlier = firstLine.get(id);
    if (earlier === undefined) {
      tasks.set(id, { id, fields });
      firstLine.set(id, number);
    } else {
      faults.add(
        file,
        number,
        `the task id ${quoted(id)} occurs again (first in line ${earlier})`,
        'Each id once.',
      );
    }
  }
  return tasks;
}

/** Reads a list of task ids, one a line, in file order. */
export function readIdList(bytes: Uint8Array, file: string, faults: TaskFaults): readonly string[] {
  const ids = new Map<string, number>();
  for (const { number, text } of linesOf(bytes, file, faults)) {
    const problem = idFault(text);
    const earlier = ids.get(text);
    if (problem !== null) faults.add(file, number, problem.message, problem.hint);
    else if (earlier !== undefined) {
      faults.add(
        file,
        number,
        `the task id ${quoted(text)} occurs again (first in line ${earlier})`,
        'Each id once.',
      );
    } else ids.set(text, number);
  }
  return [...ids.keys()];
}

interface Line {
  /** 1-based. */
  readonly number: number;
  readonly text: string;
}

function linesOf(bytes: Uint8Array, file: string, faults: TaskFaults): readonly Line[] {
  const text = textOf(bytes, file, faults);
  if (text === null) return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const kept: Line[] = [];
  let reported = false;
  lines.forEach((line, i) => {
    const number = i + 1;
    if (line.includes('\r')) {
      // One report for the file: it is the same mistake on every line.
      if (!reported) {
        faults.add(file, number, 'the line ends with a carriage return', 'Save the file with LF line ends.');
      }
      reported = true;
    } else if (line.trim() === '') {
      faults.add(file, number, 'the line is blank', 'Remove it; a blank line may hide a lost task.');
    } else kept.push({ number, text: line });
  });
  return kept;
}

function textOf(bytes: Uint8Array, file: string, faults: TaskFaults): string | null {
  if (bytes.length === 0) {
    faults.add(file, null, 'the file is empty (0 bytes)', 'Restore it; a power cut leaves such files.');
    return null;
  }
  const pointer = pointerKind(bytes);
  if (pointer !== null) {
    faults.add(file, null, `the file is a ${pointer} pointer, not the tasks themselves`, POINTER_HINT);
    return null;
  }
  try {
    const text = decodeUtf8(bytes, file);
    if (!text.startsWith('\ufeff')) return text;
    faults.add(file, 1, 'the file begins with a byte-order mark', 'Save it as UTF-8 without one.');
  } catch (error) {
    addError(error, file, null, faults);
  }
  return null;
}

const POINTER_HINT = 'Fetch the file itself, with `git lfs pull` or `git annex get` for example.';

/** What kind of large-file pointer the bytes are; null when they are none. */
function pointerKind(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  if (head.startsWith('version https://git-lfs.github.com/spec/')) return 'Git LFS';
  return bytes.length < 4096 && /^\/?annex\/objects\//.test(head) ? 'git-annex' : null;
}

function parseLine(text: string, file: string, line: number, faults: TaskFaults): JsonObject | null {
  let value: JsonValue;
  try {
    value = parseStrictJson(Buffer.from(text, 'utf8'), `line ${line}`);
  } catch (error) {
    addError(error, file, line, faults);
    return null;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    if (!/\\u[dD][89a-fA-F]/.test(text)) return value as JsonObject;
    return wellFormed(value as JsonObject, file, line, faults);
  }
  faults.add(file, line, 'the line is not a JSON object', 'Write one object a line: {"id": "…", …}.');
  return null;
}

/** Requests hold fields of tasks, and half a character cannot be sent. Only a line with an escape of one can hold it. */
function wellFormed(fields: JsonObject, file: string, line: number, faults: TaskFaults): JsonObject | null {
  try {
    canonicalText(fields);
    return fields;
  } catch (error) {
    addError(error, file, line, faults);
    return null;
  }
}

function taskId(
  fields: JsonObject,
  idField: string,
  file: string,
  line: number,
  faults: TaskFaults,
): string | null {
  const id = Object.hasOwn(fields, idField) ? fields[idField] : undefined;
  if (id === undefined) {
    faults.add(
      file,
      line,
      `the id field ${quoted(idField)} is missing`,
      'Name the right field in the protocol.',
    );
    return null;
  }
  if (typeof id !== 'string') {
    const shown = typeof id === 'number' ? String(id) : 'a value of another kind';
    faults.add(file, line, `the id ${shown} is no text`, `Quote ids in the task file: "${shown}".`);
    return null;
  }
  const problem = idFault(id);
  if (problem === null) return id;
  faults.add(file, line, problem.message, problem.hint);
  return null;
}

function addError(error: unknown, file: string, line: number | null, faults: TaskFaults): void {
  if (!(error instanceof BoundbookError)) throw error;
  faults.add(file, line, error.message, error.hint ?? 'Correct the file.');
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
