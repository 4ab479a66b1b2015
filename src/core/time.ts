const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Whether a text is a time as manifests and entries hold it: UTC, RFC 3339, milliseconds. Such times compare as texts. */
export function isTime(text: unknown): text is string {
  return typeof text === 'string' && TIME.test(text);
}
