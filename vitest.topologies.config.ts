/** The contract suite over every topology, one project each with servers of its own. */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { topologies } from './test/kit/topologies/index.ts'
import { notRepeated, withIoredis5 } from './test/topology/not-repeated.ts'

/** For what asks for ioredis in the tests of a project, and in the programs that they start. */
const ioredis5 = fileURLToPath(new URL('test/kit/ioredis-5.mjs', import.meta.url))

const common = {
  globalSetup: 'test/kit/global-setup.ts',
  // These tests wait nearly all of their time, for leases to end and for servers to begin: a file computes for a second of twenty.
  maxWorkers: 6,
  testTimeout: 30_000,
  hookTimeout: 60_000,
  retry: 0,
}

export default defineConfig({
  test: {
    projects: [
      ...topologies.map(({ name }) => ({
        test: {
          ...common,
          name,
          include: ['test/contract/*.test.ts'],
          exclude: notRepeated.filter(({ on }) => !on.includes(name)).map(({ file }) => file),
          // A worker loads everything once for many files, which is half of what there is to compute.
          isolate: false,
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
