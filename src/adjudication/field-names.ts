import type { MaskKind } from './placeholders.js';

/**
 * What members and log fields are called that may tell an arm, a host or an outcome, and which of their values do. A name alone does
 * not make its value one: `user` is an account in an environment and a prompt in a request.
 */

/** How much of what such a name may hold is masked. */
export type ValueForm =
  /** Whatever it is. */
  | 'any'
  /** Rewards: any text, list or object. */
  | 'reward'
  /** Words with other meanings too: numbers, single words, lists; no sentence. */
  | 'verdict'
  /** Words of every program: numbers, truth values, and lists or objects of tests. */
  | 'result'
  /** The same without lists and objects of texts. */
  | 'number'
  | 'seed'
  | 'name'
  | 'host'
  /** A host only where the value looks like one. */
  | 'address'
  | 'digits'
  | 'account'
  | 'path'
  | 'time'
  /** Only a list or object. */
  | 'list';

export interface Named {
  readonly kind: MaskKind;
  readonly form: ValueForm;
}

/** Wherever in a name they stand. */
const STRONG: Readonly<Record<string, Named>> = {
  ...each('reward rewards score scores scored accuracy metric metrics', 'reward', 'reward'),
  ...each('grade points correct incorrect resolved solved outcome verdict', 'reward', 'verdict'),
  ...each('seed seeds', 'seed', 'seed'),
  ...each(
    'model models arm arms condition tokenizer weights checkpoint ckpt lora fingerprint',
    'name',
    'name',
  ),
  ...each('host hostname nodename', 'host', 'host'),
  ...each('port pid ppid', 'host', 'digits'),
  ...each('ip', 'host', 'address'),
  ...each('cwd pwd workdir workspace home', 'path', 'path'),
  ...each('created timestamp date', 'time', 'time'),
};
/** At the end of a name. */
const LAST: Readonly<Record<string, Named>> = {
  ...each('tests passed pass passing failed fail failing success successes', 'reward', 'result'),
  ...each('value values acc', 'reward', 'number'),
  ...each('node address server', 'host', 'address'),
  ...each('user username logname account', 'host', 'account'),
  // Of a slot, in the request of a command.
  ...each('tuple', 'name', 'list'),
};
/** Exceptions are evidence of the first order, whatever they are called. */
export const EXCEPTION = /(?:Error|Exception|Warning|Exit|Interrupt|Timeout):?$/;
/** What befell a thing, not the thing. */
const BEFELL = new Set(
  'error errors message reason exception traceback stderr stdout timeout seconds ms elapsed'.split(' '),
);

/** null for a name that says nothing of this kind. */
export function namedLike(name: string): Named | null {
  if (EXCEPTION.test(name)) return null;
  const words = name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[_.-]+/);
  const last = words.at(-1) ?? '';
  if (BEFELL.has(last)) return null;
  for (const word of words) if (Object.hasOwn(STRONG, word)) return STRONG[word] ?? null;
  return Object.hasOwn(LAST, last) ? (LAST[last] ?? null) : null;
}

function each(names: string, kind: MaskKind, form: ValueForm): Readonly<Record<string, Named>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, { kind, form }]));
}
