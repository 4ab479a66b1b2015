import { z } from 'zod';
import { basis, digest, hex32, slotKey, unresolvedReason } from './forms.js';

/** The state of a ledger after its first `size` entries. */
const ledgerState = z.strictObject({
  size: z.int().min(1),
  root: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe('root of the tree over those entries'),
});

/** What a ledger belongs to, and what it takes over from the ledger of the superseded plan. */
export const OPENING_ENTRIES = [
  /** First entry of every ledger: what it belongs to. */
  z.strictObject({
    type: z.literal('ledger.opened'),
    ledger: hex32.describe('random name of this ledger'),
    incarnation: z.int().min(1).describe('1; one more each time an older copy was put back, see `restored`'),
    manifest: digest,
    manifest_object: digest.describe('the manifest file, kept as an object'),
    plan: z.strictObject({ count: z.int(), digest }),
    task_objects: z
      .record(z.string(), digest)
      .describe('binding name of each task file and its bytes as an object'),
    carries: ledgerState
      .extend({
        manifest: digest,
        ledger: hex32,
        again: z
          .int()
          .min(0)
          .describe(
            'slots that were closed there and are planned here under other conditions: they are executed again',
          ),
        dropped: z.int().min(0).describe('slots that were closed there and are not planned here'),
      })
      .nullable()
      .describe('the ledger of the superseded plan whose closed slots are carried over'),
    restored: z
      .strictObject({
        size: z.int().min(1),
        root: ledgerState.shape.root.nullable(),
        leaf: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .nullable()
          .describe('of the last entry; a head beside the folder knows it in place of the root'),
        note: z.string().max(16_384).nullable(),
        reason: z.string().min(1).max(4000),
      })
      .nullable()
      .describe(
        'the last state known outside, when an older copy was put back: what it had and this copy lacks is lost',
      ),
    tool: z.strictObject({ name: z.literal('boundbook'), version: z.string() }),
  }),
  /** Closed in the ledger that `ledger.opened` carries; never executed again here. */
  z.strictObject({
    type: z.literal('slot.carried'),
    slot: hex32,
    key: slotKey,
    closed_by: z
      .int()
      .min(0)
      .describe('position of the settlement, or of the last entry that left it unresolved'),
    attempts: z.int().min(1).describe('attempts that were started there'),
    outcome: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('settled'), value: z.number(), basis }),
      z.strictObject({ kind: z.literal('unresolved'), reason: unresolvedReason }),
    ]),
  }),
] as const;
