import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    // Real servers and child processes on two slow cores: files side by side, but not more of them than cores.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Nothing here is skipped or repeated to get through.
    retry: 0,
    allowOnly: false,
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    outputFile: { json: process.env['BATON_TEST_REPORT'] ?? '.cache/test-results.json' },
  },
})
