import {
  COLLECTION_STYLE,
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE,
  YAMLException,
} from 'js-yaml';
import type { JsonValue } from '../core/json.js';
import type { ProtocolFault } from './fault-list.js';
import { type Path, pointerOf } from './json-pointer.js';
import { readPlain } from './yaml-scalar.js';

/** An unquoted scalar: only those can mean different things to different readers. */
export interface PlainScalar {
  readonly path: Path;
  readonly text: string;
  readonly role: 'key' | 'value';
  readonly offset: number;
}

export interface YamlDocument {
  /** The value; objects have no prototype. Keys that were refused are left out, the first of two equal keys counts. */
  readonly value: JsonValue;
  readonly plain: readonly PlainScalar[];
  readonly faults: readonly ProtocolFault[];
  /** Whether the document is written with indentation at its top rather than in braces. */
  readonly isBlock: boolean;
  /** Offsets of keys and values by JSON pointer. */
  readonly keyOffsets: ReadonlyMap<string, number>;
  readonly valueOffsets: ReadonlyMap<string, number>;
}

type ScalarEvent = Extract<Event, { type: typeof EVENT_ID.SCALAR }>;

const MAX_DEPTH = 60;

/** A text that is no YAML at all: where the parser stopped and why. */
export class YamlSyntaxFault {
  constructor(
    readonly offset: number,
    readonly message: string,
    readonly hint: string,
  ) {}
}

/**
 * Reads one strict YAML 1.2 document (DESIGN §5). Everything that YAML allows and a protocol does not (anchors,
 * aliases, tags, merge keys, equal keys, keys that are no text) is listed in `faults` with the place where it stands.
 *
 * @returns a {@link YamlSyntaxFault} when the text is no YAML.
 */
export function parseYaml(text: string): YamlDocument | YamlSyntaxFault {
  let events: Event[];
  try {
    events = parseEvents(text, { maxDepth: MAX_DEPTH });
  } catch (error) {
    return syntaxFault(error);
  }
  if (!events.some((event) => event.type === EVENT_ID.DOCUMENT)) {
    return new YamlSyntaxFault(
      0,
      'the file holds no YAML document',
      'It is blank or has comments only; `boundbook init` writes an example.',
    );
  }
  return new DocumentBuilder(text, events).build();
}

function syntaxFault(error: unknown): YamlSyntaxFault {
  if (!(error instanceof YAMLException)) {
    return new YamlSyntaxFault(0, `the text is not YAML: ${String(error)}`, 'Check the file.');
  }
  const reason = error.reason;
  return new YamlSyntaxFault(
    error.mark?.position ?? 0,
    `the text is not YAML: ${reason}`,
    syntaxHint(reason),
  );
}

function syntaxHint(reason: string): string {
  if (reason.includes('tab')) return 'Indent with spaces; YAML does not take tabs there.';
  if (reason.includes('end of the stream within') || reason.includes('deficient indentation')) {
    return 'A quote or bracket before it is not closed, a line is indented too little, or the file is cut short.';
  }
  if (reason.includes('null byte')) {
    return 'Zeros are often what a power cut leaves of a file, or it is not UTF-8 text. Restore it.';
  }
  if (reason.includes('maxDepth')) return `A protocol is nested at most ${MAX_DEPTH} levels deep.`;
  return 'Look at this line and the one before it: indentation, a colon, a quote.';
}

/** Builds the value from the parser's events and notes places and faults on the way. */
class DocumentBuilder {
  readonly #text: string;
  readonly #events: readonly Event[];
  readonly #faults: ProtocolFault[] = [];
  readonly #plain: PlainScalar[] = [];
  readonly #keyOffsets = new Map<string, number>();
  readonly #valueOffsets = new Map<string, number>();
  #next = 0;
  /** Where the last node with a place began: the place of a node that is empty. */
  #last = 0;

  constructor(text: string, events: readonly Event[]) {
    this.#text = text;
    this.#events = events;
  }

