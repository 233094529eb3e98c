import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Tests that change something that exists once per process: globals, the environment, OpenTelemetry's registry. */
const untidy = ['test/docs/*.test.ts', 'test/contract/opentelemetry/*.test.ts']
const faults = ['test/fault/{,quorum/}*.test.ts']
const failovers = ['test/topology/faults/*.test.ts']
const screens = ['test/program/{browser,terminal}/*.test.ts']
/** What is around the library: the program `baton`, the benchmark, the examples, and the applications of Nest's users. */
const program = [
  'test/program/!(browser|terminal)/**/*.test.ts',
  'test/docs/examples/*.test.ts',
  'test/docs/package/nestjs/nestjs.test.ts',
]
/** vitest.topologies.config.ts runs these tests. */
const topologies = ['test/topology/*.test.ts']

const common = {
  globalSetup: 'test/kit/global-setup.ts',
  // The tests use real servers and child processes, often on two slow cores. Most tests mostly wait, so more files run
  // at the same time than there are cores. With many more files, some bounds on times would no longer hold.
  maxWorkers: 4,
  // Only stops a test that hangs: what has to be prompt, a test says itself.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // On a busy machine, the default of 1 s is too short for a page to show what was read from Redis.
  expect: { poll: { timeout: 10_000 } },
  // The result of a whole run shows only the message of a failure, so the message has to contain the values.
  chaiConfig: { truncateThreshold: 2_000 },
  // A test that fails once is a failure.
  retry: 0,
}

/** Names of test files that take long. They begin first, in this order. */
const early = [
  ...['docs/blocks', 'nestjs/nestjs', 'bench/run', 'cli/bad-input', 'simulation/simulation', 'cli/away'],
  ...['cli/topologies', 'simulation/waits', 'contract/quorum-away', 'scenarios/many-holds'],
  ...['scenarios/exclusion', 'contract/quorum-errors', 'contract/renewal', 'examples/transfer', 'contract/errors'],
  ...['scenarios/many-leases', 'local-redis/package-cache', 'demo/demo', 'package/installed'],
  ...['contract/lease', 'contract/putting-off', 'contract/server-states', 'bench/cli'],
  ...['giving-up', 'paused', 'killed-processes', 'revoked-rights', 'partitions', 'lost-data'].map(
    name => `fault/${name}`,
  ),
  'browser/site',
]
/** The number of short files between two that take long. Together they take about as long as one of these. */
const between = 5

/**
 * Sorts the files: a file that takes long, `between` short files, the next long file, and so on. If a long file began
 * last, the others would have ended before it. And busy files side by side would slow each other down. Files that need
 * a process of their own come first, so that no shared process has to end for them.
 */
class BusyAmongWaiting extends BaseSequencer {
  override async sort(specifications: TestSpecification[]) {
    const place = ({ moduleId }: TestSpecification) => {
      const found = early.findIndex(name => moduleId.endsWith(`${name}.test.ts`))
      return found < 0 ? early.length : found
    }
    const sorted = (await super.sort(specifications)).sort((a, b) => place(a) - place(b))
    const apart = sorted.filter(({ project }) => project.config.isolate)
    const shared = sorted.filter(({ project }) => !project.config.isolate)
    const busy = shared.filter(file => place(file) < early.length)
    const waiting = shared.slice(busy.length)
    const mixed = busy.flatMap(file => [file, ...waiting.splice(0, between)])
    return [...apart, ...mixed, ...waiting]
  }
}

export default defineConfig({
  test: {
    projects: [
      // The files of a worker share its process, because loading all modules again for each file takes a sixth of the
      // processor time.
      {
        test: {
          ...common,
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [...untidy, ...faults, ...failovers, ...screens, ...program, ...topologies],
          isolate: false,
        },
      },
      { test: { ...common, name: 'apart', include: untidy } },
      { test: { ...common, name: 'program', include: program, isolate: false } },
      // They wait even more than the others.
      { test: { ...common, name: 'faults', include: faults, isolate: false, maxWorkers: 5 } },
      // Each file starts six servers. On a busy machine, a server that is slow to answer is mistaken for a dead one.
      {
        test: {
          ...common,
          name: 'failovers',
          include: failovers,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // Browsers use the processor most of the time, so these tests run after all others.
      { test: { ...common, name: 'screens', include: screens, maxWorkers: 4, sequence: { groupOrder: 2 } } },
    ],
    sequence: { sequencer: BusyAmongWaiting },
    allowOnly: false,
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    outputFile: { json: process.env['BATON_TEST_REPORT'] ?? '.cache/test-results.json' },
  },
})
