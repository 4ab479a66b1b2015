import { canonicalText } from '../core/canonical-json.js';
import { layout } from './layout.js';
import { renderMarkdown } from './markdown.js';
import { renderText } from './text.js';
import type { Report } from './value.js';

export const FORMATS = ['text', 'markdown', 'json'] as const;
export type Format = (typeof FORMATS)[number];

/**
 * A report in one of its forms, without a final line break. JSON is the canonical form of the value, which is what a
 * digest of a report is taken of; the others are for people.
 */
export function renderReport(report: Report, format: Format): string {
  switch (format) {
    case 'text':
      return renderText(layout(report));
    case 'markdown':
      return renderMarkdown(layout(report));
    case 'json':
      return canonicalText(report);
    default:
      return format satisfies never;
  }
}
