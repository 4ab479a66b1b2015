import type { Case } from '../case.js';
import { ADJUDICATION } from './adjudication.js';
import { AMENDMENTS } from './amendments.js';
import { APPEND_ONLY } from './append-only.js';
import { ATTRIBUTION } from './attribution.js';
import { BINDING } from './binding.js';
import { BUNDLE } from './bundle.js';
import { CAPTURE } from './capture.js';
import { CARRIED } from './carried.js';
import { COMMAND } from './command.js';
import { COMMAND_REGRADINGS } from './command-regradings.js';
import { COSTS } from './costs.js';
import { CUT } from './cut.js';
import { INCARNATIONS } from './incarnations.js';
import { INTENT } from './intent.js';
import { OBJECTS } from './objects.js';
import { RECHECKS } from './rechecks.js';
import { REGRADINGS } from './regradings.js';
import { RESULTS } from './results.js';
import { SERVICES } from './services.js';
import { SETTLEMENT } from './settlement.js';
import { SIGNED_CHECKPOINTS } from './signed-checkpoints.js';
import { STATEMENTS } from './statements.js';
import { STREAMS } from './streams.js';
import { TRIALS } from './trials.js';

export const CASES: readonly Case[] = [
  ...BINDING,
  ...INTENT,
  ...SETTLEMENT,
  ...APPEND_ONLY,
  ...ATTRIBUTION,
  ...ADJUDICATION,
  ...RESULTS,
  ...OBJECTS,
  ...BUNDLE,
  ...AMENDMENTS,
  ...CARRIED,
  ...INCARNATIONS,
  ...COMMAND,
  ...CAPTURE,
  ...CUT,
  ...SIGNED_CHECKPOINTS,
  ...STATEMENTS,
  ...STREAMS,
  ...SERVICES,
  ...COSTS,
  ...REGRADINGS,
  ...COMMAND_REGRADINGS,
  ...RECHECKS,
  ...TRIALS,
];
