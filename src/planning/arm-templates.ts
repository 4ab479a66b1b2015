import { dirname, resolve } from 'node:path';
import { auditTemplate, type Flag, type TemplateAudit } from '../chat-template/audit.js';
import type { ReasoningSlot } from '../chat-template/reasoning.js';
import { findTemplate } from '../chat-template/source.js';
import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError, type Fault } from '../core/errors.js';
import { isFolder } from '../core/files.js';
import { pointerOf } from '../protocol/json-pointer.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Remark } from './remarks.js';

/** What one arm's prompts look like to the model, for one of its training seeds. */
export interface ArmTemplate {
  readonly arm: string;
  readonly model: string;
  /** null for a model that was not trained here. */
  readonly seed: number | null;
  /** Where the template was found, below the workspace. */
  readonly folder: string;
  readonly flag: Flag;
  readonly slot: ReasoningSlot;
  readonly audit: TemplateAudit;
}

export interface TemplateCheck {
  readonly arms: readonly ArmTemplate[];
  readonly remarks: readonly Remark[];
}

/**
 * Renders the chat template of every arm with the reasoning flag that its condition sends (B1), where the model's files
 * are in the workspace. Servers of other endpoints apply no template.
 *
 * @throws {BoundbookError} TEMPLATE_INVALID when one raises for its arm's flag; TEMPLATE_NO_EFFECT when arms differ in
 * nothing but a flag that the template ignores
 */
export async function checkTemplates(root: string, protocol: Protocol): Promise<TemplateCheck> {
  const { runner } = protocol;
  if (runner.adapter !== 'openai' || runner.endpoint !== 'chat') return { arms: [], remarks: [] };
  const remarks: Remark[] = [];
  const audits = await modelAudits(root, protocol, (message) => remarks.push({ about: 'template', message }));
  const arms: ArmTemplate[] = [];
  const faults: Fault[] = [];
  for (const [arm, { model, condition }] of Object.entries(protocol.arms)) {
    const reasoning = protocol.conditions[condition]?.reasoning;
    const flag = reasoning === undefined ? 'unset' : reasoning === 'on' ? 'true' : 'false';
    for (const { seed, folder, audit } of audits.get(model) ?? []) {
      const result = audit.flags[flag];
      if (result.slot === 'raises') {
        const where = pointerOf(['arms', arm]);
        faults.push({ where, message: `${place(folder, audit)} raises for it: ${result.problem}` });
      } else arms.push({ arm, model, seed, folder, flag, slot: result.slot, audit });
    }
  }
  if (faults.length > 0) {
    throw new BoundbookError('TEMPLATE_INVALID', 'a chat template raises for the flag that an arm sends', {
      hint: 'Plan a reasoning flag that the template takes, or serve the model with another template.',
      faults,
    });
  }
  refuseEqualArms(protocol, arms);
  remarks.push(...differences(protocol, arms));
  return { arms, remarks };
}

interface ModelAudit {
  readonly seed: number | null;
  readonly folder: string;
  readonly audit: TemplateAudit;
}

async function modelAudits(
  root: string,
  protocol: Protocol,
  remark: (message: string) => void,
): Promise<ReadonlyMap<string, readonly ModelAudit[]>> {
  const audits = new Map<string, readonly ModelAudit[]>();
  const without: string[] = [];
  const absent: string[] = [];
  const used = new Set(Object.values(protocol.arms).map(({ model }) => model));
  for (const [name, { weights, tokenizer, training_seeds: seeds }] of Object.entries(protocol.models)) {
    if (!used.has(name)) continue;
    const found: ModelAudit[] = [];
    for (const seed of seeds ?? [null]) {
      const fill = (path: string): string => path.replaceAll('{seed}', String(seed));
      const folders = [fill(weights), ...(tokenizer === undefined ? [] : [dirname(fill(tokenizer))])];
      const audit = await firstAudit(root, folders);
      if (audit !== null) found.push({ seed, ...audit });
      else {
        const present = await isFolder(resolve(root, folders[0] ?? ''));
        (present ? without : absent).push(name);
        break;
      }
    }
    for (const warning of new Set(found.flatMap(({ audit }) => audit.warnings)))
      remark(`the chat template of the model ${quoted(name)}: ${warning}`);
    audits.set(name, found);
  }
  if (without.length > 0)
    remark(`no chat template lies with ${list(without)}: the server decides the prompt`);
  if (absent.length > 0)
    remark(`chat templates were not looked at, because the weights are not here: ${list(absent)}`);
  return audits;
}

