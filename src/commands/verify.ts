import type { StoredManifest } from '../manifest/workspace.js';
import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'verify',
  args: '[manifest]',
  summary: 'hash everything that a manifest binds on this host and list what differs; execute nothing',
  options: [],
  examples: ['boundbook verify', 'boundbook verify obme-final', 'boundbook verify 3f5a90c1b2d4 --json'],
  interruptible: true,
  next: 'boundbook run, when everything is as bound.',
  run: async ([selector], _options, { root, signal, progress }) => {
    const { inspectHost } = await import('../gate/inspect.js');
    const { gateError, mismatchJson } = await import('../gate/refusal.js');
    const { byteText, hashProgress, labelled } = await import('./manifest-output.js');
    const { printable } = await import('./render-error.js');
    const stored = await load(root, selector);
    const inspection = await inspectHost(stored.manifest, {
      root,
      signal,
      onProgress: hashProgress(progress),
    });
    const { files, bytes, mismatches } = inspection;
    const manifest = `manifests/${stored.file}`;
    const json = {
      manifest,
      digest: stored.digest,
      verified: mismatches.length === 0,
      files,
      bytes,
      mismatches: mismatches.map(mismatchJson),
    };
    if (mismatches.length > 0) {
      const error = gateError(manifest, mismatches);
      const text = [
        `boundbook: ${error.message} [${error.code}]`,
        ...mismatches.map((mismatch) => printable(mismatchText(mismatch))),
        labelled([
          ['checked', `${files} files, ${byteText(bytes)}`],
          ['digest', stored.digest],
          ['hint', error.hint ?? ''],
        ]),
      ].join('\n');
      const { code, message, hint = null } = error;
      return { text, json: { ...json, error: { code, message, hint, exit: 3 } }, exitCode: 3 };
    }
    const text = labelled([
      ['verified', manifest],
      ['digest', stored.digest],
      ['checked', `${files} files, ${byteText(bytes)}, all as bound`],
      ['next', `boundbook run ${stored.file}`],
    ]);
    return { text, json };
  },
};

/** An edited manifest is one more thing that is not as it was bound (law 1). */
async function load(root: string, selector: string | undefined): Promise<StoredManifest> {
  const { BoundbookError } = await import('../core/errors.js');
  const { alteredManifestError } = await import('../gate/refusal.js');
  const { loadManifest } = await import('../manifest/select.js');
  try {
    return await loadManifest(root, selector);
  } catch (error) {
    const refused = error instanceof BoundbookError && isAltered(error.code);
    throw refused ? alteredManifestError(error) : error;
  }
}

function isAltered(code: string): boolean {
  return code === 'MANIFEST_ALTERED' || code === 'FILE_EMPTY';
}

function mismatchText(mismatch: {
  readonly binding: string;
  readonly path: string;
  readonly expected: string | null;
  readonly actual: string | null;
  readonly reason: string;
}): string {
  const { binding, path, expected, actual, reason } = mismatch;
  const lines = [`  ${path === '' ? binding : `${binding}  ${path}`}`, `      ${reason}`];
  if (expected !== null || actual !== null) {
    lines.push(`      expected ${expected ?? 'nothing'}`, `      found    ${actual ?? 'nothing'}`);
  }
  return lines.join('\n');
}
