const DATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * What a server asks for by Retry-After (RFC 9110, section 10.2.3), in seconds: a number of them, or a date. The date of
 * the obsolete forms is not read.
 *
 * @param now milliseconds since 1970
 * @returns null when there is none, or one of neither form; 0 for a date that is past
 */
export function retryAfter(value: string | string[] | undefined, now: number): number | null {
  if (typeof value !== 'string') return null;
  if (/^[0-9]{1,6}$/.test(value)) return Number(value);
  const time = DATE.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : Math.max(0, (time - now) / 1000);
}
