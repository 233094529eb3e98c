/**
 * This process runs programs of the documentation one after another, with a Redis server of its own. So a program's
 * effects on its process or on Redis cannot reach the tests, and a program that hangs can be killed. The process
 * reports the outcome of each program as soon as the program has ended.
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import { Scene } from './scene.ts'

export interface Job {
  readonly id: number
  readonly module?: string
  readonly script?: string
  /** The URLs of further servers that the program uses. */
  readonly others?: readonly string[]
  /** The script's name in the error messages of the shell. */
  readonly name: string
}

export interface Outcome {
  readonly id: number
  readonly output: string
  readonly error?: string
}

/** A block that takes longer than this, in ms, counts as hanging. */
const PATIENCE = 60_000

let interrupt: (error: unknown) => void = () => {}
// If the process of the tests ends, this process ends as well, because no other process can receive the results.
process.on('disconnect', () => process.exit(1))
process.on('unhandledRejection', error => interrupt(error))
process.on('uncaughtException', error => interrupt(error))

const { url, jobs } = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as { url: string; jobs: Job[] }
process.env['REDIS_URL'] = url

for (const job of jobs) {
  const scene = new Scene(url)
  await scene.redis.flushall()
  for (const other of job.others ?? []) await emptied(other)
  scene.open()
  let error: unknown
  let timer: NodeJS.Timeout | undefined
  const interrupted = new Promise<never>((_resolve, reject) => {
    interrupt = reject
    timer = setTimeout(() => reject(new Error(`it did not end within ${PATIENCE} ms`)), PATIENCE)
  })
  await Promise.race([run(job, scene), interrupted]).catch(reason => {
    error = reason
  })
  clearTimeout(timer)
  const output = scene.printed()
  await scene.close()
  const outcome = { id: job.id, output, ...(error !== undefined && { error: told(error, job) }) }
  await new Promise(resolve => process.send!(outcome, resolve))
}
// A block may leave connections open, so the process has to be ended.
process.exit(0)

async function run({ module, script, name }: Job, scene: Scene): Promise<void> {
  if (module !== undefined) await import(pathToFileURL(module).href)
  if (script === undefined) return
  const { code, output, errors } = await scene.sh(script, name)
  scene.print(output.trimEnd())
  if (code !== 0) throw new Error(`exit code ${code}: ${errors}`)
}

async function emptied(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.flushall()
  redis.disconnect()
}

/** Returns the error's stack if the program is a module, otherwise only the error's message. */
function told(error: unknown, { module }: Job): string {
  if (!(error instanceof Error)) return String(error)
  return module === undefined ? error.message : (error.stack ?? error.message)
}
