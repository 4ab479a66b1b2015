import { z } from 'zod';
import { attribution, digest, hex32, hex64 } from './forms.js';

const alias = z.string().regex(/^[0-9a-f]{16}$/);

/** P14: rounds of blind verdicts. */
export const ADJUDICATION_ENTRIES = [
  /** P14: verdicts are given under aliases from here on. */
  z.strictObject({
    type: z.literal('adjudication.opened'),
    round: hex32,
    commitment: digest.describe('to the secret from which aliases, order and duplicates follow'),
    items: z.int().min(1).describe('slots that wait for a verdict'),
    duplicates: z.int().min(0).describe('how many of them are put twice'),
    revises: z.boolean().describe('whether slots that an adjudicator judged before are among them'),
  }),
  z.strictObject({
    type: z.literal('verdict.committed'),
    round: hex32,
    alias,
    commitment: digest.describe('to verdict, reason and nonce'),
  }),
  /** No verdict is given any more: the secret shows whose the aliases are. */
  z.strictObject({
    type: z.literal('adjudication.revealed'),
    round: hex32,
    secret: hex64,
  }),
  z.strictObject({
    type: z.literal('verdict.opened'),
    round: hex32,
    alias,
    attempt: hex32,
    slot: hex32,
    copy: z.int().min(0).max(1).describe('1 for the duplicate of an item'),
    verdict: attribution,
    reason: z.string().min(1).max(4000),
    nonce: hex64,
  }),
  z.strictObject({
    type: z.literal('adjudication.closed'),
    round: hex32,
    verdicts: z.int().min(0).describe('verdicts that were opened'),
    pairs: z.int().min(0).describe('items of which both copies were judged'),
    agreeing: z.int().min(0).describe('pairs with the same verdict: the intra-rater figure'),
    abandoned: z
      .string()
      .min(1)
      .max(1000)
      .nullable()
      .describe('why commitments were never opened; null when all of them were'),
  }),
] as const;
