import { z } from 'zod';
import { commandRunner } from './command-runner.js';
import { harborRunner } from './harbor-runner.js';
import { openaiRunner } from './openai-runner.js';

export const runner = z.discriminatedUnion('adapter', [openaiRunner, commandRunner, harborRunner]);

export type Runner = z.infer<typeof runner>;
