import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';

/** What a template is given besides the messages. `undefined` stands for a variable that the request did not set. */
export interface PromptInput {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  /** The reasoning flag as `chat_template_kwargs.enable_thinking` sends it; undefined: not sent. */
  readonly thinking: boolean | undefined;
  readonly tokens: Readonly<Record<string, string>>;
}

export type Rendering =
  | {
      readonly ok: true;
      readonly text: string;
      /** The template asked for the date: with a real clock its prompt is another one every day. */
      readonly readsClock: boolean;
    }
  | { readonly ok: false; readonly problem: string };

/** A template that was parsed. */
export type Program = object;

/** What is used of the library's interpreter, whose declarations name files without their endings. */
interface JinjaInterpreter {
  run(program: Program): { readonly value: unknown };
  evaluate(statement: unknown, environment: unknown): { readonly value?: unknown };
}
const BaseInterpreter = Interpreter as unknown as new (environment: Environment) => JinjaInterpreter;

/** The time that templates are told: a prompt must not depend on the day of the audit. */
export const FROZEN_TIME = new Date(Date.UTC(2000, 0, 1));
const MAX_STEPS = 100_000;
const MAX_TEXT = 1_000_000;
const MAX_RANGE = 10_000;

/** @returns the problem as a text when it is no Jinja template */
export function parseTemplate(template: string): Program | string {
  try {
    return parse(tokenize(template, { lstrip_blocks: true, trim_blocks: true }));
  } catch (error) {
    return problemOf(error);
  }
}

/**
 * Renders a chat template with the generation prompt, as transformers' apply_chat_template does. Never throws on what a
 * template does: steps, texts and ranges are bounded, and the clock stands still.
 */
export function renderPrompt(program: Program, { messages, thinking, tokens }: PromptInput): Rendering {
  const environment = new Environment();
  let readsClock = false;
  const given: Readonly<Record<string, unknown>> = {
    ...CONSTANTS,
    ...tokens,
    messages,
    add_generation_prompt: true,
    ...(thinking === undefined ? {} : { enable_thinking: thinking }),
    range,
    raise_exception: (message: string) => {
      throw new Error(message);
    },
    strftime_now: (format: string) => {
      readsClock = true;
      return formatTime(format);
    },
  };
  try {
    for (const [name, value] of Object.entries(given)) environment.set(name, value);
    const text = new Metered(environment).run(program).value;
    return typeof text === 'string'
      ? { ok: true, text, readsClock }
      : { ok: false, problem: 'it gives no text' };
  } catch (error) {
    return { ok: false, problem: problemOf(error) };
  }
}

/** Every name that a template reads or sets, wherever it stands. */
export function namesIn(program: Program): ReadonlySet<string> {
  const names = new Set<string>();
  const open: unknown[] = [program];
  const seen = new Set<unknown>();
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null || seen.has(node)) continue;
    seen.add(node);
    const { type, value } = node as { readonly type?: unknown; readonly value?: unknown };
    if (type === 'Identifier' && typeof value === 'string') names.add(value);
    open.push(...(node instanceof Map ? [...node.keys(), ...node.values()] : Object.values(node)));
  }
  return names;
}

const CONSTANTS = { true: true, false: false, none: null, True: true, False: false, None: null };

/**
 * An interpreter that gives up on templates which would not end or would fill the memory. A list counts as many steps as
 * it has items, since a loop over it may do nothing else.
 */
class Metered extends BaseInterpreter {
  #steps = 0;

  override evaluate(statement: unknown, environment: unknown): { readonly value?: unknown } {
    const result = super.evaluate(statement, environment);
    const { value } = result;
    if (typeof value === 'string' && value.length > MAX_TEXT)
      throw new Error(`it makes a text of more than ${MAX_TEXT} characters`);
    this.#steps += Array.isArray(value)
      ? 1 + value.length
      : typeof value === 'string'
        ? 1 + (value.length >> 8)
        : 1;
    if (this.#steps > MAX_STEPS) throw new Error(`it takes more than ${MAX_STEPS} steps`);
    return result;
  }
}

/** Python's `range`, bounded. */
function range(...bounds: readonly number[]): readonly number[] {
  const [start, stop, step] = bounds.length < 2 ? [0, bounds[0] ?? 0, 1] : [...bounds, 1];
  if (start === undefined || stop === undefined || step === undefined || step === 0)
    throw new Error('range() needs one to three numbers, the third not 0');
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > MAX_RANGE) throw new Error(`it asks for a range of ${count} numbers`);
  return Array.from({ length: count }, (_, i) => start + i * step);
}

const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);
const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** {@link FROZEN_TIME} by the directives of strftime(3) that chat templates use; others stay as they are. */
function formatTime(format: string): string {
  const time = FROZEN_TIME;
  const two = (number: number) => String(number).padStart(2, '0');
  const month = MONTHS[time.getUTCMonth()] ?? '';
  const day = DAYS[time.getUTCDay()] ?? '';
  const directives: Readonly<Record<string, string>> = {
    Y: String(time.getUTCFullYear()),
    y: two(time.getUTCFullYear() % 100),
    m: two(time.getUTCMonth() + 1),
    d: two(time.getUTCDate()),
    H: two(time.getUTCHours()),
    M: two(time.getUTCMinutes()),
    S: two(time.getUTCSeconds()),
    B: month,
    b: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    '%': '%',
  };
  return format.replace(/%([A-Za-z%])/g, (whole, letter: string) => directives[letter] ?? whole);
}

function problemOf(error: unknown): string {
  const message = error instanceof RangeError ? 'it nests too deeply' : (error as Error).message;
  return (message || 'it raises an error without a text').slice(0, 500).toWellFormed();
}
