export interface Violation {
  /** The clause or law that the event breaks. */
  readonly clause: string;
  readonly message: string;
}

export function forbid(clause: string, message: string): Violation {
  return { clause, message };
}
