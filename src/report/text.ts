import { visible } from '../core/visible.js';
import type { Block, Column, TableBlock } from './document.js';

/** No line of a text report is wider. */
export const TEXT_WIDTH = 100;
const GAP = '  ';

/** Lays blocks out as plain text of at most {@link TEXT_WIDTH} columns; ends without a line break. */
export function renderText(blocks: readonly Block[]): string {
  return blocks.map(renderBlock).join('\n\n');
}

function renderBlock(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return renderHeading(block.level, shorten(visible(block.text), TEXT_WIDTH));
    case 'paragraph':
      return wrap(visible(block.text), TEXT_WIDTH).join('\n');
    case 'list':
      return block.items
        .flatMap((item) =>
          wrap(visible(item), TEXT_WIDTH - 2).map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`)),
        )
        .join('\n');
    case 'table':
      return renderTable(block);
    default:
      return block satisfies never;
  }
}

function renderHeading(level: number, text: string): string {
  const mark = { 1: '=', 2: '-', 3: '.' }[level];
  return mark === undefined ? text : `${text}\n${mark.repeat(displayWidth(text))}`;
}

function renderTable({ columns, rows }: TableBlock): string {
  const cells = [columns.map((column) => column.title), ...rows.map((row) => row.map(visible))];
  const widths = columnWidths(columns, cells);
  const rule = widths.map((width) => '-'.repeat(width)).join(GAP);
  const [head = '', ...body] = cells.map((row) =>
    columns
      .map((column, i) => pad(shorten(row[i] ?? '', widths[i] ?? 0), widths[i] ?? 0, column.align))
      .join(GAP)
      .trimEnd(),
  );
  return [head, rule, ...body].join('\n');
}

/** Natural widths; when they exceed the page, the widest columns of text give way. */
function columnWidths(columns: readonly Column[], cells: readonly (readonly string[])[]): readonly number[] {
  const widths = columns.map((_, i) => Math.max(...cells.map((row) => displayWidth(row[i] ?? ''))));
  const available = TEXT_WIDTH - GAP.length * (columns.length - 1);
  let excess = widths.reduce((total, width) => total + width, 0) - available;
  while (excess > 0) {
    const candidates = columns.map((column, i) => (column.align === 'left' ? (widths[i] ?? 0) : 0));
    const widest = Math.max(...candidates);
    if (widest <= 4) break;
    widths[candidates.indexOf(widest)] = widest - 1;
    excess--;
  }
  return widths;
}

function pad(text: string, width: number, align: 'left' | 'right'): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return align === 'left' ? text + space : space + text;
}

/** Cuts a text that is too wide and says so. */
function shorten(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let cut = '';
  for (const character of text) {
    if (displayWidth(cut + character) > width - 1) break;
    cut += character;
  }
  return `${cut}…`;
}

/** Breaks a text between words, and words that are wider than a line. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((word) => chunks(word, width))) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (displayWidth(longer) <= width) line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}

function chunks(word: string, width: number): readonly string[] {
  const parts: string[] = [];
  let part = '';
  for (const character of word) {
    if (displayWidth(part + character) > width) {
      parts.push(part);
      part = '';
    }
    part += character;
  }
  return [...parts, part];
}

/** Columns that a terminal takes: none for combining marks, two for wide scripts and symbols. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (/\p{M}/u.test(character)) continue;
    width += isWide(character.codePointAt(0) ?? 0) ? 2 : 1;
  }
  return width;
}

function isWide(point: number): boolean {
  return (
    (point >= 0x1100 && point <= 0x115f) ||
    (point >= 0x2e80 && point <= 0xa4cf) ||
    (point >= 0xac00 && point <= 0xd7a3) ||
    (point >= 0xf900 && point <= 0xfaff) ||
    (point >= 0xfe30 && point <= 0xfe6f) ||
    (point >= 0xff00 && point <= 0xff60) ||
    (point >= 0xffe0 && point <= 0xffe6) ||
    (point >= 0x1f000 && point <= 0x1faff) ||
    (point >= 0x20000 && point <= 0x3fffd)
  );
}
