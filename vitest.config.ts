import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** They change what is there once in a process: globals, the environment, the registry of OpenTelemetry. */
const untidy = ['test/docs/*.test.ts', 'test/contract/opentelemetry/*.test.ts']
const faults = ['test/fault/*.test.ts']
const screens = ['test/program/{browser,terminal}/*.test.ts']
/** See vitest.topologies.config.ts. */
const elsewhere = ['test/topology/faults/*.test.ts']

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

/** What takes long begins first, so that the others fill the time beside it. */
class LongestFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]) {
    const sorted = await super.sort(specifications)
    const long =
      /scenarios\/(counting|exclusion|many|turns)|bench\/run|package-cache|package\/nestjs|test\/simulation|examples\/transfer/
    const isLong = ({ moduleId }: TestSpecification) => Number(long.test(moduleId))
    return sorted.sort((a, b) => isLong(b) - isLong(a))
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
          exclude: [...untidy, ...faults, ...screens, ...elsewhere],
          isolate: false,
        },
      },
      { test: { ...common, name: 'apart', include: untidy } },
      { test: { ...common, name: 'faults', include: faults } },
      { test: { ...common, name: 'screens', include: screens } },
    ],
    sequence: { sequencer: LongestFirst },
    allowOnly: false,
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    outputFile: { json: process.env['BATON_TEST_REPORT'] ?? '.cache/test-results.json' },
  },
})
