import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** They change what is there once in a process: globals, the environment, the registry of OpenTelemetry. */
const untidy = ['test/docs/*.test.ts', 'test/contract/opentelemetry/*.test.ts']
const faults = ['test/fault/{,quorum/}*.test.ts']
const failovers = ['test/topology/faults/*.test.ts']
const screens = ['test/program/{browser,terminal}/*.test.ts']

const common = {
  globalSetup: 'test/kit/global-setup.ts',
  // Real servers and child processes on two slow cores. Most tests wait most of their time, so there are more files side
  // by side than cores, but not many more: all bounds have to hold.
  maxWorkers: 4,
  testTimeout: 20_000,
  hookTimeout: 60_000,
  // Nothing here is skipped or repeated to get through.
  retry: 0,
}

/**
 * What takes long begins early, in this order; a name without its file does no harm. The first group is two thirds of the
 * processor time of `npm test`.
 */
const early = [
  ...['docs/blocks', 'nestjs/nestjs', 'bench/run', 'cli/bad-input', 'simulation/simulation', 'cli/away'],
  ...['cli/topologies', 'scenarios/exclusion', 'scenarios/counting', 'examples/transfer', 'bench/redisson'],
  ...['local-redis/package-cache', 'demo/demo', 'package/installed', 'bench/cli'],
  ...['giving-up', 'paused', 'killed-processes', 'revoked-rights', 'partitions', 'lost-data'].map(
    name => `fault/${name}`,
  ),
  'browser/site',
]
/** As many as wait for as long as a busy file takes. */
const between = 9

/**
 * A busy file, some that mostly wait, the next busy file, and so on: busy ones alone would slow each other down, and would leave
 * the cores idle when only the others are left. Files that share no process come first, so that no shared one has to end for them.
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
      // To load everything anew for each file would be a sixth of what there is to compute.
      {
        test: {
          ...common,
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [...untidy, ...faults, ...failovers, ...screens],
          isolate: false,
        },
      },
      { test: { ...common, name: 'apart', include: untidy } },
      { test: { ...common, name: 'faults', include: faults } },
      // Six servers each, which take one that has no time for one that is dead.
      {
        test: {
          ...common,
          name: 'failovers',
          include: failovers,
          testTimeout: 30_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // A browser computes most of the time.
      { test: { ...common, name: 'screens', include: screens, maxWorkers: 4, sequence: { groupOrder: 2 } } },
    ],
    sequence: { sequencer: BusyAmongWaiting },
    allowOnly: false,
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    outputFile: { json: process.env['BATON_TEST_REPORT'] ?? '.cache/test-results.json' },
  },
})
