import type { BoundbookError, Fault } from '../core/errors.js';
import { visible } from '../core/visible.js';

const MAX_FAULTS = 50;

/**
 * What a person reads on stderr: code, message, each fault with its place, the hint. Never a stack trace. Message and
 * place are one line each, whatever a name in them holds; a hint may quote lines.
 */
export function renderError(error: BoundbookError): string {
  const lines = [`boundbook: ${visible(error.message)} [${error.code}]`];
  for (const fault of error.faults.slice(0, MAX_FAULTS)) lines.push(...renderFault(fault));
  if (error.faults.length > MAX_FAULTS) lines.push(`  … and ${error.faults.length - MAX_FAULTS} more`);
  if (error.hint !== undefined) lines.push(`hint: ${printable(error.hint)}`);
  return lines.join('\n');
}

function renderFault(fault: Fault): string[] {
  const { line, column = 1, where } = fault;
  const isPlaced = line === undefined || where.endsWith(`:${line}`) || where.endsWith(`:${line}:${column}`);
  const place = isPlaced ? where : `${line}:${column} ${where}`;
  const lines = [`  ${visible(place)}: ${visible(fault.message)}`];
  if (fault.hint !== undefined) lines.push(`      hint: ${visible(fault.hint)}`);
  return lines;
}

/** Text that came from outside must not steer the terminal. */
export function printable(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, '\ufffd');
}
