import type { JsonValue } from '../core/json.js';
import type { Path } from './json-pointer.js';
import type { Condition } from './schema/conditions.js';
import { argumentPlaceholders } from './template.js';

/** What stands in a filled config for a value that only the host knows, as a path. */
export const OF_THE_HOST: unique symbol = Symbol('of the host');

/** A config with some of its strings unknown. */
export type Wanted =
  | null
  | boolean
  | number
  | string
  | typeof OF_THE_HOST
  | readonly Wanted[]
  | { readonly [key: string]: Wanted };

/** Values by placeholder; a string of nothing but one placeholder becomes the value itself, a number for example. */
export type ConfigValues = Readonly<Record<string, JsonValue | typeof OF_THE_HOST | undefined>>;

/** Members of a condition that a config can name; `system` and `user` are its prompt's. */
export const CONDITION_NAMES = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'max_tokens',
  'stop',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'reasoning',
  'system',
  'user',
] as const;

/** What a condition says under one of {@link CONDITION_NAMES}; undefined when it says nothing. */
export function conditionValue(
  { decoding, reasoning, prompt }: Condition,
  name: (typeof CONDITION_NAMES)[number],
): JsonValue | undefined {
  if (name === 'reasoning') return reasoning;
  if (name === 'system' || name === 'user') return prompt[name];
  return decoding[name];
}

/** The placeholders of a config, with their places. */
export function configPlaceholders(
  value: unknown,
  path: Path = [],
): readonly { readonly name: string; readonly path: Path }[] {
  if (typeof value === 'string') return argumentPlaceholders(value).map((name) => ({ name, path }));
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item, i) => configPlaceholders(item, [...path, i]));
  return Object.entries(value).flatMap(([key, item]) => configPlaceholders(item, [...path, key]));
}

/** A config with its placeholders filled in. What has no value stays as it is written. */
export function fillConfig(template: unknown, values: ConfigValues): Wanted {
  if (typeof template === 'string') return fillText(template, values);
  if (typeof template !== 'object' || template === null) return template as null | boolean | number;
  if (Array.isArray(template)) return template.map((item) => fillConfig(item, values));
  return Object.fromEntries(Object.entries(template).map(([key, item]) => [key, fillConfig(item, values)]));
}

function fillText(text: string, values: ConfigValues): Wanted {
  const said = (name: string) => (Object.hasOwn(values, name) ? values[name] : undefined);
  const whole = /^\{([a-z_]+)\}$/.exec(text)?.[1];
  if (whole !== undefined) return said(whole) ?? text;
  if (argumentPlaceholders(text).some((name) => said(name) === OF_THE_HOST)) return OF_THE_HOST;
  return text.replace(/\{([a-z_]+)\}/g, (written, name: string) => {
    const value = said(name);
    if (value === undefined) return written;
    return typeof value === 'string' ? value : JSON.stringify(value);
  });
}
