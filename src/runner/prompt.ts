import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import type { Condition } from '../protocol/schema/conditions.js';
import { fillTemplate, parseTemplate, type Template } from '../protocol/template.js';

export interface Prompt {
  readonly system: string | null;
  readonly user: string;
}

interface Templates {
  readonly system: Template | null;
  readonly user: Template;
}

const parsed = new WeakMap<Condition, Templates>();

/**
 * The prompt of a condition for one task. Strings go in as they are, every other value as canonical JSON; what a task
 * holds is never read as a template again.
 *
 * @throws {BoundbookError} TASKS_INVALID for a field that the task does not have, PROTOCOL_INVALID for a template that
 * does not parse.
 */
export function renderPrompt(condition: Condition, fields: JsonObject): Prompt {
  let templates = parsed.get(condition);
  if (templates === undefined) {
    const { system, user } = condition.prompt;
    templates = { system: system === undefined ? null : template(system), user: template(user) };
    parsed.set(condition, templates);
  }
  const fill = (name: string) => fieldText(fields, name);
  return {
    system: templates.system === null ? null : fillTemplate(templates.system, fill),
    user: fillTemplate(templates.user, fill),
  };
}

function fieldText(fields: JsonObject, name: string): string {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (value === undefined) {
    throw new BoundbookError(
      'TASKS_INVALID',
      `the prompt names the field "${name}", which the task has not`,
      {
        hint: 'Correct the prompt or the task file, and freeze again.',
      },
    );
  }
  return typeof value === 'string' ? value : canonicalText(value);
}

function template(text: string): Template {
  const result = parseTemplate(text);
  if (result.ok) return result.template;
  throw new BoundbookError('PROTOCOL_INVALID', `a prompt has ${result.problem}`, {
    hint: 'Write {{ and }} for braces that are meant as such.',
  });
}
