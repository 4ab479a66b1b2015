import type { Digest } from '../core/digest.js';
import { pointerOf } from '../protocol/json-pointer.js';
import type { Entry } from './entries/entry.js';

/** What an object is to the entry that names it. */
export type ObjectRole =
  | 'manifest'
  | 'task_file'
  | 'service'
  | 'request'
  | 'answer'
  | 'timestamp'
  | 'account'
  | 'grader';

/** An object that an entry names. */
export interface Mention {
  readonly digest: Digest;
  readonly role: ObjectRole;
  /** JSON pointer into the entry. */
  readonly pointer: string;
}

/**
 * The objects that an entry names, in the order of its canonical bytes: keys ascending. Digests of other things (a plan,
 * a successor, expected and actual bindings) name no object; those of a carried slot lie in the ledger it comes from.
 */
export function mentionsOf(entry: Entry): readonly Mention[] {
  switch (entry.type) {
    case 'ledger.opened':
      return [
        { digest: entry.manifest_object, role: 'manifest', pointer: '/manifest_object' },
        ...members(entry.task_objects, 'task_objects', 'task_file'),
      ];
    case 'service.started':
    case 'service.attached':
      return entry.effective === null
        ? []
        : [{ digest: entry.effective, role: 'service', pointer: '/effective' }];
    case 'service.described':
      return [{ digest: entry.effective, role: 'service', pointer: '/effective' }];
    case 'canary.recorded':
      return [{ digest: entry.answers, role: 'service', pointer: '/answers' }];
    case 'attempt.started': {
      const mentions: Mention[] = [];
      if (entry.candidate !== null)
        mentions.push({ digest: entry.candidate, role: 'answer', pointer: '/candidate' });
      if (entry.request !== null)
        mentions.push({ digest: entry.request, role: 'request', pointer: '/request' });
      return mentions;
    }
    case 'stage.finished': {
      const mentions = members(entry.objects, 'objects', 'answer');
      const { result } = entry;
      if (result.kind === 'failure') return mentions;
      mentions.push({ digest: result.candidate, role: 'answer', pointer: '/result/candidate' });
      if (result.kind === 'report')
        mentions.push({ digest: result.report, role: 'answer', pointer: '/result/report' });
      return mentions;
    }
    case 'slot.settled':
      return entry.basis.kind === 'report'
        ? [{ digest: entry.basis.report, role: 'answer', pointer: '/basis/report' }]
        : [];
    case 'regrading.opened': {
      const { schema } = entry.command ?? {};
      return [
        ...(schema === undefined
          ? []
          : [{ digest: schema, role: 'grader', pointer: '/command/schema' } as const]),
        { digest: entry.grader, role: 'grader', pointer: '/grader' },
      ];
    }
    case 'regrading.recorded': {
      const mentions: Mention[] = [
        { digest: entry.before.report, role: 'answer', pointer: '/before/report' },
        { digest: entry.candidate, role: 'answer', pointer: '/candidate' },
      ];
      if (entry.result.kind === 'graded')
        mentions.push({ digest: entry.result.report, role: 'answer', pointer: '/result/report' });
      return [...mentions, ...members(entry.stage?.objects ?? {}, 'stage/objects', 'answer')];
    }
    case 'recheck.started':
      return [{ digest: entry.request, role: 'request', pointer: '/request' }];
    case 'recheck.finished': {
      const mentions = members(entry.objects, 'objects', 'answer');
      if (entry.result.kind === 'failure') return mentions;
      const { candidate, report } = entry.result;
      mentions.push({ digest: candidate, role: 'answer', pointer: '/result/candidate' });
      mentions.push({ digest: report, role: 'answer', pointer: '/result/report' });
      return mentions;
    }
    case 'account.recorded':
      return [{ digest: entry.object, role: 'account', pointer: '/object' }];
    case 'checkpoint':
      return entry.timestamps.map((digest, i) => ({
        digest,
        role: 'timestamp',
        pointer: `/timestamps/${i}`,
      }));
    default:
      return [];
  }
}

function members(record: Readonly<Record<string, Digest>>, member: string, role: ObjectRole): Mention[] {
  const names = Object.keys(record);
  if (names.length > 1) names.sort();
  return names.flatMap((name) => {
    const digest = record[name];
    return digest === undefined ? [] : [{ digest, role, pointer: pointerOf([...member.split('/'), name]) }];
  });
}
