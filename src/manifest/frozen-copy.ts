/**
 * A deeply frozen copy of plain data whose objects have no prototype, so that no look-up by a foreign name can meet
 * anything but data.
 */
export function frozenCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(copy));
  const target = Object.create(null) as Record<string, unknown>;
  for (const [key, item] of Object.entries(value)) target[key] = copy(item);
  return Object.freeze(target);
}
