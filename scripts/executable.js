// The compiler writes files that cannot be executed; `npx boundbook` and a global link need the bit.
import { chmodSync } from 'node:fs';

chmodSync('dist/cli.js', 0o755);
