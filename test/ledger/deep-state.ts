import { Session } from 'node:inspector';

type Described = { readonly type: string; readonly subtype?: string; readonly className?: string };
interface Remote extends Described {
  readonly value?: unknown;
  readonly unserializableValue?: string;
  readonly objectId?: string;
}
interface Property {
  readonly name: string;
  readonly value?: Remote;
  readonly enumerable?: boolean;
}
interface Properties {
  readonly result: readonly Property[];
  readonly internalProperties?: readonly Property[];
  readonly privateProperties?: readonly Property[];
}

/** Hold no private fields themselves. */
const PLAIN: ReadonlySet<string> = new Set(['Object', 'Array', 'Map']);

const HOLDER = '__boundbookDeepState';

/**
 * All that an object holds, private fields included, as plain data that can be compared: read through the inspector, so
 * that no field can hide.
 *
 * @param leftOut names of fields that are passed over, at any depth
 */
export function deepState(value: object, leftOut: readonly string[] = []): unknown {
  return inspecting(value, (post, id) => describe(post, { type: 'object', objectId: id }, new Set(leftOut)));
}

/** Names of the fields of an object, private ones with their `#`. */
export function fieldNames(value: object): readonly string[] {
  return inspecting(value, (post, objectId) => {
    const { result, privateProperties = [] } = properties(post, objectId);
    return [...result.filter(({ enumerable }) => enumerable === true), ...privateProperties].map(
      ({ name }) => name,
    );
  });
}

type Post = (method: string, parameters: object) => unknown;

function inspecting<T>(value: object, work: (post: Post, objectId: string) => T): T {
  const session = new Session();
  session.connect();
  const holder = globalThis as unknown as Record<string, unknown>;
  holder[HOLDER] = value;
  try {
    const post: Post = (method, parameters) => {
      let answer: unknown;
      session.post(method, parameters, (error, result) => {
        if (error !== null) throw new Error(JSON.stringify(error));
        answer = result;
      });
      return answer;
    };
    const { result } = post('Runtime.evaluate', { expression: `globalThis.${HOLDER}` }) as { result: Remote };
    if (result.objectId === undefined) throw new Error('no object');
    return work(post, result.objectId);
  } finally {
    delete holder[HOLDER];
    session.disconnect();
  }
}

function properties(post: Post, objectId: string): Properties {
  return post('Runtime.getProperties', { objectId, ownProperties: true }) as Properties;
}

function describe(post: Post, remote: Remote, leftOut: ReadonlySet<string>): unknown {
  if (remote.objectId === undefined) return remote.unserializableValue ?? remote.value ?? remote.type;
  if (remote.type === 'function') return 'function';
  if (remote.subtype === 'typedarray' || remote.subtype === 'arraybuffer')
    return bytesOf(post, remote.objectId);
  const asPlain = PLAIN.has(remote.className ?? '') ? plain(post, remote.objectId, leftOut) : null;
  if (asPlain !== null) return asPlain;
  const { result, internalProperties = [], privateProperties = [] } = properties(post, remote.objectId);
  if (remote.subtype === 'map' || remote.subtype === 'set') {
    const entries = internalProperties.find(({ name }) => name === '[[Entries]]')?.value;
    return { [remote.className ?? '']: entries === undefined ? [] : entriesOf(post, entries, leftOut) };
  }
  const fields = [...result.filter(({ enumerable }) => enumerable === true), ...privateProperties].filter(
    ({ name, value }) => value !== undefined && !leftOut.has(name),
  );
  const described = fields.map(
    ({ name, value }) => [name, describe(post, value as Remote, leftOut)] as const,
  );
  return Object.fromEntries(described.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function entriesOf(post: Post, { objectId = '' }: Remote, leftOut: ReadonlySet<string>): unknown {
  return properties(post, objectId).result.flatMap(({ enumerable, value }) => {
    if (enumerable !== true || value?.objectId === undefined) return [];
    const parts = properties(post, value.objectId).result.filter(({ name }) => name !== '__proto__');
    return [parts.map((part) => describe(post, part.value as Remote, leftOut))];
  });
}

/** Plain objects and lists hold no private fields: they are read at once, with the maps in them; null for others. */
function plain(post: Post, objectId: string, leftOut: ReadonlySet<string>): unknown {
  const { result } = post('Runtime.callFunctionOn', {
    objectId,
    functionDeclaration: `function () {
      const leftOut = new Set(${JSON.stringify([...leftOut])});
      let whole = true;
      const copy = (value) => {
        if (typeof value !== 'object' || value === null) return value === undefined ? 'undefined' : value;
        const name = value.constructor?.name;
        if (name === 'Map') return { Map: [...value].map(copy) };
        if (name === 'Array') return value.map(copy);
        if (name !== 'Object') whole = false;
        if (!whole) return null;
        return Object.fromEntries(
          Object.keys(value).filter((key) => !leftOut.has(key)).map((key) => [key, copy(value[key])]),
        );
      };
      const copied = copy(this);
      return whole ? JSON.stringify(copied) : 'null';
    }`,
    returnByValue: true,
  }) as { result: Remote };
  return JSON.parse(String(result.value));
}

/** Hexadecimal, without the zeros at the end: room that was made and is not used yet. */
function bytesOf(post: Post, objectId: string): string {
  const { result } = post('Runtime.callFunctionOn', {
    objectId,
    functionDeclaration:
      'function () { const b = this.buffer ?? this; return Buffer.from(b, this.byteOffset ?? 0, this.byteLength).toString("hex").replace(/0+$/, ""); }',
    returnByValue: true,
  }) as { result: Remote };
  return String(result.value);
}
