/**
 * Exit codes of the command line (DESIGN §11). 0 is success and never belongs to an error.
 *
 * 1 internal fault · 2 wrong input · 3 refused by the gate · 4 integrity or audit failure · 5 stopped with work left
 */
export type ExitCode = 1 | 2 | 3 | 4 | 5;

/**
 * The closed set of error codes: what each means and how the program ends on it. `docs/errors.md` explains
 * every one of them; a test holds the two together.
 */
export const ERROR_CODES = {
  INTERNAL: { exit: 1, title: 'a fault of Boundbook itself' },
  ENTRY_REFUSED: { exit: 1, title: 'an entry that has not the declared form or is too large' },

  USAGE: { exit: 2, title: 'a flag or argument that the command does not take' },
  FILE_NOT_FOUND: { exit: 2, title: 'a named file or folder does not exist' },
  FILE_NOT_REGULAR: { exit: 2, title: 'a folder, link or special file where a regular file is expected' },
  FILE_UNREADABLE: { exit: 2, title: 'a file exists but cannot be read' },
  FILE_UNWRITABLE: { exit: 2, title: 'a file or folder cannot be created or written' },
  FILE_EXISTS: { exit: 2, title: 'a file is in the way and is never overwritten' },
  FILE_EMPTY: { exit: 2, title: 'a file of zero bytes' },
  FILE_TOO_LARGE: { exit: 2, title: 'a file is larger than its kind may be' },
  FILE_CHANGED: { exit: 2, title: 'a file changed while it was read' },
  TEXT_NOT_UTF8: { exit: 2, title: 'bytes that are not UTF-8 where text is expected' },
  JSON_INVALID: { exit: 2, title: 'text that is not strict JSON' },
  VALUE_NOT_CANONICAL: { exit: 2, title: 'a value that has no canonical JSON form' },
  PROTOCOL_INVALID: { exit: 2, title: 'a protocol with faults of form or reference' },
  PLAN_ONE_SIDED: { exit: 2, title: 'a plan that cannot come out against its author' },
  PLAN_IMPRECISE: { exit: 2, title: 'a plan whose sample cannot reach the precision that it asks for' },
  TEMPLATE_INVALID: { exit: 2, title: 'a chat template that does not render' },
  TEMPLATE_NO_EFFECT: {
    exit: 2,
    title: 'arms that differ in a reasoning flag which the chat template ignores',
  },
  TASKS_INVALID: { exit: 2, title: 'a task file that does not hold what the protocol declares' },
  BINDING_REFUSED: { exit: 2, title: 'files that cannot be bound' },
  MANIFEST_NOT_FOUND: { exit: 2, title: 'no manifest under that name or digest' },
  MANIFEST_EXISTS: {
    exit: 2,
    title: 'a manifest of this revision, or a child of this manifest, exists already',
  },
  AMEND_REFUSED: { exit: 2, title: 'an amendment that the state of the plan does not allow' },
  MANIFEST_INTERRUPTED: { exit: 2, title: 'an interrupted freeze left a temporary file behind' },
  HOST_MAP_INVALID: {
    exit: 2,
    title: 'boundbook.host.yaml maps something that is not a binding, or is malformed',
  },
  SLOT_NOT_PLANNED: { exit: 2, title: 'a slot, arm, seed or queue outside the plan' },
  PENDING_UNKNOWN: { exit: 2, title: 'an item that is not on the pending list' },
  LEDGER_NOT_FOUND: { exit: 2, title: 'no ledger at that place' },
  RESTORE_REFUSED: { exit: 2, title: 'a new incarnation where nothing was lost, or quoting the wrong state' },
  LEDGER_ON_NETWORK: { exit: 2, title: 'a ledger on a file system that hosts share' },
  OUTCOME_BLINDED: { exit: 2, title: 'an outcome was asked for before unblinding' },
  ADJUDICATION_REFUSED: {
    exit: 2,
    title: 'an act of adjudication that the state of its round does not allow',
  },
  UNBLIND_TOO_EARLY: { exit: 2, title: 'unblinding before its preconditions hold' },
  KEY_INVALID: { exit: 2, title: 'a key text or key file that has not the declared form' },
  KEY_EXPOSED: { exit: 2, title: 'a private key that others can read or that lies inside the workspace' },
  POLICY_INVALID: { exit: 2, title: 'a witness policy with faults' },
  PROOF_UNAVAILABLE: { exit: 2, title: 'a leaf or tree size that the ledger does not have' },
  OPENSSL_UNAVAILABLE: { exit: 2, title: 'the openssl program is missing or does not run' },
  REPORT_INVALID: { exit: 2, title: 'a file that is not a JSON report as it was written' },
  GIT_UNAVAILABLE: { exit: 2, title: 'the git program is missing, or cannot read a repository' },
  REPOSITORY_INVALID: {
    exit: 2,
    title: 'a folder that is no git repository, or a commit that it does not have',
  },
  ACCOUNT_INVALID: { exit: 2, title: "a scheduler's account that is not in the form that is read" },
  GRADER_INVALID: { exit: 2, title: 'a file that holds no grader that can regrade' },
  RECHECK_REFUSED: { exit: 2, title: 'stopped outputs that cannot be rechecked now' },
  REGRADE_REFUSED: { exit: 2, title: 'outputs that cannot be graded again' },
  CLAIM_INVALID: { exit: 2, title: 'a PRML claim that has not the declared form' },
  CLAIM_UNSUPPORTED: { exit: 2, title: 'a decision that a PRML claim cannot state' },

  GATE_REFUSED: { exit: 3, title: 'the host does not hold what the manifest binds' },
  PLAN_SUPERSEDED: { exit: 3, title: 'a plan whose place another revision took' },
  SERVICE_FAILED: { exit: 3, title: 'the service under test did not come up as bound' },
  HARNESS_REFUSED: { exit: 3, title: 'what trials are run with is not on this host, or is another version' },
  CGROUP_UNUSABLE: { exit: 3, title: 'the control group of the runner cannot be used' },
  SERVICE_CHANGED: { exit: 3, title: 'a service that answers fixed prompts otherwise than before' },
  PORT_NOT_OWNED: { exit: 3, title: 'the port is not served by the process that was started' },

  MANIFEST_ALTERED: { exit: 4, title: 'a manifest whose bytes do not match its name or form' },
  BUNDLE_INVALID: { exit: 4, title: 'a folder or file that is no bundle, or lacks what an audit needs' },
  LEDGER_DAMAGED: { exit: 4, title: 'a ledger that is damaged, shortened or rewritten' },
  LEDGER_FOREIGN: { exit: 4, title: 'a file that is not a Boundbook ledger' },
  OBJECT_MISSING: { exit: 4, title: 'an object that an entry names is not there' },
  OBJECT_ALTERED: { exit: 4, title: 'an object whose bytes do not match its digest' },
  NOTE_INVALID: { exit: 4, title: 'a signed note, checkpoint or proof file that has not the declared form' },
  SIGNATURE_INVALID: { exit: 4, title: 'a signature that does not verify, or none by a trusted key' },
  PROOF_INVALID: { exit: 4, title: 'a Merkle proof that does not lead to the root' },
  CHECKPOINT_INCONSISTENT: { exit: 4, title: 'two checkpoints of one ledger that contradict each other' },
  QUORUM_UNMET: { exit: 4, title: 'a checkpoint without the cosignatures that the policy asks for' },
  ENVELOPE_INVALID: { exit: 4, title: 'a signed envelope or statement that has not the declared form' },
  TIMESTAMP_INVALID: { exit: 4, title: 'a time stamp that does not verify' },
  AUDIT_FINDINGS: { exit: 4, title: 'the audit found what the rules do not allow' },

  AUTHORITY_FAILED: { exit: 5, title: 'a time-stamping authority did not answer with a time stamp' },
  STOPPED: { exit: 5, title: 'stopped by a signal with work left' },
  PROCESS_NOT_ENDED: { exit: 5, title: 'a process that was started cannot be ended' },
  BREAKER_OPEN: { exit: 5, title: 'too many infrastructure failures in a row' },
  DISK_FULL: { exit: 5, title: 'no space left for the ledger' },
  WORKSPACE_BUSY: { exit: 5, title: 'another process is writing a manifest' },
  LEDGER_BUSY: { exit: 5, title: 'another process holds the ledger' },
} as const satisfies Record<string, { exit: ExitCode; title: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;
