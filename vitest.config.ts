import { defineConfig } from 'vitest/config';

/** Kills, failing system calls and power cuts take minutes: `npm run crash`. */
const exclude = process.env.BOUNDBOOK_CRASH === undefined ? ['test/crash/**'] : [];

export default defineConfig({
  test: { include: ['test/**/*.test.ts'], exclude, testTimeout: 60_000, hookTimeout: 60_000 },
});
