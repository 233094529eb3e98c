/**
 * Runs the contract suite on each server of matrix/servers.ts, in containers.
 *
 *  npm run test:matrix
 *  npm run test:matrix -- --only 'Valkey 9' --only 'Redis 8'
 *  npm run test:matrix -- --nodes      runs the rows of the matrix on different versions of Node, with the unit suite
 *  npm run test:matrix -- --beside .cache/reports/test.json
 *                                      leaves out the server that this earlier test run has tested already, and the
 *                                      tests whose result does not depend on the server
 *  npm run test:matrix -- --nodes --page
 *                                      writes the table of docs/servers.md, if all rows have passed
 *  npm run test:matrix -- --prepare    no tests: fetches what they need, and keeps it in the cache if possible
 *
 * Images and a container engine are found or made (matrix/images.ts, matrix/engine.ts). The table at the end shows the
 * version that each server itself reported. The exit code is 1 unless every row passed completely.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { cacheFolder } from '../local-redis/cache-folder.ts'
import { messageOf } from '../local-redis/error-message.ts'
import { findEngine } from './matrix/engine.ts'
import { type Image, Images } from './matrix/images.ts'
import { label, removeLeftovers } from './matrix/leftovers.ts'
import { nodes, onNode } from './matrix/nodes.ts'
import { writePage } from './matrix/page.ts'
import { type ServerRow, servers } from './matrix/servers.ts'
import { complaintsOf, endSuites, isVersionOf, notedIn, type Outcome, runSuites, type Suite } from './suites.ts'
import { testFilesIn } from './test-files.ts'

/**
 * Tests that do not run in the matrix. Two check what a client does while servers of a quorum are unreachable, which
 * does not depend on the kind of server. test/contract/quorum.test.ts tests what each kind of server answers. The third
 * needs a socket in this machine's files, which a server in a container cannot have.
 */
const elsewhere: readonly string[] = [
  'test/contract/quorum-away.test.ts',
  'test/contract/quorum-errors.test.ts',
  'test/contract/unix-socket.test.ts',
]

/**
 * The tests that run with `--beside`: those that run every script, send messages, count commands, and make, lose and
 * refuse connections. With `--nodes` they also show the context of asynchronous calls, signals and timers on each Node.
 * What the other tests of the contract show does not depend on the server, and the earlier run has shown it.
 */
const byServer: readonly string[] = [
  ...['all', 'close', 'connection-source', 'errors', 'fair-queue', 'force-release', 'inspect', 'local-handoff', 'lock'],
  ...['locked', 'other-kinds', 'outage', 'quorum', 'read-write', 'reentry', 'renewal', 'restart', 'semaphore'],
  ...['server-refusals', 'server-states', 'signal', 'using'],
].map(name => `test/contract/${name}.test.ts`)

function suiteOf(row: ServerRow, image: Image, contract: readonly string[]): Suite {
  return {
    name: row.name,
    files: [...contract.filter(file => ![...row.without, ...elsewhere].includes(file)), 'test/topology/matrix'],
    env: {
      REDIS_URL: '',
      BATON_REDIS_IMAGE: image.name,
      BATON_REDIS_ARGS: row.args.join(' '),
      // MONITOR slows a server down, so one row is enough.
      ...(row === servers.at(-1) && { BATON_WITNESS: 'yes' }),
      BATON_CONTAINER_LABEL: label,
      BATON_EXPECT_SERVER: row.name,
      TESTCONTAINERS_RYUK_DISABLED: 'true',
    },
  }
}

/**
 * Gives each supported version of Node one of the suites. So each version runs the contract suite, but not on every
 * server.
 */
async function onNodes(suites: readonly Suite[]): Promise<Suite[]> {
  const spread: Suite[] = []
  for (const [i, suite] of suites.entries()) {
    const row = nodes[i]
    if (!row) spread.push(suite)
    else {
      const { node, env } = await onNode(row)
      spread.push({ ...suite, node, files: [...suite.files, 'test/unit'], env: { ...suite.env, ...env } })
    }
  }
  return spread
}

