/** Any JSON value. Objects are plain records; there is no `undefined`, no date, no typed array. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}
