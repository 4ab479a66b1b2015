import type { JsonValue } from '../core/json.js';
import type { ShownEffort } from '../ledger/costs.js';
import type { LedgerStatus, Status } from '../ledger/status.js';
import type { Seal, SuccessionStatus } from '../ledger/succession-status.js';
import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'status',
  args: '[manifest]',
  summary: 'show how far a run is: counts, coverage, cost, sessions, ledger head; never an outcome',
  options: [],
  examples: ['boundbook status', 'boundbook status obme-final --json', 'watch boundbook status'],
  next: 'boundbook run goes on with what is pending; boundbook unblind when nothing is',
  run: async ([selector], _options, context) => {
    const { readStatus } = await import('../ledger/status.js');
    const status = await readStatus(context.root, selector, context.now().slice(0, 10));
    return { text: await statusText(status), json: await statusJson(status) };
  },
};

async function statusJson({ stored, ledger, succession, overdue, gaps }: Status): Promise<JsonValue> {
  const { manifest, digest, file } = stored;
  const { weightsJson } = await import('./manifest-output.js');
  return {
    manifest: {
      file,
      digest,
      name: manifest.name,
      revision: manifest.revision,
      execution_ready: manifest.execution_ready,
      pending: [...manifest.pending],
      blinding: manifest.protocol.blinding,
      due: manifest.due,
      ...weightsJson(manifest.protocol),
    },
    plan: manifest.plan === null ? null : { ...manifest.plan },
    ledger: ledger === null ? null : ledgerJson(ledger),
    succession: {
      supersedes: succession.supersedes.map((one) => ({ ...one, seal: { ...one.seal } })),
      missing: succession.missing,
      superseded_by:
        succession.superseded_by === null
          ? null
          : { ...succession.superseded_by, seal: { ...succession.superseded_by.seal } },
    },
    overdue: overdue.map((plan) => ({ ...plan })),
    gaps: gaps.map((gap) => ({ ...gap })),
  };
}

function ledgerJson(ledger: LedgerStatus): JsonValue {
  const { used, failed, unused, open, ...devices } = ledger.costs;
  return {
    head: { ...ledger.head },
    queues: ledger.queues.map((counts) => ({ ...counts, coverage: coverage(counts) })),
    total: { ...ledger.total, coverage: coverage(ledger.total) },
    carried: ledger.carried === null ? null : { ...ledger.carried },
    attempts: { ...ledger.attempts },
    costs: { used: { ...used }, failed: { ...failed }, unused: { ...unused }, open: { ...open }, ...devices },
    sessions: ledger.sessions.map((session) => ({ ...session })),
    deviations: ledger.deviations.map((deviation) => ({ ...deviation })),
    adjudication: {
      waiting: ledger.adjudication.waiting,
      open: ledger.adjudication.open === null ? null : { ...ledger.adjudication.open },
      closed: ledger.adjudication.closed.map((round) => ({ ...round })),
    },
    noted: ledger.noted.map((note) => ({ ...note, slots: { ...note.slots } })),
    incarnation: ledger.incarnation,
    restorations: ledger.restorations.map((restoration) => ({ ...restoration })),
    unblinded: ledger.unblinded === null ? null : { ...ledger.unblinded },
  };
}

async function statusText({ stored, ledger, succession, overdue, gaps }: Status): Promise<string> {
  const { manifest, digest, file } = stored;
  const { labelled } = await import('./manifest-output.js');
  const { operatorsWord } = await import('../protocol/operators-word.js');
  const word = operatorsWord(manifest.protocol);
  const pending = manifest.pending.length;
  const parts = [
    labelled([
      ['plan', `${manifest.name} revision ${manifest.revision}: ${manifest.title}`],
      ['manifest', file],
      ['digest', digest],
      ...successionRows(succession),
      ...(word === null ? [] : ([['weights', word]] as [string, string][])),
      ['ready', manifest.execution_ready ? 'yes' : `no: ${pending} pending, see \`boundbook bind ${file}\``],
    ]),
    ...(ledger === null
      ? [noLedger(manifest.plan?.count ?? null)]
      : await ledgerText(ledger, manifest.protocol.blinding)),
    ...overdue.map(
      ({ name, revision, due }) => `OVERDUE: the report of ${name} revision ${revision} was due on ${due}.`,
    ),
    ...gaps.map(({ manifest, message }) => `GAP: ${manifest}: ${message}.`),
  ];
  return parts.join('\n\n');
}

