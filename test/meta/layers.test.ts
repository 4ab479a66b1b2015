import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const SRC = join(dirname(fileURLToPath(import.meta.url)), '../../src');

/** DESIGN §4, from the top down. Folders on one floor do not import each other. */
const FLOORS: readonly (readonly string[])[] = [
  ['cli', 'index'],
  ['commands'],
  ['audit'],
  ['runner', 'adjudication', 'regrading', 'report'],
  ['ledger', 'gate'],
  ['manifest', 'planning'],
  ['slots', 'attempts', 'analysis', 'grading', 'chat-template'],
  ['protocol', 'signing'],
  ['core'],
];

/** Folders that take values and return values, and what of Node they may not touch. */
const PURE = ['attempts', 'analysis', 'grading', 'slots'];
const PURE_FILES = [
  'ledger/merkle.ts',
  'ledger/fold.ts',
  'ledger/openings.ts',
  'ledger/plan-book.ts',
  'ledger/attempt-book.ts',
  'ledger/service-entries.ts',
];
const IO = new Set([
  'fs',
  'fs/promises',
  'net',
  'http',
  'http2',
  'https',
  'tls',
  'dgram',
  'dns',
  'dns/promises',
  'child_process',
  'worker_threads',
  'cluster',
  'readline',
  'readline/promises',
  'os',
  'process',
  'repl',
  'timers',
  'timers/promises',
  'better-sqlite3',
  'undici',
]);

interface Import {
  readonly from: string;
  readonly specifier: string;
  /** Path of the imported file below src/, or null for packages and built-in modules. */
  readonly to: string | null;
}

function sourceFiles(): string[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && statSync(join(SRC, name)).isFile())
    .map((name) => name.split(sep).join('/'))
    .sort();
}

/** All module names in a file: static and dynamic imports, re-exports, `import()` types; types count too. */
function importsOf(file: string): Import[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
  const specifiers: string[] = [];
  const visit = (node: ts.Node): void => {
    const name = moduleName(node);
    if (name !== undefined)
      specifiers.push(ts.isStringLiteralLike(name) ? name.text : `computed: ${name.getText()}`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return specifiers.map((specifier) => ({ from: file, specifier, to: resolve(file, specifier) }));
}

function moduleName(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? node.argument.literal : node.argument;
  if (ts.isExternalModuleReference(node)) return node.expression;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    return node.arguments[0];
  return undefined;
}

function resolve(file: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts');
}

/** `ledger/store.ts` lies in `ledger`, `cli.ts` in `cli`. */
function folderOf(file: string): string {
  const slash = file.indexOf('/');
  return slash === -1 ? file.replace(/\.ts$/, '') : file.slice(0, slash);
}

function floorOf(folder: string): number {
  return FLOORS.findIndex((floor) => floor.includes(folder));
}

function bare(specifier: string): string {
  return specifier.replace(/^node:/, '');
}

const FILES = sourceFiles();
const IMPORTS = FILES.flatMap(importsOf);
const INNER = IMPORTS.filter((one): one is Import & { to: string } => one.to !== null);

describe('the floors of DESIGN §4', () => {
  test('every folder has a floor', () => {
    expect(FILES.map(folderOf).filter((folder) => floorOf(folder) === -1)).toEqual([]);
  });

  test('every relative import names a file below src/, and none is computed', () => {
    expect(INNER.filter(({ to }) => !FILES.includes(to))).toEqual([]);
    expect(IMPORTS.filter(({ specifier }) => specifier.startsWith('computed'))).toEqual([]);
  });

  test('a folder imports only from floors below its own, and never a neighbour', () => {
    const wrong = INNER.filter(({ from, to }) => {
      const [here, there] = [folderOf(from), folderOf(to)];
      return here !== there && floorOf(there) <= floorOf(here);
    });
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
  });

  test('core imports no other folder', () => {
    expect(INNER.filter(({ from, to }) => folderOf(from) === 'core' && folderOf(to) !== 'core')).toEqual([]);
  });

  test('there are no import circles', () => {
    expect(circles()).toEqual([]);
  });
});

/** Each circle once, as a path of files. */
function circles(): string[] {
  const edges = new Map(
    FILES.map((file) => [file, INNER.filter(({ from }) => from === file).map(({ to }) => to)]),
  );
  const found = new Set<string>();
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at !== -1) {
      found.add([...path.slice(at), file].join(' → '));
      return;
    }
    if (done.has(file)) return;
    for (const next of edges.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of FILES) visit(file, []);
  return [...found];
}

describe('pure folders', () => {
  test.each([...PURE, ...PURE_FILES])('%s does no I/O', (place) => {
    const touched = IMPORTS.filter(
      ({ from, specifier }) => (from === place || folderOf(from) === place) && IO.has(bare(specifier)),
    );
    expect(touched.map(({ from, specifier }) => `${from} → ${specifier}`)).toEqual([]);
  });

  test.each(['attempts', 'analysis'])('%s reads no clock, no environment and no random source', (folder) => {
    const wrong = FILES.filter((file) => folderOf(file) === folder).filter((file) =>
      /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bprocess\.|\bperformance\.|\bfetch\(/.test(
        withoutComments(readFileSync(join(SRC, file), 'utf8')),
      ),
    );
    expect(wrong).toEqual([]);
  });
});

describe('how modules are written', () => {
  test('built-in modules are named with node:', () => {
    expect(IMPORTS.filter(({ specifier }) => isBuiltin(specifier) && !specifier.startsWith('node:'))).toEqual(
      [],
    );
  });

  test('a command imports only types at its top, so that --help stays fast', () => {
    const wrong = FILES.filter(definesCommand).flatMap((file) => {
      const source = ts.createSourceFile(
        file,
        readFileSync(join(SRC, file), 'utf8'),
        ts.ScriptTarget.ES2023,
        true,
      );
      return source.statements
        .filter((statement) => ts.isImportDeclaration(statement))
        .filter((statement) => statement.importClause?.isTypeOnly !== true)
        .map((statement) => `${file}: ${statement.getText()}`);
    });
    expect(wrong).toEqual([]);
  });

  test('the test reads what is there', () => {
    expect(FILES).toContain('attempts/machine.ts');
    expect(INNER).toContainEqual(
      expect.objectContaining({ from: 'attempts/slot-state.ts', to: 'core/canonical-json.ts' }),
    );
    expect(relative(SRC, join(SRC, 'core'))).toBe('core');
  });
});

function definesCommand(file: string): boolean {
  return (
    folderOf(file) === 'commands' && /^export const command\b/m.test(readFileSync(join(SRC, file), 'utf8'))
  );
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}
