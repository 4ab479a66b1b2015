import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { BoundbookError } from '../core/errors.js';
import { familyOf } from './process-tree.js';

/** A port of the loopback interface that nobody listens on at this moment. */
export async function freePort(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === 'string') {
    throw new BoundbookError('SERVICE_FAILED', `no free port on ${host}`);
  }
  return address.port;
}

export type PortOwner = 'nobody' | 'family' | 'stranger';

/**
 * Who listens on a port of the loopback interface: the process group that was started (with all its descendants), or
 * somebody else. Every listener that could take a connection to 127.0.0.1 must belong to the family; one whose owner
 * cannot be seen is a stranger (DESIGN §12: claim no more than the evidence).
 */
export function portOwner(port: number, group: number): PortOwner {
  const listeners = listenersOn(port);
  if (listeners.size === 0) return 'nobody';
  for (const { pid } of familyOf(group)) {
    for (const inode of socketsOf(pid)) listeners.delete(inode);
    if (listeners.size === 0) return 'family';
  }
  return 'stranger';
}

const LISTEN = '0A';
/** Local addresses, as the kernel prints them, under which a listener takes connections to 127.0.0.1. */
const REACHABLE = new Set([
  '0100007F',
  '00000000',
  '00000000000000000000000000000000',
  '0000000000000000FFFF00000100007F',
  '0000000000000000FFFF000000000000',
]);

/** Socket inodes of the listeners on a port. */
function listenersOn(port: number): Set<string> {
  const inodes = new Set<string>();
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readTable(table)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const [address = '', localPort] = local.split(':');
      if (state === LISTEN && localPort === wanted && REACHABLE.has(address)) inodes.add(inode);
    }
  }
  return inodes;
}

function readTable(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(1);
  } catch {
    // A kernel without IPv6 has no tcp6; without tcp no listener is seen and no port is ever accepted.
    return [];
  }
}

function socketsOf(pid: number): string[] {
  const inodes: string[] = [];
  try {
    for (const descriptor of readdirSync(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[([0-9]+)\]$/.exec(linkTarget(`/proc/${pid}/fd/${descriptor}`))?.[1];
      if (inode !== undefined) inodes.push(inode);
    }
  } catch {
    // Gone, or not ours to look into: then its sockets do not count as ours either.
  }
  return inodes;
}

function linkTarget(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