/** P22: the plans before and after. */
function successionRows({
  supersedes,
  missing,
  superseded_by: newest,
}: SuccessionStatus): [string, string][] {
  const completes = '`boundbook run` or `boundbook amend` adds the entry';
  return [
    ...(newest === null
      ? []
      : ([
          [
            'superseded',
            `by revision ${newest.revision}, ${newest.file}; ${sealText(newest.seal, `this ledger does not say so yet: ${completes}`)}`,
          ],
        ] as [string, string][])),
    ...supersedes.map(({ file, revision, seal }, i): [string, string] => [
      i === 0 ? 'supersedes' : '',
      `revision ${revision}, ${file}; ${sealText(seal, `its ledger does not say so yet: ${completes}`)}`,
    ]),
    ...(missing === null ? [] : [['missing', `the superseded manifest ${missing}`] as [string, string]]),
  ];
}

function sealText(seal: Seal, unrecorded: string): string {
  switch (seal.kind) {
    case 'recorded':
      return `sealed by entry ${seal.entry}`;
    case 'no ledger':
      return 'it never ran';
    case 'unrecorded':
      return unrecorded;
    case 'unreadable':
      return 'its ledger cannot be read';
    default:
      return seal satisfies never;
  }
}

function carriedRows({ carried }: LedgerStatus): [string, string][] {
  if (carried === null) return [];
  const { settled, unresolved, attempts, again, dropped, ledger, manifest } = carried;
  return [
    [
      'carried',
      `${settled + unresolved} slots (${settled} settled, ${unresolved} unresolved) with ${attempts} attempts, from ledger ${ledger.slice(0, 8)} of ${manifest.slice(0, 19)}…; not run again`,
    ],
    ...(again + dropped === 0
      ? []
      : [['', `${again} closed there are run again, ${dropped} are given up`] as [string, string]]),
  ];
}

function noLedger(count: number | null): string {
  return count === null
    ? 'No ledger and no plan yet: a task file is not bound.'
    : `No ledger yet: all ${count} slots are pending.`;
}

async function ledgerText(ledger: LedgerStatus, blinding: 'masked' | 'none'): Promise<string[]> {
  const { labelled } = await import('./manifest-output.js');
  const { renderTable } = await import('../planning/table.js');
  const { adjudicationRows } = await import('./status-adjudication.js');
  const { head, attempts } = ledger;
  const rows = [...ledger.queues, { queue: 'total', role: '', ...ledger.total }].map((row) => {
    const { queue, role, planned, pending, open, settled, unresolved } = row;
    return [queue, role, planned, pending, open, settled, unresolved, percent(coverage(row))];
  });
  const titles = ['queue', 'role', 'planned', 'pending', 'open', 'settled', 'unresolved', 'settled %'];
  const kinds = `${attempts.first} first, ${attempts.replacement} replacements, ${attempts.regrade} regrades`;
  return [
    renderTable(titles, rows),
    labelled([
      ['attempts', `${kinds}; ${recovered(attempts)}`],
      ...carriedRows(ledger),
      ...sessionRows(ledger),
      ...(await adjudicationRows(ledger.adjudication)),
      ...(await noteRows(ledger)),
      ['outcomes', outcomes(ledger, blinding)],
    ]),
    await costText(ledger),
    labelled([
      ['ledger', `${head.size} entries, the last at ${head.time ?? 'no time'}`],
      ...ledger.restorations.map(({ incarnation, seq, time, known, lost, reason }): [string, string] => [
        'restored',
        `incarnation ${incarnation} from entry ${seq} at ${time}: an older copy was put back, ${lost} of ${known} entries are lost (${reason})`,
      ]),
      ['leaf', head.leaf ?? ''],
      ['root', head.root],
    ]),
  ];
}

