import type { CommandDefinition } from './command.js';

export const command: CommandDefinition = {
  name: 'sign',
  args: '<file...>',
  summary: 'sign manifests and JSON reports, so that others can hold you to them',
  options: [
    {
      flags: '--key <file>',
      description: 'your private key, outside the workspace (default: the file that BOUNDBOOK_KEY names)',
    },
  ],
  examples: [
    'boundbook sign obme-final --key ~/.config/boundbook/keys/planner.key',
    'boundbook sign manifests/obme-final.r1.3f5a90c1d2e3.json report.json --key ~/.config/boundbook/keys/planner.key',
  ],
  next: 'boundbook timestamp proves since when the file exists; publish your public key (vkey) elsewhere.',
  run: async (files, options, { root }) => {
    const { formatEnvelope } = await import('../signing/dsse.js');
    const { formatVerifierKey, keyIdText } = await import('../signing/keys.js');
    const { signStatement } = await import('../signing/statement.js');
    const { ATTESTATION_FOLDER, storeAttestation } = await import('../manifest/attestations.js');
    const { statementAbout } = await import('../report/attestable.js');
    const { readNamedFile } = await import('./attested-file.js');
    const { labelled } = await import('./manifest-output.js');
    const { usageError } = await import('./options.js');
    const { ledgerKeyOption } = await import('./signing-key.js');
    const key = await ledgerKeyOption(options.key, root);
    if (key === null) {
      throw usageError('a signature needs a key', 'Give --key FILE, or make one with `boundbook keygen`.');
    }
    // All are read before the first is written.
    const statements = [];
    for (const file of files) {
      const { shown, attestable } = await readNamedFile(root, file);
      statements.push({ shown, digest: attestable.digest, statement: statementAbout(attestable) });
    }
    const signed = [];
    for (const { shown, digest, statement } of statements) {
      const bytes = formatEnvelope(signStatement(statement, [key]));
      const { file, existed } = await storeAttestation(root, keyIdText(key.verifier.id), 'envelope', bytes);
      const envelope = `${ATTESTATION_FOLDER}/${file}`;
      signed.push({ file: shown, digest, predicate_type: statement.predicateType, envelope, existed });
    }
    const vkey = formatVerifierKey(key.verifier);
    const rows = signed.flatMap(({ file, digest, envelope, existed }): [string, string][] => [
      ['signed', file],
      ['digest', digest],
      ['envelope', existed ? `${envelope} (was there before)` : envelope],
    ]);
    return { text: labelled([...rows, ['by', vkey]]), json: { signed, by: vkey } };
  },
};
