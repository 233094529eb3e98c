/**
 * Runs the contract suite on every topology. Each topology is a project with its own servers. The project `each` runs
 * the tests of what only one topology has.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { topologies } from './test/kit/topologies/index.ts'
import { notRepeated, withIoredis5 } from './test/topology/not-repeated.ts'

/** Makes an import of `ioredis` load version 5, in the tests of a project and in the programs that they start. */
const ioredis5 = fileURLToPath(new URL('test/kit/ioredis-5.mjs', import.meta.url))

const common = {
  globalSetup: 'test/kit/global-setup.ts',
  // These tests mostly wait, for leases to end and for servers to start. A file uses the processor for 1 s of 20 s.
  maxWorkers: 6,
  // Only stops a test that hangs: what has to be prompt, a test says itself.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  chaiConfig: { truncateThreshold: 2_000 },
  retry: 0,
}

export default defineConfig({
  test: {
    projects: [
      { test: { ...common, name: 'each', include: ['test/topology/*.test.ts'], isolate: false } },
      ...topologies.map(({ name }) => ({
        test: {
          ...common,
          name,
          include: ['test/contract/*.test.ts'],
          exclude: notRepeated.filter(({ on }) => !on.includes(name)).map(({ file }) => file),
          // The files of a worker share its process. Loading all modules again for each file would double the processor
          // time.
          isolate: false,
          ...(name === 'memory' && { runner: 'test/kit/memory-runner.ts' }),
        },
      })),
      ...Object.entries(withIoredis5).map(([name, include]) => ({
        test: {
          ...common,
          name: `${name}, ioredis 5`,
          include: [...include],
          execArgv: ['--import', ioredis5],
          env: { NODE_OPTIONS: `--import ${ioredis5}` },
          isolate: false,
        },
      })),
    ],
    allowOnly: false,
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    outputFile: { json: process.env['BATON_TEST_REPORT'] ?? '.cache/test-results.json' },
  },
})
