/** Ends of attempts are `report VALUE`, or of a failure its phase, cause, HTTP and embedded status, and the service. */
export interface Mode {
  /** What an attempt can end with by what the server does to it. */
  readonly ends: readonly string[];
  /** In place of `ends` when answers are streamed. */
  readonly streamed?: readonly string[];
  /** How many tasks of the plan ask for it. */
  readonly tasks?: number;
}

const LOST = 'headers connection_lost -/- alive';
const CUT = 'body connection_lost 200/- alive';
const DEAD = 'headers connection_lost -/- dead';

/** What the server of the soak does, and all that may come of it. */
export const MODES: Readonly<Record<string, Mode>> = {
  right: { ends: ['report 1'], tasks: 24 },
  wrong: { ends: ['report 0'], tasks: 8 },
  'reset-before': { ends: [LOST], tasks: 2 },
  'reset-after': { ends: [CUT], tasks: 2 },
  'reset-once': { ends: [LOST, 'report 1'], tasks: 2 },
  'cut-before': { ends: [CUT], tasks: 2 },
  'cut-after': { ends: [CUT], tasks: 2 },
  'ends-early': { ends: ['body body_malformed 200/- alive'], streamed: ['body stream_cut 200/- alive'] },
  // On a slow host its turn comes after the bound on waiting.
  'busy-429': { ends: ['report 1', 'queue queue_limit 429/- alive'], tasks: 2 },
  'busy-503': { ends: ['report 1', 'queue queue_limit 503/- alive'], tasks: 2 },
  'busy-always-429': { ends: ['queue queue_limit 429/- alive'] },
  'busy-always-503': { ends: ['queue queue_limit 503/- alive'] },
  500: { ends: ['headers http_status 500/- alive'], tasks: 2 },
  'error-200': { ends: ['body body_error 200/429 alive'], tasks: 2 },
  html: { ends: ['body body_not_json 200/- alive'] },
  huge: { ends: ['body body_too_large 200/- alive'] },
  hangs: { ends: ['headers time_limit -/- alive'] },
  stalls: { ends: ['body time_limit 200/- alive'] },
  dies: { ends: [DEAD, 'report 1'] },
  'hangs-up': { ends: [DEAD, 'report 1'] },
  refuses: { ends: ['report 1'] },
  'slow-health': { ends: ['report 1'] },
};

/** Two tasks whose answers can change places: which of both comes is chance. */
export const SWAP = 'swap';
const SWAPPED: Mode = { ends: ['report 1', 'report 0'] };

/**
 * What can happen to any attempt: the server dies or hangs under it, or does not listen for a moment. A connection that
 * the kernel took and the server never saw is lost when the server stops listening.
 */
const TO_ANY: readonly RegExp[] = [
  /^(connect|headers|body|queue) connection_(lost|refused) \S+ dead$/,
  /^connect connection_refused -\/- alive$/,
  /^headers connection_lost -\/- alive$/,
];

/** Whatever comes of a request, its server may be dead by the time that it is looked at. */
export function isOwnEnd(prompt: string, stream: boolean, end: string): boolean {
  const mode = modeOf(prompt);
  const ends = stream ? (mode.streamed ?? mode.ends) : mode.ends;
  return ends.includes(end) || ends.includes(end.replace(/ dead$/, ' alive'));
}

export function canHappenToAny(end: string): boolean {
  return TO_ANY.some((pattern) => pattern.test(end));
}

function modeOf(prompt: string): Mode {
  const word = prompt.split(' ')[0] ?? '';
  const mode = word === SWAP ? SWAPPED : MODES[word];
  if (mode === undefined) throw new Error(`the server has no mode ${word}`);
  return mode;
}

/** Tasks by id and their prompts. */
export function soakPrompts(): Record<string, string> {
  const prompts: Record<string, string> = { 'swap-7': `${SWAP} 7`, 'swap-8': `${SWAP} 8` };
  for (const [mode, { tasks = 1 }] of Object.entries(MODES)) {
    for (let i = 0; i < tasks; i++) prompts[`${mode}-${i}`] = `${mode} ${i}`;
  }
  return prompts;
}
