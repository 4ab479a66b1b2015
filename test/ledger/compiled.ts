import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '../..');

/** The sources as JavaScript, for tests that need further processes. `remove` takes the folder away again. */
export function compiledSources(): { readonly folder: string; readonly remove: () => void } {
  // Below node_modules, so that imports of packages resolve; of its own, so that no stale build is tested.
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'boundbook-'));
  // Other users read it as well, in tests about rights.
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const compilerOptions = {
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2023,
    verbatimModuleSyntax: true,
  };
  for (const name of readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const { outputText } = ts.transpileModule(readFileSync(join(ROOT, 'src', name), 'utf8'), {
      compilerOptions,
    });
    const target = join(folder, name.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, outputText);
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
