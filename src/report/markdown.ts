import { visible } from '../core/visible.js';
import type { Block, TableBlock } from './document.js';

/** Lays blocks out as GitHub-flavoured Markdown; ends without a line break. */
export function renderMarkdown(blocks: readonly Block[]): string {
  return blocks.map(renderBlock).join('\n\n');
}

function renderBlock(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `${'#'.repeat(block.level)} ${escapeInline(block.text)}`;
    case 'paragraph':
      return escapeStart(escapeInline(block.text));
    case 'list':
      return block.items.map((item) => `- ${escapeStart(escapeInline(item))}`).join('\n');
    case 'table':
      return renderTable(block);
    default:
      return block satisfies never;
  }
}

function renderTable({ columns, rows }: TableBlock): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escapeInline).join(' | ')} |`;
  return [
    line(columns.map((column) => column.title)),
    `| ${columns.map((column) => (column.align === 'right' ? '---:' : ':---')).join(' | ')} |`,
    ...rows.map(line),
  ].join('\n');
}

/**
 * Takes the meaning from everything that Markdown or HTML would read into a text: emphasis, code, links, table
 * borders, tags, entities, formulas, and addresses that GitHub would turn into links.
 */
export function escapeInline(text: string): string {
  return visible(text)
    .trim()
    .replace(/[\\`*_[\]|~$]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/:\/\//g, ':\\/\\/')
    .replace(/\bwww\./gi, (match) => `${match.slice(0, 3)}\\.`);
}

/** A line must not begin a heading, a list or a rule. */
function escapeStart(text: string): string {
  return text.replace(/^[#+=-]/, '\\$&').replace(/^(\d+)([.)])/, '$1\\$2');
}
