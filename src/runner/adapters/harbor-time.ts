import type { JsonValue } from '../../core/json.js';

const INSTANT =
  /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/**
 * Milliseconds since 1970 of a time in ISO 8601 with its zone, rounded down; null for anything else, a time without a
 * zone above all: nobody knows when that was.
 */
export function instantMs(value: JsonValue | undefined): number | null {
  const match = typeof value === 'string' ? INSTANT.exec(value) : null;
  if (match === null || match[0].startsWith('0000')) return null;
  const [, day = '', time = '', fraction = '', zone = 'Z'] = match;
  const local = new Date(`${day}T${time}Z`);
  if (Number.isNaN(local.getTime()) || local.toISOString().slice(0, 19) !== `${day}T${time}`) return null;
  const sign = zone.startsWith('-') ? -1 : 1;
  const [hours = 0, minutes = 0] = zone === 'Z' ? [] : zone.slice(1).split(':').map(Number);
  return local.getTime() - sign * (hours * 60 + minutes) * 60_000 + Number(`${fraction}000`.slice(0, 3));
}
