import type { Digest } from '../core/digest.js';
import type { JsonValue } from '../core/json.js';

/**
 * What an audit can find, with the clause or law that it breaks. Where the state machine finds a breach itself
 * (`UNLAWFUL`), its own clause stands in the finding.
 */
export const FINDINGS = {
  MANIFEST_ALTERED: { clause: 'P10', title: 'the manifest is not as it was frozen' },
  LINEAGE_BROKEN: { clause: 'P10', title: 'a manifest does not follow from the one that it names' },
  MANIFEST_FOREIGN: { clause: 'law 1', title: 'the ledger belongs to another manifest' },
  MANIFEST_NOT_READY: { clause: 'P1', title: 'something ran although bindings were pending' },
  PLAN_DIFFERS: { clause: 'law 1', title: 'the tasks do not make the plan that was frozen' },
  LEDGER_DAMAGED: { clause: 'P16', title: 'the ledger cannot be read any further' },
  LEDGER_SCHEMA: { clause: 'law 4', title: 'the tables or triggers of the ledger were changed' },
  LEDGER_SHORTENED: { clause: 'law 4', title: 'entries at the end of the ledger are missing' },
  LEDGER_REWRITTEN: { clause: 'law 4', title: 'the ledger holds other entries than it did' },
  LEDGER_SECOND: { clause: 'law 4', title: 'there is a second ledger of the same manifest' },
  CHAIN_BROKEN: { clause: 'law 4', title: 'an entry is not in its place in the chain' },
  CHECKPOINT_DIFFERS: { clause: 'P16', title: 'a checkpoint that says something else than the ledger' },
  CHECKPOINT_SIGNATURE: { clause: 'P16', title: 'a signature of a trusted key does not verify' },
  QUORUM_UNMET: { clause: 'P16', title: 'no checkpoint has the cosignatures that the policy asks for' },
  NOT_EXTENDED: {
    clause: 'law 4',
    title: 'the ledger is no continuation of a checkpoint that was known before',
  },
  TIME_BEFORE_PLAN: { clause: 'P1', title: 'an entry is older than the plan' },
  UNLAWFUL: { clause: 'P11', title: 'an entry that the rules do not allow' },
  STAGE_CONTRADICTS: { clause: 'P16', title: 'the parts of an entry contradict each other' },
  SESSION_OVER: { clause: 'law 1', title: 'a session went on after its end' },
  RECOVERY_UNFOUNDED: { clause: 'P13', title: 'a recovery without the evidence that the process was gone' },
  REQUEST_DIFFERS: { clause: 'P18', title: 'the request is not the one that the plan fixes for the slot' },
  CANDIDATE_DIFFERS: { clause: 'P11', title: 'the candidate is not what the service answered' },
  ANSWER_DIFFERS: { clause: 'P21', title: 'what is said of an answer is not what the answer says' },
  DESCRIPTION_DIFFERS: { clause: 'P10', title: 'a service described itself otherwise than is said' },
  CANARY_DIFFERS: { clause: 'P10', title: 'the answers to the canary are not what is said of them' },
  REPORT_DIFFERS: { clause: 'B11', title: 'the report is not what grading the candidate gives' },
  VALUE_DIFFERS: { clause: 'B11', title: 'the value is not the reward of the report' },
  FAILURE_DIFFERS: { clause: 'P14', title: 'a recorded failure is not what the kept evidence shows' },
  CAPTURE_DIFFERS: { clause: 'P16', title: 'what a stage says of its own evidence is not so' },
  OBJECT_MISSING: { clause: 'P16', title: 'an object that an entry names is not there' },
  OBJECT_ALTERED: { clause: 'P16', title: 'an object holds other bytes than its digest says' },
  OBJECT_ORPHAN: { clause: 'law 4', title: 'an object that no entry names' },
  BUNDLE_INDEX: { clause: 'P16', title: 'the index of a bundle does not say what the bundle holds' },
  BUNDLE_FILE: { clause: 'P16', title: 'something lies in a bundle that no bundle holds' },
  BUNDLE_FORM: { clause: 'P16', title: 'a part of a bundle has not the declared form' },
  BUNDLE_COPY: { clause: 'P16', title: 'the database in a bundle does not hold the same entries' },
  MANIFEST_MISSING: { clause: 'P10', title: 'a manifest that the plan rests on is not there' },
  MANIFEST_SURPLUS: { clause: 'P10', title: 'a manifest that the plan does not rest on' },
  PREDECESSOR_DIFFERS: { clause: 'P22', title: 'a carried ledger is not the one that is named' },
  DISCLOSURE_FALSE: { clause: 'P16', title: 'a disclosed content is not what was committed to' },
  CARRIED_DIFFERS: { clause: 'law 3', title: 'a carried slot is not what the superseded ledger says of it' },
  CARRY_UNFOUNDED: { clause: 'P22', title: 'a slot is carried, or run, that may not be' },
  CARRY_OMITTED: { clause: 'law 3', title: 'a slot that was closed before is not carried' },
  EXPOSURE_UNDERSTATED: { clause: 'P22', title: 'more was known of outcomes than the amendment says' },
  AMENDMENT_DIFFERS: { clause: 'P22', title: 'an amendment that its two plans do not agree on' },
  WORK_ORPHAN: { clause: 'law 2', title: 'a work folder without an attempt' },
  ACCOUNT_DIFFERS: { clause: 'P21', title: "a recorded account is not what the scheduler's words say" },
  REGRADING_DIFFERS: {
    clause: 'B6',
    title: 'grading an output again gives something else than was recorded',
  },
  DEVIATION_OMITTED: {
    clause: 'B9',
    title: 'a deviation noted under the superseded plan is not noted again',
  },
  DEVIATION_DIFFERS: { clause: 'B9', title: 'a noted deviation touches other slots than it says' },
  ATTESTATION_INVALID: { clause: 'P16', title: 'a signature or time stamp that has not its form' },
  SIGNATURE_FALSE: { clause: 'P16', title: 'a signature that the key it names did not make' },
  STATEMENT_DIFFERS: { clause: 'law 10', title: 'a signed statement that the signed file contradicts' },
  TIMESTAMP_FALSE: { clause: 'P16', title: 'a time stamp that a trusted authority did not make' },
  TIME_CONTRADICTED: { clause: 'P16', title: 'a time that a verified time stamp contradicts' },
  CLAIM_DIFFERS: { clause: 'P1', title: 'a claim that the plan contradicts' },
  COMMIT_ORDER: { clause: 'P1', title: 'results were committed before the plan, or without it' },
  REPORT_NUMBER: { clause: 'B11', title: 'a report says something that does not follow from the book' },
  REPORT_FORM: { clause: 'law 10', title: 'a report in no form that can be rebuilt' },
} as const satisfies Record<string, { readonly clause: string; readonly title: string }>;

