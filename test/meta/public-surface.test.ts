import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';

const HERE = dirname(fileURLToPath(import.meta.url));
const INDEX = join(HERE, '../../src/index.ts');
const LIST = join(HERE, 'public-surface.txt');

/** Names that `src/index.ts` exports; each must be re-exported by name. */
function exportedNames(): string[] {
  const source = ts.createSourceFile('index.ts', readFileSync(INDEX, 'utf8'), ts.ScriptTarget.ES2023, true);
  return source.statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement)) return [`not a re-export: ${statement.getText().slice(0, 60)}`];
    const clause = statement.exportClause;
    if (clause === undefined || !ts.isNamedExports(clause)) return [`not named: ${statement.getText()}`];
    return clause.elements.map(({ name, isTypeOnly }) =>
      isTypeOnly || statement.isTypeOnly ? `type ${name.text}` : name.text,
    );
  });
}

test('the library exports what public-surface.txt lists, and nothing else', () => {
  expect(existsSync(INDEX)).toBe(true);
  const listed = readFileSync(LIST, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(exportedNames().sort()).toEqual(listed.sort());
});
