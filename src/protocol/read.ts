import { createRequire } from 'node:module';
import { asJson } from '../core/canonical-json.js';
import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { decodeUtf8 } from '../core/files.js';
import type { JsonValue } from '../core/json.js';
import { type ProtocolFault, protocolError } from './fault-list.js';
import { idFaults } from './ids.js';
import { schemaFaults, valueAt } from './issues.js';
import { type Path, pointerOf } from './json-pointer.js';
import { LineIndex, type Position } from './lines.js';
import { contentFaults, salvage } from './salvage.js';
import { type Protocol, protocolSchema } from './schema/protocol.js';
import { textFaults } from './text-checks.js';
import { parseYaml, type YamlDocument, YamlSyntaxFault } from './yaml.js';

export const MAX_PROTOCOL_BYTES = 4 * 1024 * 1024;

export interface ProtocolDocument {
  /** Deeply frozen; its objects have no prototype. */
  readonly protocol: Protocol;
  /** Digest of the file's bytes as they were given. */
  readonly rawDigest: Digest;
  readonly parser: { readonly name: 'js-yaml'; readonly version: string };
  /** Where the value at a JSON pointer stands in the file. */
  readonly locate: (pointer: string) => Position | null;
}

/**
 * Reads a protocol strictly (DESIGN §5). All faults are collected and thrown together, each with line, column and
 * hint; a text that is no YAML stops at the first. References are checked as far as the form is right.
 *
 * @param name what to call the file in messages
 * @throws {BoundbookError} PROTOCOL_INVALID, TEXT_NOT_UTF8, FILE_EMPTY or FILE_TOO_LARGE.
 */
export function readProtocol(bytes: Uint8Array, name: string): ProtocolDocument {
  const reading = inspectProtocol(bytes, name);
  if (!reading.ok) throw reading.error;
  return reading.document;
}

/** A protocol, or what is wrong with it and the part of it that can be read. */
export type ProtocolReading =
  | { readonly ok: true; readonly document: ProtocolDocument }
  | { readonly ok: false; readonly error: BoundbookError; readonly partial: Protocol | null };

/**
 * {@link readProtocol} for whoever goes on with what can be read, to find further faults.
 *
 * @throws {BoundbookError} TEXT_NOT_UTF8, FILE_EMPTY or FILE_TOO_LARGE.
 */
export function inspectProtocol(bytes: Uint8Array, name: string): ProtocolReading {
  const text = protocolText(bytes, name);
  const lines = new LineIndex(text);
  const yaml = parseYaml(text);
  if (yaml instanceof YamlSyntaxFault) {
    const error = protocolError(name, [{ path: [], ...yaml }], lines, () => 0);
    return { ok: false, error, partial: null };
  }

  const locate = (path: Path, onKey: boolean): number | null => offsetOf(yaml, path, onKey);
  const { protocol, faults } = judge(text, yaml);
  if (protocol === null || faults.length > 0) {
    const partial = protocol === null ? null : (deepCopy(protocol as JsonValue) as unknown as Protocol);
    return { ok: false, error: protocolError(name, faults, lines, locate), partial };
  }
  const document: ProtocolDocument = {
    protocol: freeze(protocol),
    rawDigest: digestOf(bytes),
    parser: { name: 'js-yaml', version: parserVersion() },
    locate: (pointer) => {
      const offset = yaml.valueOffsets.get(pointer) ?? yaml.keyOffsets.get(pointer);
      return offset === undefined ? null : lines.at(offset);
    },
  };
  return { ok: true, document };
}

function protocolText(bytes: Uint8Array, name: string): string {
  if (bytes.length === 0) {
    throw new BoundbookError('FILE_EMPTY', `${name} is empty (0 bytes)`, {
      hint: 'A file of zero bytes is often what an interrupted copy or a power cut leaves. Restore it.',
    });
  }
  if (bytes.length > MAX_PROTOCOL_BYTES) {
    throw new BoundbookError('FILE_TOO_LARGE', `${name} has ${bytes.length} bytes`, {
      hint: `A protocol has at most ${MAX_PROTOCOL_BYTES} bytes; tasks belong in files of their own.`,
    });
  }
  return decodeUtf8(bytes, name);
}

