import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';

/** A compiled JSON Schema: null when the value passes, else what is wrong and where. */
export type ReportSchema = (value: JsonValue) => string | null;

/**
 * Compiles a declared report schema (JSON Schema 2020-12). Unknown keywords and formats are refused, since a misspelt
 * one would check nothing; so are schemas that refer to other documents.
 *
 * @throws {BoundbookError} JSON_INVALID, TEXT_NOT_UTF8 or PROTOCOL_INVALID, naming the file.
 */
export function compileReportSchema(bytes: Uint8Array, name: string): ReportSchema {
  const schema = parseStrictJson(bytes, name);
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null)) {
    return refuse(name, 'a schema is an object');
  }
  const validate = compile(schema as boolean | Record<string, JsonValue>, name);
  return (value) => {
    if (validate(value) === true) return null;
    const error = validate.errors?.[0];
    return `${error?.instancePath || '/'} ${error?.message ?? 'does not pass the schema'}`.slice(0, 400);
  };
}

function compile(schema: boolean | Record<string, JsonValue>, name: string): ValidateFunction {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictTuples: false,
    strictRequired: false,
    allErrors: false,
    logger: false,
  });
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    return refuse(name, error instanceof Error ? error.message : 'it does not compile', error);
  }
  // An asynchronous schema answers with a promise, which would pass for a yes.
  if ('$async' in validate && validate.$async === true) refuse(name, '"$async" is not accepted');
  return validate;
}

function refuse(name: string, reason: string, cause?: unknown): never {
  const message = `${name} is no usable report schema: ${reason.slice(0, 400)}`;
  throw new BoundbookError('PROTOCOL_INVALID', message, {
    hint: 'Write JSON Schema 2020-12 in one file, with known keywords only.',
    faults: [{ where: name, message }],
    cause,
  });
}
