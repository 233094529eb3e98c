/**
 * Runs the unit and contract suites on each supported version of Node.
 *
 *   npm run test:nodes
 *   npm run test:nodes -- --only 'Node 20.19' --only 'Node 26'
 *
 * Each Node is kept in the project's cache folder. The table at the end shows the version that each Node itself
 * reported. The exit code is 1 unless all tests have passed on each Node.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { cacheFolder } from '../local-redis/cache-folder.ts'
import { messageOf } from '../local-redis/error-message.ts'
import { nodes, onNode } from './matrix/nodes.ts'
import { complaintsOf, endSuites, type Outcome, runSuites, type Suite } from './suites.ts'
import { testFilesIn } from './test-files.ts'

const files = ['test/unit', ...testFilesIn('test/contract'), 'test/topology/matrix/server.test.ts']

function tableOf(outcomes: readonly Outcome[]): string {
  const table = new Table({
    head: ['row', 'Node says', 'server', 'passed', 'failed', 'time'],
    colAligns: ['left', 'left', 'left', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  })
  for (const { name, noted, passed, failed, skipped, seconds } of outcomes)
    table.push([name, noted.node ?? '', noted.server ?? '', passed, failed + skipped, `${seconds.toFixed(0)} s`])
  return `${table}`
}

async function main(): Promise<boolean> {
  const options = { only: { type: 'string', multiple: true }, reports: { type: 'string' } } as const
  const { only, reports } = parseArgs({ options }).values
  const rows = nodes.filter(({ name }) => only?.includes(name) ?? true)
  if (rows.length < (only?.length ?? 1)) throw new Error(`there are ${nodes.map(({ name }) => name).join(', ')}`)
  const begin = performance.now()

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      endSuites()
      process.exit(1)
    })
  }
  const suites: Suite[] = []
  for (const row of rows) suites.push({ name: row.name, files, ...(await onNode(row)) })
  console.log(`Programs: ${((performance.now() - begin) / 1000).toFixed(0)} s`)
  const folder = reports ?? join(await cacheFolder(process.env), 'nodes', 'reports')
  const outcomes = await runSuites(suites, folder, availableParallelism())

  const complaints = complaintsOf(
    rows.map(({ name }) => name),
    outcomes,
    ({ node }) => node,
  )
  for (const complaint of complaints) console.log(`\n${complaint}`)
  console.log(tableOf(outcomes))
  console.log(`${complaints.length} of ${rows.length} failed, ${((performance.now() - begin) / 1000).toFixed(0)} s`)
  return complaints.length === 0
}

try {
  if (!(await main())) process.exitCode = 1
} catch (error) {
  console.error(messageOf(error))
  process.exitCode = 1
}
