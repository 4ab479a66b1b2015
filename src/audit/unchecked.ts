/** What an audit could not check because contents are redacted (law 11). */
const WORDS = {
  request: 'requests against the plan',
  candidate: 'candidates against the answers that they came in',
  failure: 'failures against the answers that were kept',
  grade: 'values against the answers: only against the reports',
  trial: 'trials against what was kept of them',
  report: 'values at all: their reports are redacted',
  capture: 'what was said of output that was cut',
  description: 'descriptions that services gave of themselves',
  canary: 'answers to the canary',
  expected_tests: 'reports against the tests that were expected',
} as const;

/** How often these occur tells nothing of outcomes (law 8). */
const SHOWS_NOTHING: ReadonlySet<string> = new Set(['request', 'description', 'canary']);

export type UncheckedKind = keyof typeof WORDS;

/** Counts checks that redaction made impossible. */
export class Unchecked {
  readonly #counts = new Map<UncheckedKind, number>();

  add(kind: UncheckedKind): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
  }

  /** @param outcomesVisible numbers of answers and failures tell of outcomes (law 8) */
  lines(outcomesVisible: boolean): readonly string[] {
    return [...this.#counts].map(([kind, count]) =>
      outcomesVisible || SHOWS_NOTHING.has(kind)
        ? `redacted: ${count} ${WORDS[kind]}`
        : `redacted: ${WORDS[kind]}`,
    );
  }
}
