import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A private time-stamping authority: root, intermediate and signer, made with openssl in a temporary folder. */
export interface Authority {
  /** Certificates as PEM. */
  readonly root: Buffer;
  readonly intermediate: Buffer;
  readonly signer: Buffer;
  /** Answers a query; the section says with which digest and accuracy. */
  readonly answer: (query: Uint8Array, section?: string) => Buffer;
  /** When the signer's certificate ends, as openssl says it. */
  readonly ends: () => string;
  /** The bare token of an answer. */
  readonly token: (response: Uint8Array) => Buffer;
  readonly remove: () => void;
}

const CONFIG = `
[req]
distinguished_name = none
[none]
[ca]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
[signer]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[wrong_use]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,codeSigning
`;

const CA = `
[ca]
default_ca = short
[short]
database = FOLDER/index
serial = FOLDER/ca-serial
new_certs_dir = FOLDER
default_md = sha256
default_days = 1
policy = any
[any]
commonName = supplied
`;

function section(name: string, lines: string): string {
  const common = 'serial = SERIAL\ndefault_policy = 1.2.3.4.1\ness_cert_id_alg = sha256\n';
  return `[${name}]\n${common}${lines}\n`;
}

const SECTIONS =
  section('plain', 'signer_digest = sha256\ndigests = sha256,sha512') +
  section(
    'accurate',
    'signer_digest = sha512\ndigests = sha256\naccuracy = secs:2,millisecs:500,microsecs:100\nordering = yes\ntsa_name = yes\nclock_precision_digits = 3',
  ) +
  section('refusing', 'signer_digest = sha256\ndigests = sha512');

/**
 * @param newKey arguments of `openssl req -newkey`, e.g. `['rsa:2048']`.
 * @param seconds how long the signer's certificate is valid; 30 days when left out.
 */
export function makeAuthority(
  newKey: readonly string[],
  use: 'signer' | 'wrong_use' = 'signer',
  seconds?: number,
): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-tsa-'));
  const at = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): Buffer =>
    execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const config = CONFIG + SECTIONS.replaceAll('SERIAL', at('serial'));
  writeFileSync(at('openssl.cnf'), config);
  writeFileSync(at('serial'), '1F');
  const request = (name: string): string[] => [
    ...['req', '-newkey', ...newKey, '-nodes', '-config', at('openssl.cnf')],
    ...['-keyout', at(`${name}.key`), '-subj', `/CN=Test ${name}`],
  ];
  const sign = (name: string, issuer: string, extensions: string): void => {
    openssl(...request(name), '-out', at(`${name}.csr`));
    const by = ['-CA', at(`${issuer}.pem`), '-CAkey', at(`${issuer}.key`), '-CAcreateserial'];
    const as = ['-extfile', at('openssl.cnf'), '-extensions', extensions, '-days', '30'];
    openssl('x509', '-req', '-in', at(`${name}.csr`), ...by, ...as, '-out', at(`${name}.pem`));
  };
  /** `x509 -req` counts in days; `ca` takes the second. */
  const signFor = (length: number): void => {
    openssl(...request('signer'), '-out', at('signer.csr'));
    writeFileSync(at('index'), '');
    writeFileSync(at('ca-serial'), '2A');
    const end = `${new Date(Date.now() + 1000 * length).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`;
    const by = ['-cert', at('intermediate.pem'), '-keyfile', at('intermediate.key'), '-config', at('ca.cnf')];
    const as = ['-extfile', at('openssl.cnf'), '-extensions', use, '-enddate', end, '-notext', '-batch'];
    openssl('ca', ...by, ...as, '-in', at('signer.csr'), '-out', at('signer.pem'));
  };
  writeFileSync(at('ca.cnf'), CA.replaceAll('FOLDER', folder));
  openssl(...request('root'), '-x509', '-days', '30', '-extensions', 'ca', '-out', at('root.pem'));
  sign('intermediate', 'root', 'ca');
  if (seconds === undefined) sign('signer', 'intermediate', use);
  else signFor(seconds);
  return {
    root: readFileSync(at('root.pem')),
    intermediate: readFileSync(at('intermediate.pem')),
    signer: readFileSync(at('signer.pem')),
    answer: (query, name = 'plain') => {
      writeFileSync(at('query'), query);
      const what = ['-config', at('openssl.cnf'), '-section', name, '-queryfile', at('query')];
      const by = ['-signer', at('signer.pem'), '-inkey', at('signer.key')];
      openssl('ts', '-reply', ...what, ...by, '-out', at('response'));
      return readFileSync(at('response'));
    },
    ends: () => openssl('x509', '-in', at('signer.pem'), '-noout', '-enddate').toString().trim().slice(9),
    token: (response) => {
      writeFileSync(at('response'), response);
      openssl('ts', '-reply', '-in', at('response'), '-token_out', '-out', at('token'));
      return readFileSync(at('token'));
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}
