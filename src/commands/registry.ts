import { command as adjudicate } from './adjudicate.js';
import { command as amend } from './amend.js';
import { command as audit } from './audit.js';
import { command as bind } from './bind.js';
import { command as check } from './check.js';
import { command as checkpoint } from './checkpoint.js';
import type { CommandDefinition } from './command.js';
import { command as exportBundle } from './export.js';
import { command as freeze } from './freeze.js';
import { command as init } from './init.js';
import { command as keygen } from './keygen.js';
import { command as note } from './note.js';
import { command as plan } from './plan.js';
import { command as regrade } from './regrade.js';
import { command as report } from './report.js';
import { command as run } from './run.js';
import { command as schema } from './schema.js';
import { command as show } from './show.js';
import { command as sign } from './sign.js';
import { command as status } from './status.js';
import { command as template } from './template.js';
import { command as timestamp } from './timestamp.js';
import { command as unblind } from './unblind.js';
import { command as verify } from './verify.js';

/** All verbs, in the order in which a plan meets them. */
export const COMMANDS: readonly CommandDefinition[] = [
  init,
  schema,
  check,
  template,
  plan,
  freeze,
  bind,
  amend,
  keygen,
  verify,
  run,
  checkpoint,
  status,
  show,
  note,
  adjudicate,
  regrade,
  unblind,
  report,
  sign,
  timestamp,
  audit,
  exportBundle,
];
