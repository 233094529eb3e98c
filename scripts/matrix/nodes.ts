/**
 * Installs the supported versions of Node from the npm registry. For each platform, the registry has a package with the
 * executable of Node.
 */
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { cacheFolder } from '../../local-redis/cache-folder.ts'
import { run } from '../../local-redis/command.ts'
import type { Suite } from '../suites.ts'

export interface NodeRow {
  readonly name: string
  /** A version or a range of versions, in npm's syntax. */
  readonly version: string
}

/** The first row is exactly the lowest version that package.json admits. */
export const nodes: readonly NodeRow[] = [
  { name: 'Node 20.19', version: '20.19.0' },
  { name: 'Node 22', version: '22' },
  { name: 'Node 24', version: '24' },
  { name: 'Node 26', version: '26' },
]

const installWithinMs = 300_000

/**
 * The package with Node's executable for this platform. It is not installed through the package `node`, because that
 * package needs an install script, and npm may be set not to run install scripts.
 */
const packageName = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
const program = join('node_modules', packageName, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')

async function programOf({ version }: NodeRow): Promise<string> {
  const folder = join(await cacheFolder(process.env), 'nodes')
  const place = join(folder, version)
  if (await runs(join(place, program))) return join(place, program)

  await mkdir(folder, { recursive: true })
  const workshop = await mkdtemp(`${place}.building-`)
  try {
    await writeFile(join(workshop, 'package.json'), '{}')
    const flags = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', workshop]
    await run('npm', ['install', ...flags, `${packageName}@${version}`], { timeoutMs: installWithinMs })
    await rm(place, { recursive: true, force: true })
    await rename(workshop, place)
  } finally {
    await rm(workshop, { recursive: true, force: true })
  }
  if (!(await runs(join(place, program)))) throw new Error(`Node ${version} was installed, but does not run`)
  return join(place, program)
}

function runs(file: string): Promise<boolean> {
  return run(file, ['--version'], { timeoutMs: 30_000 }).then(
    () => true,
    () => false,
  )
}

/** Returns settings with which a suite and its child processes run on the Node of this row. */
export async function onNode(row: NodeRow): Promise<Required<Pick<Suite, 'node' | 'env'>>> {
  const node = await programOf(row)
  const PATH = [dirname(node), process.env['PATH']].join(delimiter)
  return { node, env: { PATH, BATON_EXPECT_NODE: row.name } }
}
