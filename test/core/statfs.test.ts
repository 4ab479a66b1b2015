import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BoundbookError } from '../../src/core/errors.js';
import { type FileSystemProbe, networkFileSystem, probeFileSystem } from '../../src/core/statfs.js';

const probe =
  (type: number, mounted: string | null = null): FileSystemProbe =>
  () => ({ type, mounted: () => mounted });

test.each([
  ['NFS', 0x6969],
  ['SMB', 0x517b],
  ['SMB2', 0xfe534d42],
  ['CIFS', 0xff534d42],
  ['CIFS', 0xff534d42 | 0],
  ['AFS', 0x5346414f],
  ['AFS', 0x6b414653],
  ['9P', 0x01021997],
  ['Coda', 0x73757245],
  ['Ceph', 0x00c36400],
  ['Lustre', 0x0bd00bd0],
  ['GPFS', 0x47504653],
  ['GFS2', 0x01161970],
  ['OCFS2', 0x7461636f],
])('%s (%i) is shared between hosts', (name, type) => {
  expect(networkFileSystem('/', probe(type))).toBe(name);
});

test.each([
  ['ext4', 0xef53],
  ['xfs', 0x58465342],
  ['btrfs', 0x9123683e],
  ['tmpfs', 0x01021994],
  ['overlayfs', 0x794c7630],
  ['zfs', 0x2fc12fc1],
  ['f2fs', 0xf2f52010],
  ['exfat', 0x2011bab0],
  ['unknown', 0x12345678],
])('%s (%i) is local', (_, type) => {
  expect(networkFileSystem('/', probe(type))).toBeNull();
});

test.each([
  ['fuse.sshfs', 'fuse.sshfs'],
  ['fuse.rclone', 'fuse.rclone'],
  ['virtiofs', 'virtiofs'],
  [null, 'FUSE'],
  ['fuseblk', null],
  ['fuse.fuse-overlayfs', null],
])('a FUSE mount of type %s: %s', (mounted, expected) => {
  expect(networkFileSystem('/', probe(0x65735546, mounted))).toBe(expected);
});

test('a folder that is not there yet is judged by the nearest one that is', () => {
  const seen: string[] = [];
  const watch: FileSystemProbe = (path) => {
    seen.push(path);
    return { type: 0x6969, mounted: () => null };
  };
  const file = import.meta.filename;
  expect(networkFileSystem(join(tmpdir(), 'no/such/folder'), watch)).toBe('NFS');
  expect(networkFileSystem(join(file, 'below'), watch)).toBe('NFS');
  expect(seen).toEqual([tmpdir(), file]);
});

test('the real one: types of mounts come from the mount table', () => {
  expect(networkFileSystem(tmpdir())).toBeNull();
  expect(networkFileSystem('/proc')).toBeNull();
  expect(probeFileSystem('/proc')).toMatchObject({ type: 0x9fa0 });
  expect(probeFileSystem('/proc').mounted()).toBe('proc');
  expect(probeFileSystem('/sys').mounted()).toBe('sysfs');
});

test('a path that cannot be looked at says so', () => {
  expect(() => networkFileSystem(`/${'x'.repeat(300)}`)).toThrowError(BoundbookError);
});