/** Gets an image for each row. The first image is requested alone, to find out whether a registry can be reached. */
async function imagesFor([first, ...others]: readonly ServerRow[]): Promise<Image[]> {
  const images = await Images.of()
  return [await images.for(first!), ...(await Promise.all(others.map(row => images.for(row))))]
}

function tableOf(rows: readonly ServerRow[], images: readonly Image[], outcomes: readonly Outcome[]): string {
  const table = new Table({
    head: ['row', 'the server says', 'Node says', 'passed', 'failed', 'time', 'image'],
    colAligns: ['left', 'left', 'left', 'right', 'right', 'right', 'left'],
    style: { head: [], border: [] },
  })
  for (const [i, row] of rows.entries()) {
    const { passed, failed, skipped, seconds, noted } = outcomes[i]!
    const name = row.note ? `${row.name} (${row.note})` : row.name
    const { from } = images[i]!
    table.push([name, noted.server ?? '', noted.node ?? '', passed, failed + skipped, `${seconds.toFixed(0)} s`, from])
  }
  return `${table}`
}

/**
 * Returns the rows with these names, or all rows if no names are given. `beside` is the report of an earlier test run.
 * The server that was tested in that run is left out.
 */
async function rowsOf(only: readonly string[] | undefined, beside: string | undefined): Promise<ServerRow[]> {
  const named = servers.filter(({ name }) => only?.includes(name) ?? true)
  if (named.length < (only?.length ?? 1)) throw new Error(`there are ${servers.map(({ name }) => name).join(', ')}`)
  if (beside === undefined) return named
  const { server } = await notedIn(beside)
  const rows = named.filter(({ name }) => !isVersionOf(name, server))
  if (rows.length === 0) throw new Error(`${beside} is of ${server}, and no other server is left`)
  if (rows.length < named.length) console.log(`${server} is left out: it is the server of ${beside}`)
  return rows
}

const options = {
  only: { type: 'string', multiple: true },
  beside: { type: 'string' },
  nodes: { type: 'boolean', default: false },
  prepare: { type: 'boolean', default: false },
  page: { type: 'boolean', default: false },
  reports: { type: 'string' },
} as const

async function main(): Promise<boolean> {
  const { only, beside, reports, prepare, page, nodes: spread } = parseArgs({ options }).values
  const rows = await rowsOf(only, beside)
  const begin = performance.now()

  const engine = await findEngine()
  console.log(`Engine: ${engine.description}`)
  Object.assign(process.env, engine.env)
  const cleanUp = async () => {
    endSuites()
    await removeLeftovers({ mine: true }).finally(() => engine.stop())
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void cleanUp().finally(() => process.exit(1)))
  }
  try {
    await removeLeftovers({ mine: false })
    const images = await imagesFor(rows)
    console.log(`Images: ${((performance.now() - begin) / 1000).toFixed(0)} s`)
    const contract = beside === undefined ? testFilesIn('test/contract') : byServer
    const plain = rows.map((row, i) => suiteOf(row, images[i]!, contract))
    const suites = spread ? await onNodes(plain) : plain
    if (prepare) return true
    // All suites run at once, because the tests mostly wait for leases to end and for servers to start.
    const outcomes = await runSuites(suites, reports ?? join(await cacheFolder(process.env), 'matrix'), suites.length)

    const complaints = complaintsOf(
      rows.map(({ name }) => name),
      outcomes,
      ({ server }) => server,
    )
    for (const complaint of complaints) console.log(`\n${complaint}`)
    console.log(tableOf(rows, images, outcomes))
    console.log(`${complaints.length} of ${rows.length} failed, ${((performance.now() - begin) / 1000).toFixed(0)} s`)
    if (page && complaints.length === 0 && rows.length === servers.length) writePage(rows, outcomes)
    return complaints.length === 0
  } finally {
    await cleanUp()
  }
}

try {
  if (!(await main())) process.exitCode = 1
} catch (error) {
  console.error(messageOf(error))
  process.exitCode = 1
}