  build(): YamlDocument {
    const document = this.#take();
    if (document?.type === EVENT_ID.DOCUMENT && document.directives.length > 0) {
      this.#fault([], 'a directive (a line that begins with %) is not accepted', 'Remove the line.', 0);
    }
    const first = this.#events[this.#next];
    const isBlock = first?.type === EVENT_ID.MAPPING && first.style === COLLECTION_STYLE.BLOCK;
    const value = this.#peekIs(EVENT_ID.POP) ? null : this.#node([]);
    this.#next++;
    this.#refuseFurtherDocuments();
    return {
      value,
      plain: this.#plain,
      faults: this.#faults,
      isBlock,
      keyOffsets: this.#keyOffsets,
      valueOffsets: this.#valueOffsets,
    };
  }

  #refuseFurtherDocuments(): void {
    if (this.#next >= this.#events.length) return;
    const rest = this.#events.slice(this.#next).map(offsetOf);
    const offset = rest.find((at) => at !== null) ?? this.#text.length;
    this.#fault([], 'the file holds more than one document', 'Keep one document in a file.', offset);
  }

  #take(): Event | undefined {
    return this.#events[this.#next++];
  }

  #peekIs(type: Event['type']): boolean {
    const event = this.#events[this.#next];
    return event === undefined || event.type === type;
  }

  #fault(path: Path, message: string, hint: string, offset: number): void {
    this.#faults.push({ path, message, hint, offset });
  }

  #node(path: Path): JsonValue {
    const event = this.#take();
    if (event === undefined) return null;
    const offset = this.#place(event);
    this.#valueOffsets.set(pointerOf(path), offset);
    this.#refuseDecoration(event, path, offset);
    switch (event.type) {
      case EVENT_ID.SCALAR:
        return this.#scalar(event, path, offset);
      case EVENT_ID.SEQUENCE:
        return this.#sequence(path);
      case EVENT_ID.MAPPING:
        return this.#mapping(path);
      case EVENT_ID.ALIAS:
        this.#fault(
          path,
          'an alias (*name) is not accepted',
          'Write the value out where it is used.',
          offset,
        );
        return null;
      default:
        return null;
    }
  }

  #place(event: Event): number {
    this.#last = offsetOf(event) ?? this.#last;
    return this.#last;
  }

  #refuseDecoration(event: Event, path: Path, offset: number): void {
    if (!('tagStart' in event)) return;
    if (event.anchorStart !== -1) {
      this.#fault(path, 'an anchor (&name) is not accepted', 'Remove it; write values out.', offset);
    }
    if (event.tagStart !== -1) {
      const tag = this.#text.slice(event.tagStart, event.tagEnd);
      this.#fault(path, `the tag ${tag} is not accepted`, 'Remove it; quote what is meant as text.', offset);
    }
  }

  #sequence(path: Path): JsonValue {
    const items: JsonValue[] = [];
    while (!this.#peekIs(EVENT_ID.POP)) items.push(this.#node([...path, items.length]));
    this.#next++;
    return items;
  }

  #mapping(path: Path): JsonValue {
    const entries = Object.create(null) as Record<string, JsonValue>;
    while (!this.#peekIs(EVENT_ID.POP)) {
      const key = this.#key(path, entries);
      // The value of a refused key is read for its faults and dropped.
      const value = this.#node([...path, key.name]);
      if (key.accepted) entries[key.name] = value;
    }
    this.#next++;
    return entries;
  }

  #key(path: Path, entries: Readonly<Record<string, JsonValue>>): { name: string; accepted: boolean } {
    const event = this.#events[this.#next];
    if (event?.type !== EVENT_ID.SCALAR) return this.#refuseKeyNode(path);
    this.#next++;
    // An empty key has no place of its own; its value has.
    const offset = offsetOf(event) ?? offsetOf(this.#events[this.#next]) ?? this.#last;
    this.#last = offset;
    this.#refuseDecoration(event, path, offset);
    const name = getScalarValue(this.#text, event);
    const own = [...path, name];
    const problem = this.#keyProblem(event, name, entries);
    if (problem !== null) {
      this.#fault(own, problem.message, problem.hint, offset);
      return { name, accepted: false };
    }
    this.#keyOffsets.set(pointerOf(own), offset);
    this.#refuseSurrogates(event, name, own, offset);
    if (event.style === SCALAR_STYLE.PLAIN) this.#plain.push({ path: own, text: name, role: 'key', offset });
    return { name, accepted: true };
  }

  #refuseKeyNode(path: Path): { name: string; accepted: false } {
    const name = '?';
    const before = this.#next;
    this.#node([...path, name]);
    const offset = offsetOf(this.#events[before]) ?? this.#last;
    this.#fault(path, 'a key that is not a text is not accepted', 'Use a plain or quoted text.', offset);
    return { name, accepted: false };
  }

  #keyProblem(
    event: ScalarEvent,
    name: string,
    entries: Readonly<Record<string, JsonValue>>,
  ): { message: string; hint: string } | null {
    const plain = event.style === SCALAR_STYLE.PLAIN;
    if (plain && name === '<<') {
      return {
        message: 'a merge key (<<) is not accepted',
        hint: 'Write the settings out; readers merge differently.',
      };
    }
    if (plain && readPlain(name).kind !== 'string') {
      const kind = readPlain(name).kind;
      return {
        message: `the key ${name || '(empty)'} is a ${kind}, not a text`,
        hint: `Quote it: "${name}".`,
      };
    }
    if (name === '__proto__') return { message: 'the key "__proto__" is not accepted', hint: 'Rename it.' };
    if (name in entries) {
      return {
        message: `the key ${JSON.stringify(name)} occurs twice`,
        hint: 'Keep one; readers disagree on which one counts.',
      };
    }
    return null;
  }

  #scalar(event: ScalarEvent, path: Path, offset: number): JsonValue {
    const text = getScalarValue(this.#text, event);
    this.#refuseSurrogates(event, text, path, offset);
    if (event.style !== SCALAR_STYLE.PLAIN) return text;
    this.#plain.push({ path, text, role: 'value', offset });
    const reading = readPlain(text);
    switch (reading.kind) {
      case 'null':
        return null;
      case 'string':
        return text;
      case 'boolean':
        return reading.value;
      case 'number':
        if (reading.fault) this.#fault(path, reading.fault.message, reading.fault.hint, offset);
        return Number.isFinite(reading.value) ? reading.value : 0;
    }
  }

  #refuseSurrogates(event: ScalarEvent, text: string, path: Path, offset: number): void {
    const escaped = event.style === SCALAR_STYLE.DOUBLE_QUOTED && this.#hasSurrogateEscape(event);
    if (text.isWellFormed() && !escaped) return;
    this.#fault(
      path,
      'the text holds half of a surrogate pair (an escape from \\ud800 to \\udfff)',
      'Write the character itself, or its code point as \\U0001F600.',
      offset,
    );
  }

  #hasSurrogateEscape(event: ScalarEvent): boolean {
    const source = this.#text.slice(event.valueStart, event.valueEnd);
    for (const [sequence] of source.matchAll(/\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)/gs)) {
      if (/^\\(?:u|U0000)[dD][89a-fA-F]/.test(sequence)) return true;
    }
    return false;
  }
}

/** Where a node's text begins; null for an empty one. Quoted texts begin at their quote. */
function offsetOf(event: Event | undefined): number | null {
  switch (event?.type) {
    case EVENT_ID.SCALAR: {
      if (event.valueStart < 0) return null;
      const quoted = event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED;
      return quoted ? event.valueStart - 1 : event.valueStart;
    }
    case EVENT_ID.SEQUENCE:
    case EVENT_ID.MAPPING:
      return event.start;
    case EVENT_ID.ALIAS:
      return event.anchorStart;
    default:
      return null;
  }
}
