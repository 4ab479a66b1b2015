import Table from 'cli-table3';

export const WIDTH = 100;

/**
 * A plain table of at most 100 columns. Numbers stand to the right. Texts that do not fit are cut with an ellipsis; the
 * JSON form of a command holds them whole.
 */
export function renderTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const widths = columnWidths(head, rows);
  const table = new Table({
    head: [...head],
    chars: PLAIN,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
    colAligns: head.map((_, i) => (rows.every((row) => typeof row[i] === 'number') ? 'right' : 'left')),
    colWidths: widths.map((width) => width + 2),
  });
  table.push(...rows.map((row) => row.map((cell) => display(cell))));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Whole numbers with separators, so that a plan's size can be read at a glance. */
export function display(cell: string | number): string {
  if (typeof cell === 'string') return cell;
  return String(cell).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** Each column as wide as its widest cell; the widest columns give way until all fit. */
function columnWidths(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): readonly number[] {
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.slice(0, 2000).map((row) => display(row[i] ?? '').length)),
  );
  const room = WIDTH - 2 * widths.length;
  let excess = widths.reduce((sum, width) => sum + width, 0) - room;
  while (excess > 0) {
    const widest = widths.indexOf(Math.max(...widths));
    const width = widths[widest] ?? 0;
    if (width <= 6) break;
    widths[widest] = width - 1;
    excess--;
  }
  return widths;
}

const PLAIN = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '',
};
