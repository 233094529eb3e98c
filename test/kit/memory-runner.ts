/** Leaves out the tests that need a server, for the topology without one. test/topology/not-repeated.ts lists them. */
import { type RunnerTask, type RunnerTestFile, type RunnerTestSuite, TestRunner } from 'vitest'
import { needServers } from '../topology/not-repeated.ts'

type Report = ((files: RunnerTestFile[]) => unknown) | undefined

export default class MemoryRunner extends TestRunner {
  constructor(...of: ConstructorParameters<typeof TestRunner>) {
    super(...of)
    // Vitest sets this method of a runner, and in it sends the list of tests to the reporters.
    let report: Report
    Object.defineProperty(this, 'onCollected', {
      get: () => report,
      set: (given: Report) => {
        report = files => {
          for (const file of files) leaveOutOf(file)
          return given?.(files)
        }
      },
    })
  }
}

function leaveOutOf(file: RunnerTestFile): void {
  const patterns = needServers.filter(each => file.filepath.endsWith(each.file)).flatMap(({ tests }) => tests)
  const unused = new Set(patterns)
  leaveOut(file, '', name => {
    const found = patterns.filter(pattern => name.includes(pattern))
    for (const pattern of found) unused.delete(pattern)
    return found.length > 0
  })
  if (unused.size > 0) throw new Error(`${file.name} has no test with these words: ${[...unused].join(', ')}`)
}

function leaveOut(suite: RunnerTestSuite, above: string, needsServer: (name: string) => boolean): void {
  suite.tasks = suite.tasks.filter((task: RunnerTask) => {
    const name = `${above} ${task.name}`
    if (task.type !== 'suite') return !needsServer(name)
    leaveOut(task, name, needsServer)
    return task.tasks.length > 0
  })
}
