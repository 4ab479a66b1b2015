import { z } from 'zod';
import type { JsonObject, JsonValue } from '../core/json.js';
import type { Path } from './json-pointer.js';
import { protocolSchema } from './schema/protocol.js';

let cached: JsonObject | undefined;

/** The protocol's JSON Schema (2020-12), for editors (`boundbook schema`). It holds the form, not the references. */
export function protocolJsonSchema(): JsonObject {
  cached ??= {
    ...(z.toJSONSchema(protocolSchema, { target: 'draft-2020-12' }) as JsonObject),
    title: 'Boundbook protocol, version 1',
  };
  return cached;
}

/**
 * The keys that the object at this place may have; empty when any key is an id of the author's choice. Of several
 * forms only those count that agree with the object's own discriminating words (`adapter: openai`).
 */
export function knownKeys(path: Path, value: JsonValue | undefined): readonly string[] {
  const forms = schemasAt(path)
    .map((schema) => objectOf(schema.properties))
    .filter((properties) => agrees(properties, objectOf(value)));
  return [...new Set(forms.flatMap((properties) => Object.keys(properties)))];
}

function agrees(properties: JsonObject, value: JsonObject): boolean {
  return Object.entries(properties).every(([key, property]) => {
    const word = objectOf(property).const;
    return typeof word !== 'string' || typeof value[key] !== 'string' || value[key] === word;
  });
}

/** The words of an enumeration at this place; empty when there is none. */
export function knownWords(path: Path): readonly string[] {
  return schemasAt(path).flatMap((schema) =>
    [...arrayOf(schema.enum), schema.const].filter((word) => typeof word === 'string'),
  );
}

function schemasAt(path: Path): readonly JsonObject[] {
  let schemas = alternatives(protocolJsonSchema());
  for (const part of path) {
    schemas = schemas.flatMap((schema) => childrenOf(schema, part)).flatMap(alternatives);
  }
  return schemas;
}

function childrenOf(schema: JsonObject, part: string | number): readonly JsonObject[] {
  if (typeof part === 'number') return isObject(schema.items) ? [schema.items] : [];
  const properties = objectOf(schema.properties);
  const own = Object.hasOwn(properties, part) ? properties[part] : schema.additionalProperties;
  return isObject(own) ? [own] : [];
}

/** A schema and everything that its unions offer. */
function alternatives(schema: JsonObject): readonly JsonObject[] {
  const offered = [...arrayOf(schema.anyOf), ...arrayOf(schema.oneOf)].filter(isObject);
  return [schema, ...offered.flatMap(alternatives)];
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function arrayOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
