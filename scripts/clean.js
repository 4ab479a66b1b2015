// A stale file in dist/ would be published and run: every build starts from nothing.
import { rmSync } from 'node:fs';

for (const folder of ['dist', 'demo/dist']) rmSync(folder, { recursive: true, force: true });
