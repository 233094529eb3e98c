/**
 * Packs the package, installs it as users do, and takes a lock in each kind of program that users write, on a real
 * server.
 *
 *   npm run test:consumers
 *   npm run test:consumers -- --only Jest --only webpack
 *
 * The packages that the programs need stay in the cache, below consumers/. Only the packed package is installed anew
 * each time. The exit code is 1 if one of the programs fails. A program whose packages are unavailable on this machine
 * is reported as not run.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { cacheFolder } from '../../local-redis/cache-folder.ts'
import { run } from '../../local-redis/command.ts'
import { messageOf } from '../../local-redis/error-message.ts'
import { obtainRedis } from '../../local-redis/index.ts'
import { root } from '../build/entries.ts'
import { type Consumer, type ConsumerSet, consumers, type SetName, sets } from './consumers.ts'

const installWithinMs = 400_000
const runWithinMs = 180_000

interface Outcome {
  readonly name: string
  readonly verdict: 'locked' | 'failed' | 'not run'
  readonly detail: string
  readonly seconds: number
}

/** Makes an installation that contains the packed package, and returns its folder. */
async function install(name: SetName, tarball: string, cache: string): Promise<string> {
  const folder = join(cache, name)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true }))
  const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', '--prefix', folder]
  await run('npm', ['install', ...flags, ...sets[name].packages, tarball], { timeoutMs: installWithinMs })
  return folder
}

/** Runs the consumer's commands in a new folder inside the installation. Rejects with the failed command's error. */
async function use(consumer: Consumer, installation: string, url: string): Promise<void> {
  const folder = join(installation, 'consumers', consumer.name.replaceAll(/\W+/g, '-'))
  await rm(folder, { recursive: true, force: true })
  for (const [name, content] of Object.entries(consumer.files)) {
    const file = join(folder, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  }
  const PATH = [join(installation, 'node_modules', '.bin'), process.env['PATH']].join(delimiter)
  const env = { PATH, REDIS_URL: url, NO_COLOR: '1', NODE_OPTIONS: '', NEXT_TELEMETRY_DISABLED: '1' }
  let output = ''
  for (const [program, ...args] of consumer.commands) {
    output = await run(program, args, { timeoutMs: runWithinMs, env, cwd: folder })
  }
  const { says = 'locked' } = consumer
  if (!output.includes(says)) throw new Error(`it did not say "${says}": ${output.trim()}`)
}

async function judge(consumer: Consumer, installation: Promise<string>, url: string): Promise<Outcome> {
  const { name, set } = consumer
  const begin = performance.now()
  const as = (verdict: Outcome['verdict'], detail = '') => {
    return { name, verdict, detail, seconds: (performance.now() - begin) / 1000 }
  }
  try {
    const folder = await installation
    return await use(consumer, folder, url).then(
      () => as('locked'),
      error => as('failed', messageOf(error)),
    )
  } catch (error) {
    const { mayBeMissing }: ConsumerSet = sets[set]
    return as(mayBeMissing ? 'not run' : 'failed', `its packages cannot be installed: ${messageOf(error)}`)
  }
}

async function main(): Promise<boolean> {
  const { only } = parseArgs({ options: { only: { type: 'string', multiple: true } } }).values
  const chosen = consumers.filter(({ name }) => only?.some(part => name.includes(part)) ?? true)
  if (chosen.length === 0) throw new Error(`there are ${consumers.map(({ name }) => name).join('; ')}`)

  const cache = join(await cacheFolder(process.env), 'consumers')
  await mkdir(cache, { recursive: true })
  const packed = await mkdtemp(join(cache, 'packed-'))
  const redis = await obtainRedis({ announce: console.log })
  try {
    const pack = ['pack', root, '--json', '--loglevel=error', '--pack-destination', packed]
    const [{ filename }] = JSON.parse(await run('npm', pack, { timeoutMs: installWithinMs }))
    // Makes the installations one after the other, because two at once would fetch the same packages.
    const installations = new Map<SetName, Promise<string>>()
    let last: Promise<unknown> = Promise.resolve()
    for (const name of new Set(chosen.map(({ set }) => set))) {
      const installation = last.then(() => install(name, join(packed, filename), cache))
      last = installation.catch(() => {})
      installations.set(name, installation)
    }
    const outcomes: Outcome[] = []
    const left = [...chosen]
    const worker = async () => {
      for (let next = left.shift(); next; next = left.shift()) {
        outcomes.push(await judge(next, installations.get(next.set)!, redis.url))
      }
    }
    await Promise.all(Array.from({ length: availableParallelism() }, worker))
    return report(outcomes)
  } finally {
    await redis.stop()
    await rm(packed, { recursive: true, force: true })
  }
}

function report(outcomes: readonly Outcome[]): boolean {
  const failed = outcomes.filter(({ verdict }) => verdict === 'failed')
  for (const { name, detail } of failed) console.log(`\n${name}: ${detail}`)
  const table = new Table({ head: ['consumer', 'verdict', 's', ''], style: { head: [], border: [] } })
  for (const { name, verdict, seconds, detail } of outcomes) {
    table.push([name, verdict, seconds.toFixed(1), verdict === 'failed' ? '' : detail.split('\n')[0]!.slice(0, 90)])
  }
  console.log(`${table}`)
  const count = (verdict: string) => outcomes.filter(each => each.verdict === verdict).length
  console.log(`${count('locked')} locked, ${failed.length} failed, ${count('not run')} not run`)
  return failed.length === 0
}

process.exitCode = (await main()) ? 0 : 1