/** All faults of a document, and as much of the protocol as has the right form. */
function judge(
  text: string,
  yaml: YamlDocument,
): { readonly protocol: Protocol | null; readonly faults: readonly ProtocolFault[] } {
  const faults = [...yaml.faults, ...textFaults(text, yaml.plain), ...cutShort(text, yaml)];
  faults.push(...idFaults((path) => valueAt(yaml.value, path)));
  const parsed = protocolSchema.safeParse(yaml.value);
  if (!parsed.success) {
    // A value that is already faulted for its text would be faulted again for what it became.
    const known = new Set(faults.map((fault) => pointerOf(fault.path)));
    const plain = new Set(
      yaml.plain.filter(({ role }) => role === 'value').map(({ path }) => pointerOf(path)),
    );
    const form = schemaFaults(parsed.error.issues, yaml.value, (path) => plain.has(pointerOf(path)));
    const salvaged = salvage(yaml.value);
    for (const fault of [...form, ...(salvaged?.faults ?? [])]) {
      if (fault.path.length === 0 || !known.has(pointerOf(fault.path))) faults.push(fault);
    }
    return { protocol: salvaged?.protocol ?? null, faults };
  }
  faults.push(...zeroCharacters(yaml.value, []));
  faults.push(...contentFaults(parsed.data));
  return { protocol: parsed.data, faults };
}

/** A file in block form that was cut inside its last value can still be valid YAML. */
function cutShort(text: string, yaml: YamlDocument): readonly ProtocolFault[] {
  if (!yaml.isBlock || /[\r\n]$/.test(text)) return [];
  return [
    {
      path: [],
      offset: text.length,
      message: 'the last line does not end with a line break',
      hint: 'The file may be cut short. Check its end, and add a line break if it is complete.',
    },
  ];
}

/** No program argument, path or prompt can hold U+0000. */
function zeroCharacters(value: JsonValue, path: Path): readonly ProtocolFault[] {
  if (typeof value === 'string') {
    if (!value.includes('\0')) return [];
    return [{ path, message: 'the text holds the character U+0000', hint: 'Remove it.' }];
  }
  if (typeof value !== 'object' || value === null) return [];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return entries.flatMap(([key, item]: [string | number, JsonValue]) => zeroCharacters(item, [...path, key]));
}

/** Where a path stands: mappings at their key. What is not there is placed at the nearest thing around it. */
function offsetOf(yaml: YamlDocument, path: Path, onKey: boolean): number | null {
  const pointer = pointerOf(path);
  const key = yaml.keyOffsets.get(pointer);
  const value = yaml.valueOffsets.get(pointer);
  const found = valueAt(yaml.value, path);
  const isMapping = typeof found === 'object' && found !== null && !Array.isArray(found);
  const own = onKey || isMapping ? (key ?? value) : (value ?? key);
  if (own !== undefined) return own;
  return path.length === 0 ? null : offsetOf(yaml, path.slice(0, -1), false);
}

/** A deeply frozen copy without prototypes, so that no look-up can meet anything but what the protocol declares. */
function freeze(protocol: Protocol): Protocol {
  return deepCopy(asJson(protocol)) as unknown as Protocol;
}

function deepCopy(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(deepCopy));
  const copy = Object.create(null) as Record<string, JsonValue>;
  for (const [key, item] of Object.entries(value)) copy[key] = deepCopy(item);
  return Object.freeze(copy);
}

function parserVersion(): string {
  const read: unknown = createRequire(import.meta.url)('js-yaml/package.json');
  if (typeof read === 'object' && read !== null && 'version' in read && typeof read.version === 'string') {
    return read.version;
  }
  return 'unknown';
}
