/**
 * The state in which a prompt leaves the place for reasoning: `closed` after an end mark, so that the model answers at
 * once; `opened` after a start mark, so that it must reason first; `left` when neither is there, so that it chooses (B1).
 */
export type ReasoningSlot = 'closed' | 'opened' | 'left';

/** Marks in angle brackets with a name of their own: `<think>`, `<seed:think>`, `<reasoning>`, `<thought>` … */
const TAG = String.raw`(?:[\w-]+:)?(?:think(?:ing)?|thought|reason(?:ing)?)`;

const START = new RegExp(
  [
    `<${TAG}>`,
    String.raw`\[THINK\]`,
    String.raw`<\|START_THINKING\|>`,
    String.raw`<\|begin_of_thought\|>`,
    '◁think▷',
    String.raw`<\|inner_prefix\|>`,
    String.raw`<\|channel\|>analysis<\|message\|>`,
    String.raw`<\|channel>thought`,
  ].join('|'),
  'g',
);

const END = new RegExp(
  [
    `</${TAG}>`,
    String.raw`\[/THINK\]`,
    String.raw`<\|END_THINKING\|>`,
    String.raw`<\|end_of_thought\|>`,
    '◁/think▷',
    String.raw`<\|inner_suffix\|>`,
    String.raw`<\|channel\|>final<\|message\|>`,
    '<channel\\|>',
  ].join('|'),
  'g',
);

/** @param tail what the template writes after the last message: the generation prompt */
export function reasoningSlot(tail: string): ReasoningSlot {
  const start = lastIndex(tail, START);
  const end = lastIndex(tail, END);
  if (start === -1 && end === -1) return 'left';
  return end > start ? 'closed' : 'opened';
}

function lastIndex(text: string, marks: RegExp): number {
  let last = -1;
  for (const match of text.matchAll(marks)) last = match.index;
  return last;
}