export type FindingCode = keyof typeof FINDINGS;

/** Where a finding lies. */
export interface Place {
  /** Position of the entry. */
  readonly seq?: number;
  readonly slot?: string;
  /** JSON pointer into the entry, the object or the report. */
  readonly pointer?: string;
  readonly object?: Digest;
  readonly file?: string;
}

export interface Finding {
  readonly code: FindingCode;
  /** The clause or law that is broken. */
  readonly clause: string;
  readonly where: {
    readonly seq: number | null;
    readonly slot: string | null;
    readonly pointer: string | null;
    readonly object: Digest | null;
    readonly file: string | null;
  };
  readonly message: string;
  readonly evidence: JsonValue;
}

/** A finding as it is noted, before it is known whether outcomes may be shown. */
export interface Note {
  readonly code: FindingCode;
  readonly clause?: string;
  readonly where: Place;
  readonly message: string;
  readonly evidence?: JsonValue;
  /** Message or evidence show an outcome, or let it be inferred; kept back while outcomes are blinded (law 8). */
  readonly outcome?: boolean;
}

/** How many findings are kept; a hostile ledger can break every rule in every entry. All are counted. */
export const MAX_FINDINGS = 10_000;

/** Collects findings. Nothing stops at the first. */
export class Findings {
  readonly #notes: Note[] = [];
  #total = 0;

  add(note: Note): void {
    this.#total++;
    if (this.#notes.length < MAX_FINDINGS) this.#notes.push(note);
  }

  /** Findings about a part that lies elsewhere: places that name no file are given this one. */
  within(file: string): Findings {
    return new PartFindings(this, file);
  }

  get total(): number {
    return this.#total;
  }

  /** How many were counted and not kept. */
  get omitted(): number {
    return this.#total - this.#notes.length;
  }

  /** The findings by position in the ledger, those without one first. */
  list(outcomesVisible: boolean): readonly Finding[] {
    return this.#notes
      .map((note) => toFinding(note, outcomesVisible))
      .map((finding, i) => ({ finding, i }))
      .sort((a, b) => (a.finding.where.seq ?? -1) - (b.finding.where.seq ?? -1) || a.i - b.i)
      .map(({ finding }) => finding);
  }
}

class PartFindings extends Findings {
  readonly #whole: Findings;
  readonly #file: string;

  constructor(whole: Findings, file: string) {
    super();
    this.#whole = whole;
    this.#file = file;
  }

  override add(note: Note): void {
    this.#whole.add({ ...note, where: { file: this.#file, ...note.where } });
  }
}

function toFinding(note: Note, outcomesVisible: boolean): Finding {
  const { code, where, clause = FINDINGS[code].clause } = note;
  const { seq = null, slot = null, pointer = null, object = null, file = null } = where;
  const withheld = note.outcome === true && !outcomesVisible;
  return {
    code,
    clause,
    where: { seq, slot, pointer, object, file },
    message: withheld
      ? `${FINDINGS[code].title}; details are withheld until outcomes are unblinded`
      : note.message,
    evidence: withheld ? null : (note.evidence ?? null),
  };
}
