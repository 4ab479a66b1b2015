/** A report laid out, before it is text or Markdown. All strings are plain and may be hostile; renderers escape. */
export type Block =
  | { readonly kind: 'heading'; readonly level: 1 | 2 | 3 | 4; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | TableBlock;

export interface TableBlock {
  readonly kind: 'table';
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
}

export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
}

export function heading(level: 1 | 2 | 3 | 4, text: string): Block {
  return { kind: 'heading', level, text };
}

export function paragraph(text: string): Block {
  return { kind: 'paragraph', text };
}

/** Nothing at all for an empty list. */
export function list(items: readonly string[]): readonly Block[] {
  return items.length === 0 ? [] : [{ kind: 'list', items }];
}

/** Columns are titles; a title that begins with `>` is aligned to the right. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): readonly Block[] {
  if (rows.length === 0) return [];
  const columns = titles.map(
    (title): Column =>
      title.startsWith('>') ? { title: title.slice(1), align: 'right' } : { title, align: 'left' },
  );
  return [{ kind: 'table', columns, rows }];
}
