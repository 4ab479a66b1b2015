/**
 * A prompt with placeholders: `{field}` stands for a field of the task, `{{` and `}}` for braces. A template is
 * parsed once and filled in many times; filled-in values are never parsed again.
 */
export interface Template {
  /** Texts and placeholder names in turn: text, name, text, name, …, text. */
  readonly parts: readonly string[];
}

export type TemplateResult =
  | { readonly ok: true; readonly template: Template }
  | { readonly ok: false; readonly problem: string };

export function parseTemplate(text: string): TemplateResult {
  const parts: string[] = [''];
  let i = 0;
  const append = (piece: string): void => {
    parts.push(`${parts.pop() ?? ''}${piece}`);
  };
  while (i < text.length) {
    const c = text[i];
    if ((c === '{' || c === '}') && text[i + 1] === c) {
      append(c);
      i += 2;
    } else if (c === '}') {
      return { ok: false, problem: 'a closing brace without an opening one' };
    } else if (c === '{') {
      const end = text.indexOf('}', i);
      const name = end < 0 ? '' : text.slice(i + 1, end);
      if (end < 0) return { ok: false, problem: 'an opening brace without a closing one' };
      if (name === '' || /[{\n]/.test(name)) return { ok: false, problem: 'braces that hold no name' };
      parts.push(name, '');
      i = end + 1;
    } else {
      const next = text.slice(i).search(/[{}]/);
      const end = next < 0 ? text.length : i + next;
      append(text.slice(i, end));
      i = end;
    }
  }
  return { ok: true, template: { parts } };
}

/** The placeholder names of a template, each once, in order of appearance. */
export function placeholders(template: Template): readonly string[] {
  return [...new Set(template.parts.filter((_, i) => i % 2 === 1))];
}

/** Fills a template in. `fill` is asked for each placeholder; every name must be known to it. */
export function fillTemplate(template: Template, fill: (name: string) => string): string {
  return template.parts.map((part, i) => (i % 2 === 1 ? fill(part) : part)).join('');
}

/**
 * The placeholders of a program argument or a path: lower-case words in braces. Any other brace stands for itself, so
 * that arguments in JSON need no escapes.
 */
export function argumentPlaceholders(argument: string): readonly string[] {
  return [...argument.matchAll(/\{([a-z_]+)\}/g)].map((match) => match[1] ?? '');
}