async function firstAudit(
  root: string,
  folders: readonly string[],
): Promise<{ readonly folder: string; readonly audit: TemplateAudit } | null> {
  for (const folder of folders) {
    const source = await findTemplate(resolve(root, folder));
    if (source !== null) return { folder, audit: auditTemplate(source, `${folder}/${source.file}`) };
  }
  return null;
}

/** F-153: two arms that differ in a switch which the template never reads are one arm under two names. */
function refuseEqualArms(protocol: Protocol, arms: readonly ArmTemplate[]): void {
  const faults = pairs(arms).flatMap(([a, b]) => {
    if (a.arm === b.arm || a.model !== b.model || a.seed !== b.seed || a.flag === b.flag) return [];
    const { reasoning: _a, ...conditionA } = conditionOf(protocol, a);
    const { reasoning: _b, ...conditionB } = conditionOf(protocol, b);
    if (canonicalText(conditionA) !== canonicalText(conditionB) || promptOf(a) !== promptOf(b)) return [];
    return [
      {
        where: pointerOf(['arms', b.arm]),
        message:
          `differs from ${quoted(a.arm)} in the reasoning flag alone (${a.flag}, ${b.flag}), and ` +
          `${place(a.folder, a.audit)} gives both the same prompt`,
      },
    ];
  });
  if (faults.length === 0) return;
  throw new BoundbookError('TEMPLATE_NO_EFFECT', 'two arms would ask the model the same', {
    hint: 'Drop one of the arms, or bind a chat template that reads the flag.',
    faults,
  });
}

/** What would be asked differently without the plan saying so: by the seeds of an arm, and by the arms of a queue (F-155). */
function differences(protocol: Protocol, arms: readonly ArmTemplate[]): readonly Remark[] {
  const byArm = Object.keys(protocol.arms).map((name) => arms.filter(({ arm }) => arm === name));
  const seeds = byArm.flatMap(([first, ...others]) =>
    others.flatMap((other) =>
      first === undefined
        ? []
        : contrasted(
            `the seeds ${first.seed} and ${other.seed} of the arm ${quoted(first.arm)}`,
            first,
            other,
          ),
    ),
  );
  const queues = Object.entries(protocol.queues).flatMap(([queue, { arms: names }]) => {
    const [first, ...others] = names.flatMap((name) => arms.find(({ arm }) => arm === name) ?? []);
    if (first === undefined) return [];
    return others.flatMap((other) =>
      contrasted(
        `in the queue ${quoted(queue)} the arms ${quoted(first.arm)} and ${quoted(other.arm)}`,
        first,
        other,
      ),
    );
  });
  return [...seeds, ...queues].map((message) => ({ about: 'template', message }));
}

function contrasted(pair: string, a: ArmTemplate, b: ArmTemplate): readonly string[] {
  const reasoning = `${pair} reason differently: one prompt is ${WORDS[a.slot]}, the other ${WORDS[b.slot]}`;
  const template = `${pair} have different chat templates`;
  return [
    // Flags that differ are in the plan.
    ...(a.slot === b.slot || a.flag !== b.flag ? [] : [reasoning]),
    ...(a.audit.template === b.audit.template ? [] : [template]),
  ];
}

/** How a prompt leaves the place for reasoning, in words. */
export const WORDS: Readonly<Record<ReasoningSlot, string>> = {
  closed: 'closed',
  opened: 'opened',
  left: 'left to the model',
};

function place(folder: string, { file }: TemplateAudit): string {
  return `the chat template in ${folder}/${file}`;
}

function conditionOf(protocol: Protocol, { arm }: ArmTemplate): Partial<Protocol['conditions'][string]> {
  return protocol.conditions[protocol.arms[arm]?.condition ?? ''] ?? {};
}

function promptOf({ audit, flag }: ArmTemplate): string | null {
  const result = audit.flags[flag];
  return result.slot === 'raises' ? null : result.prompt;
}

function pairs<T>(items: readonly T[]): readonly (readonly [T, T])[] {
  return items.flatMap((a, i) => items.slice(i + 1).map((b) => [a, b] as const));
}

function list(names: readonly string[]): string {
  return names.map(quoted).join(', ');
}

function quoted(name: string): string {
  return JSON.stringify(name);
}
