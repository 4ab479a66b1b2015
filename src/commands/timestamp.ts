import type { Digest } from '../core/digest.js';
import type { QueryFile } from '../manifest/attestations.js';
import type { NamedFile } from './attested-file.js';
import type { CommandDefinition, CommandResult } from './command.js';

export const command: CommandDefinition = {
  name: 'timestamp',
  args: '[file]',
  summary: 'have an authority state since when a manifest, report or checkpoint note exists (RFC 3161)',
  options: [
    { flags: '--tsa <url>', description: 'ask this authority over http or https' },
    { flags: '--query-out <file>', description: 'only write the query, for a machine without network' },
    { flags: '--response <file>', description: 'take the answer to such a query back' },
  ],
  examples: [
    'boundbook timestamp --tsa https://tsa.example/tsr',
    'boundbook timestamp report.json --tsa https://tsa.example/tsr',
    'boundbook timestamp obme-final --query-out plan.tsq',
    'boundbook timestamp obme-final --response plan.tsr',
  ],
  next: 'boundbook run names the token in its ledger; boundbook audit --tsa-ca PEM verifies it.',
  run: async ([selector], options, { root }) => {
    const { BoundbookError } = await import('../core/errors.js');
    const { readNamedFile } = await import('./attested-file.js');
    const { textOption } = await import('./options.js');
    const tsa = textOption(options.tsa, '--tsa');
    const queryOut = textOption(options.queryOut, '--query-out');
    const response = textOption(options.response, '--response');
    if ([tsa, queryOut, response].filter((one) => one !== undefined).length !== 1) {
      throw new BoundbookError('USAGE', 'one of --tsa, --query-out and --response is needed', {
        hint: 'With network: --tsa URL. Without: --query-out FILE here, send it, then --response FILE.',
      });
    }
    const named = await readNamedFile(root, selector);
    if (tsa !== undefined) return ask(root, named, tsa);
    return queryOut === undefined ? take(root, named, response ?? '') : writeQuery(root, named, queryOut);
  },
};

async function ask(root: string, named: NamedFile, url: string): Promise<CommandResult> {
  const { timestampQuery } = await import('../signing/timestamp.js');
  const { askAuthority } = await import('../signing/timestamp-client.js');
  const { assertAnswers, readTimestampRequest } = await import('../signing/timestamp-request.js');
  const { readTimestamp } = await import('../signing/timestamp-token.js');
  const { queryLabel, storeAttestation } = await import('../manifest/attestations.js');
  const query = await timestampQuery(named.attestable.digest);
  const response = await askAuthority(url, query);
  assertAnswers(readTimestamp(response).info, readTimestampRequest(query));
  await storeAttestation(root, queryLabel(query), 'query', query);
  return storeToken(root, named, queryLabel(query), response);
}

async function writeQuery(root: string, named: NamedFile, out: string): Promise<CommandResult> {
  const { resolve } = await import('node:path');
  const { BoundbookError } = await import('../core/errors.js');
  const { createFileDurable, exists } = await import('../core/files.js');
  const { ATTESTATION_FOLDER, queryLabel, storeAttestation } = await import('../manifest/attestations.js');
  const { timestampQuery } = await import('../signing/timestamp.js');
  const { labelled } = await import('./manifest-output.js');
  const path = resolve(root, out);
  if (await exists(path)) {
    throw new BoundbookError('FILE_EXISTS', `${out} exists already`, { hint: 'Choose another name.' });
  }
  const query = await timestampQuery(named.attestable.digest);
  const { file } = await storeAttestation(root, queryLabel(query), 'query', query);
  await createFileDurable(path, query);
  const { digest } = named.attestable;
  const kept = `${ATTESTATION_FOLDER}/${file}`;
  const send = `curl -H 'Content-Type: application/timestamp-query' --data-binary @${out} URL -o ANSWER`;
  const rows: [string, string][] = [
    ['query', out],
    ['for', named.shown],
    ['digest', digest],
    ['kept', kept],
  ];
  return {
    text: `${labelled(rows)}\nSend it to an authority, for example: ${send}\nNext: boundbook timestamp ${named.shown} --response ANSWER`,
    json: { file: named.shown, digest, query: out, kept },
  };
}

async function take(root: string, named: NamedFile, path: string): Promise<CommandResult> {
  const { resolve } = await import('node:path');
  const { readFileBounded } = await import('../core/files.js');
  const { attestationLimit, loadAttestations, queryLabel } = await import('../manifest/attestations.js');
  const { readTimestamp } = await import('../signing/timestamp-token.js');
  const response = await readFileBounded(resolve(root, path), { maxBytes: attestationLimit('response') });
  const { info } = readTimestamp(response);
  const { digest } = named.attestable;
  const { all } = await loadAttestations(root);
  const queries = all.filter((one): one is QueryFile => one.kind === 'query' && one.subject === digest);
  const query = queries.find(({ request }) => request.nonce !== null && request.nonce === info.nonce);
  if (query === undefined) return refuseAnswer(info, queries, digest);
  return storeToken(root, named, queryLabel(query.bytes), response);
}

/** Says why no query of this workspace was answered. */
async function refuseAnswer(
  info: Parameters<typeof import('../signing/timestamp-request.js').assertAnswers>[0],
  queries: readonly QueryFile[],
  digest: Digest,
): Promise<never> {
  const { BoundbookError } = await import('../core/errors.js');
  const { assertAnswers } = await import('../signing/timestamp-request.js');
  for (const { request } of queries) assertAnswers(info, request);
  throw new BoundbookError(
    'TIMESTAMP_INVALID',
    'no query was written for this file, so that nothing can be answered',
    {
      hint: 'Write one with --query-out FILE in this workspace, and have that one answered.',
      evidence: { file: digest },
    },
  );
}

async function storeToken(
  root: string,
  named: NamedFile,
  label: string,
  response: Buffer,
): Promise<CommandResult> {
  const { ATTESTATION_FOLDER, storeAttestation } = await import('../manifest/attestations.js');
  const { readTimestamp } = await import('../signing/timestamp-token.js');
  const { labelled } = await import('./manifest-output.js');
  const { info } = readTimestamp(response);
  const { file, existed } = await storeAttestation(root, label, 'response', response);
  const token = `${ATTESTATION_FOLDER}/${file}`;
  const rows: [string, string][] = [
    ['stamped', named.shown],
    ['digest', named.attestable.digest],
    ['time', `${info.time}, as the authority says; not verified yet`],
    ['policy', info.policy],
    ['token', existed ? `${token} (was there before)` : token],
  ];
  const { shown: of, attestable } = named;
  const json = { file: of, digest: attestable.digest, time: info.time, policy: info.policy, token, existed };
  return {
    text: `${labelled(rows)}\nNext: boundbook audit --tsa-ca PEM, with the authority’s root certificate`,
    json,
  };
}