const MAX_DETAIL = 300;

function clipped(text: string): string {
  return text.length <= MAX_DETAIL ? text : `${text.slice(0, MAX_DETAIL - 1)}…`;
}

function recovered({ recovered: all, abandoned }: LedgerStatus['attempts']): string {
  const gone = `${all - abandoned} recovered after their process was gone`;
  return abandoned === 0 ? gone : `${gone}, ${abandoned} given up by a second stop or a fault`;
}

function sessionRows({ sessions, deviations }: LedgerStatus): [string, string][] {
  const shown = sessions.slice(-5).map(({ session, started, seconds, pid, ended }, i): [string, string] => {
    const end = ended === null ? `no end recorded (process ${pid})` : ended;
    return [
      i === 0 ? 'sessions' : '',
      `${session.slice(0, 8)} from ${started}, ${seconds.toFixed(0)} s: ${end}`,
    ];
  });
  const earlier = sessions.length - shown.length;
  return [
    ...shown,
    ...(earlier > 0 ? [['', `and ${earlier} before`] as [string, string]] : []),
    ...deviations
      .slice(-5)
      .map(({ seq, reason, detail }, i): [string, string] => [
        i === 0 ? 'interrupted' : '',
        `by ${reason} (entry ${seq})${detail === null ? '' : `: ${clipped(detail)}`}`,
      ]),
  ];
}

async function noteRows({ noted }: LedgerStatus): Promise<[string, string][]> {
  const { visible } = await import('../core/visible.js');
  const shown = noted.slice(-5);
  return shown.map(({ seq, text, slots }, i): [string, string] => {
    const short = text.length > 50 ? `${text.slice(0, 50)}…` : text;
    return [i === 0 ? 'noted' : '', `${visible(short)} (entry ${seq}, ${slots.count} slots)`];
  });
}

async function costText({ costs }: LedgerStatus): Promise<string> {
  const { renderTable } = await import('../planning/table.js');
  const row = (name: string, effort: ShownEffort): (string | number)[] => [
    name,
    effort.stages ?? 'masked',
    effort.seconds.toFixed(1),
    effort.queue_seconds.toFixed(1),
    effort.generated_tokens ?? 'masked',
    effort.gradings ?? 'masked',
  ];
  const titles = ['cost of', 'stages', 'seconds', 'waiting s', 'tokens', 'gradings'];
  const table = renderTable(titles, [
    row('used', costs.used),
    row('failed', costs.failed),
    row('unused', costs.unused),
    row('still open', costs.open),
  ]);
  const { session_seconds, service_seconds, gpu_seconds } = costs;
  const hours = (gpu_seconds / 3600).toFixed(3);
  const note = costs.used.gradings === null ? `\n${MASKED}` : '';
  return `${table}${note}\nSessions worked ${session_seconds.toFixed(0)} s, services ${service_seconds.toFixed(0)} s; ${hours} GPU hours allocated.`;
}

const MASKED = 'Stages, tokens and gradings are masked until unblind: they tell outcomes.';

function outcomes({ unblinded }: LedgerStatus, blinding: 'masked' | 'none'): string {
  if (unblinded !== null)
    return `unblinded${unblinded.partial ? ' in part' : ''} at ${unblinded.time} (entry ${unblinded.seq})`;
  return blinding === 'none' ? 'not blinded by this protocol' : 'blinded until `boundbook unblind`';
}

function coverage({ planned, settled }: { readonly planned: number; readonly settled: number }): number {
  return planned === 0 ? 0 : settled / planned;
}

/** Rounded down: 100 % is said only of what is whole. */
function percent(share: number): string {
  return `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
}
