import type { CommandContext, CommandDefinition, CommandResult } from '../../src/commands/command.js';
import { type Amendment, type AmendmentRequest, amendPlan } from '../../src/ledger/amendment.js';
import { openBook } from '../../src/ledger/book.js';
import type { Entry } from '../../src/ledger/entries/entry.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import { buildReport } from '../../src/report/build.js';
import { exposureOf } from '../../src/report/exposure.js';
import { bookInput } from '../../src/report/input.js';
import type { Report } from '../../src/report/value.js';
import { fateOf } from '../../src/runner/process-identity.js';
import { type PlanSetting, protocolText, put, type Trial } from '../runner/fixture.js';

/** Runs a verb as the command line would, with flags as commander hands them over. */
export function invoke(
  command: CommandDefinition,
  root: string,
  args: readonly string[] = [],
  options: Readonly<Record<string, unknown>> = {},
): Promise<CommandResult> {
  const context: CommandContext = {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    force: new AbortController().signal,
    now: () => new Date().toISOString(),
  };
  return command.run(args, options as Parameters<CommandDefinition['run']>[1], context);
}

export interface Change extends Partial<PlanSetting> {
  readonly reason?: string;
  readonly declared?: AmendmentRequest['declared'];
  readonly superseded?: string;
  readonly isAlive?: () => boolean;
}

/** Amends a trial's plan: its own setting with some changes, the next revision unless another is named. */
export function amend(plan: Trial, setting: PlanSetting, change: Change = {}): Promise<Amendment> {
  const { reason = 'fewer training seeds', declared = {}, superseded, isAlive, ...rest } = change;
  put(plan.root, 'protocol/trial.yaml', protocolText(plan.log, { revision: 2, ...setting, ...rest }));
  return amendPlan(
    { protocol: 'protocol/trial.yaml', reason, superseded, declared },
    { root: plan.root, now: () => new Date().toISOString(), product: plan.product },
    {
      exposureOf: (manifest, book) => exposureOf(manifest, book?.fold ?? null),
      isAlive: isAlive ?? ((process) => fateOf(process) === 'alive'),
    },
  );
}

/** All entries of a manifest's ledger. */
export async function entriesOf(root: string, stored: StoredManifest): Promise<readonly Entry[]> {
  const book = await openBook(root, stored, 'read');
  try {
    return [...book.store.entries()].map(({ entry }) => entry);
  } finally {
    book.close();
  }
}

/** The report of a manifest's ledger. */
export async function reportOf(root: string, stored: StoredManifest): Promise<Report> {
  const book = await openBook(root, stored, 'read');
  try {
    return buildReport(bookInput(book));
  } finally {
    book.close();
  }
}
