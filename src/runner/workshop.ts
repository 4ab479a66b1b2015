import { join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { makeFolder } from '../core/files.js';
import { compileReportSchema, type ReportSchema } from '../grading/report-schema.js';
import type { CommandRunner } from '../protocol/schema/command-runner.js';
import type { HarborRunner } from '../protocol/schema/harbor-runner.js';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Adapter, Work } from './adapters/adapter.js';
import { CommandAdapter } from './adapters/command.js';
import { HarborAdapter } from './adapters/harbor.js';
import { OpenaiAdapter } from './adapters/openai.js';
import { type Admission, readBound } from './admission.js';
import type { SourcePaths } from './argv.js';
import { CgroupFolder } from './cgroup.js';
import { ExternalService } from './external-service.js';
import { requireVersion } from './harness-version.js';
import { requirePrograms } from './programs.js';
import type { Served } from './served.js';
import { Service } from './service.js';
import { Watchdog } from './watchdog.js';

export interface WorkshopOptions {
  readonly root: string;
  readonly workers: number;
  /** Cuts what is being started. */
  readonly abandoned: AbortSignal;
}

/** The tools of a session: its adapter, its watchdog, and how services are started from the verified paths. */
export type Workshop = {
  readonly watchdog: Watchdog;
} & (
  | {
      readonly kind: 'openai';
      readonly adapter: OpenaiAdapter;
      readonly runner: OpenaiRunner;
      /** Starts a model's service from the verified paths, or takes hold of the one that the protocol names. */
      readonly launch: (model: string) => Promise<Served>;
    }
  | { readonly kind: 'command'; readonly adapter: Adapter }
);

/** @throws {BoundbookError} when a report schema cannot be used, or the work folder cannot be made. */
export async function openWorkshop(admission: Admission, options: WorkshopOptions): Promise<Workshop> {
  const { protocol } = admission.book.context;
  const { runner } = protocol;
  const workFolder = join(admission.book.folder, 'work');
  const graceMs = graceOf(runner) * 1000;
  if (runner.adapter === 'openai') {
    const folder = join(workFolder, `services-${admission.session}`);
    await makeFolder(folder);
    const watchdog = new Watchdog(graceMs);
    const launch = launcher(admission, runner, options, folder, watchdog);
    const adapter = new OpenaiAdapter(runner);
    return { kind: 'openai', adapter, runner, launch, watchdog };
  }
  await makeFolder(workFolder);
  if (runner.adapter === 'harbor') {
    const sources = sourcePaths(admission, runner.sources);
    requirePrograms(runner, sources);
    await requireVersion(runner, sources, workFolder, `${admission.session}.version`);
    const watchdog = new Watchdog(graceMs);
    return { kind: 'command', adapter: harborAdapter(admission, runner, workFolder, watchdog), watchdog };
  }
  const schemas = await reportSchemas(admission, protocol);
  const watchdog = new Watchdog(graceMs);
  const adapter = commandAdapter(admission, runner, workFolder, schemas, watchdog);
  return { kind: 'command', adapter, watchdog };
}

/** Seconds within which an attempt that is in flight ends by the limits that the protocol sets it. */
export function attemptLimit(runner: Protocol['runner']): number {
  switch (runner.adapter) {
    case 'openai':
      return runner.limits.request_s;
    case 'command':
      return runner.generate.wall_s + runner.grade.wall_s;
    case 'harbor':
      return Math.max(runner.trial.wall_s, runner.regrade?.wall_s ?? 0);
  }
}

/** Seconds that a process that was asked to end gets before it is cut. */
function graceOf(runner: Protocol['runner']): number {
  if (runner.adapter !== 'openai') return runner.grace_s;
  // Nothing is started for an external service, so that there is nothing to end.
  return 'external' in runner.service ? 0 : runner.service.stop_grace_s;
}

function launcher(
  admission: Admission,
  { service, sources: declared }: OpenaiRunner,
  { root, workers, abandoned }: WorkshopOptions,
  folder: string,
  watchdog: Watchdog,
): (model: string) => Promise<Served> {
  const common = { connections: workers, signal: abandoned };
  if ('external' in service) {
    return async (model) => new ExternalService({ config: service, model, env: process.env, ...common });
  }
  const sources = sourcePaths(admission, declared);
  let started = 0;
  return (model) => {
    const label = `service-${++started}`;
    const mark = `${admission.session}.${label}`;
    const paths = modelPaths(admission, model);
    return Service.launch({
      config: service,
      model,
      ...paths,
      sources,
      root,
      folder,
      label,
      mark,
      watchdog,
      ...common,
    });
  };
}

function commandAdapter(
  admission: Admission,
  runner: CommandRunner,
  workFolder: string,
  schemas: ReadonlyMap<Work['condition'], ReportSchema>,
  watchdog: Watchdog,
): CommandAdapter {
  return new CommandAdapter({
    runner,
    sources: sourcePaths(admission, runner.sources),
    modelPaths: (model) => modelPaths(admission, model),
    schemaOf: ({ condition }) => schemas.get(condition) ?? null,
    workFolder,
    objects: admission.book.store.objectFolder,
    cgroups: runner.cgroup === undefined ? null : CgroupFolder.open(runner.cgroup),
    markPrefix: admission.session,
    watchdog,
  });
}

function harborAdapter(
  admission: Admission,
  runner: HarborRunner,
  workFolder: string,
  watchdog: Watchdog,
): HarborAdapter {
  return new HarborAdapter({
    runner,
    manifest: admission.book.manifestDigest,
    sources: sourcePaths(admission, runner.sources),
    sourceFolder: (name) => {
      const folder = admission.inspection.paths.get(`runner/${name}`);
      if (folder === undefined) throw new BoundbookError('INTERNAL', `no verified source ${name}`);
      return folder;
    },
    modelPaths: (model) => modelPaths(admission, model),
    workFolder,
    objects: admission.book.store.objectFolder,
    markPrefix: admission.session,
    watchdog,
  });
}

/** The declared report schemas, compiled from the bound bytes. */
async function reportSchemas(
  { book, inspection }: Admission,
  protocol: Protocol,
): Promise<ReadonlyMap<Work['condition'], ReportSchema>> {
  const schemas = new Map<Work['condition'], ReportSchema>();
  for (const [name, condition] of Object.entries(protocol.conditions)) {
    const bytes = await readBound(book.manifest, inspection, `report-schema/${name}`);
    if (bytes !== null) schemas.set(condition, compileReportSchema(bytes, `report-schema/${name}`));
  }
  return schemas;
}

function sourcePaths({ inspection }: Admission, sources: Readonly<Record<string, string>>): SourcePaths {
  const paths = new Map<string, string>();
  for (const [name, declared] of Object.entries(sources)) {
    const verified = inspection.paths.get(`runner/${name}`);
    if (verified !== undefined) paths.set(declared, verified);
  }
  return paths;
}

/** Exactly the paths that the gate verified. */
function modelPaths({ inspection }: Admission, model: string): { weights: string; tokenizer: string | null } {
  const weights = inspection.paths.get(`weights/${model}`);
  if (weights === undefined) {
    throw new BoundbookError('INTERNAL', `no verified weights for ${model}`);
  }
  return { weights, tokenizer: inspection.paths.get(`tokenizer/${model}`) ?? null };
}
