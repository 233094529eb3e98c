import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    // Real servers and child processes on two slow cores. Most tests wait most of their time, so there are more files side
    // by side than cores, but not many more: all bounds have to hold.
    maxWorkers: 4,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Nothing here is skipped or repeated to get through.
    retry: 0,
    allowOnly: false,
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    outputFile: { json: process.env['BATON_TEST_REPORT'] ?? '.cache/test-results.json' },
  },
})
