import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { type ReasoningSlot, reasoningSlot } from './reasoning.js';
import { namesIn, parseTemplate, renderPrompt } from './render.js';
import type { TemplateSource } from './source.js';

/** The flag as a request sends it; `unset`: not at all. */
export const FLAGS = ['unset', 'true', 'false'] as const;
export type Flag = (typeof FLAGS)[number];

/** What a template makes of one setting of the reasoning flag. */
export type FlagResult =
  | {
      readonly slot: ReasoningSlot;
      /** Of the whole prompt, as UTF-8. */
      readonly prompt: Digest;
      /** What it writes after the user's message. */
      readonly tail: string;
    }
  | { readonly slot: 'raises'; readonly problem: string };

export interface TemplateAudit {
  readonly file: string;
  readonly template: Digest;
  readonly flags: Readonly<Record<Flag, FlagResult>>;
  /** Switches of reasoning that occur in the template, by the names that servers pass on. */
  readonly switches: readonly string[];
  readonly warnings: readonly string[];
}

const SWITCHES = ['enable_thinking', 'thinking', 'enable_reasoning', 'reasoning_effort', 'thinking_budget'];
/** A text that no template alters or holds by itself. */
const PROBE = 'boundbook-probe-7f3a';
const MAX_TAIL = 2000;

/**
 * Renders a model's chat template with the reasoning flag unset, true and false (B1).
 *
 * @throws {BoundbookError} TEMPLATE_INVALID when it is no Jinja template, or raises whatever the flag is
 */
export function auditTemplate(source: TemplateSource, where: string): TemplateAudit {
  const { file, template, tokens, disagreeing } = source;
  const program = parseTemplate(template);
  if (typeof program === 'string') throw invalid(where, `is no Jinja template: ${program}`);
  let readsClock = false;
  let drops = false;
  const result = (flag: Flag): FlagResult => {
    const thinking = flag === 'unset' ? undefined : flag === 'true';
    const rendering = renderPrompt(program, {
      messages: [{ role: 'user', content: PROBE }],
      thinking,
      tokens,
    });
    if (!rendering.ok) return { slot: 'raises', problem: rendering.problem };
    const { text } = rendering;
    readsClock ||= rendering.readsClock;
    drops ||= !text.includes(PROBE);
    const tail = text.slice(text.lastIndexOf(PROBE) + (text.includes(PROBE) ? PROBE.length : 1));
    return { slot: reasoningSlot(tail), prompt: digestOf(text), tail: tail.slice(-MAX_TAIL) };
  };
  const flags = { unset: result('unset'), true: result('true'), false: result('false') };
  const problem = FLAGS.map((flag) => flags[flag]).find((each) => each.slot === 'raises');
  if (problem?.slot === 'raises' && FLAGS.every((flag) => flags[flag].slot === 'raises'))
    throw invalid(where, `raises whatever the reasoning flag is: ${problem.problem}`);
  const names = namesIn(program);
  const switches = SWITCHES.filter((name) => names.has(name));
  const warnings = [
    ...disagreeing.map((other) => `${other} holds another template, and servers choose differently`),
    ...(sameEffect(flags) ? [noEffect(switches)] : []),
    ...(readsClock ? ['it reads the clock: the prompt is another one every day'] : []),
    ...(drops ? ["it leaves out the user's message"] : []),
  ];
  return { file, template: digestOf(template), flags, switches, warnings };
}

/** Whether true and false give the same prompt (F-153). */
export function sameEffect(flags: TemplateAudit['flags']): boolean {
  const { true: on, false: off } = flags;
  return on.slot !== 'raises' && off.slot !== 'raises' && on.prompt === off.prompt;
}

function noEffect(switches: readonly string[]): string {
  const others = switches.filter((name) => name !== 'enable_thinking');
  const instead = others.length === 0 ? '' : `; it reads ${others.join(', ')} instead`;
  return `enable_thinking has no effect: true and false give the same prompt${instead}`;
}

function invalid(where: string, problem: string): BoundbookError {
  return new BoundbookError('TEMPLATE_INVALID', `the chat template in ${where} ${problem}`, {
    hint: 'Serve the model with a template that renders; the model itself cannot be asked through this one.',
    evidence: { file: where, problem },
  });
}
