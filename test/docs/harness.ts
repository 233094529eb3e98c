/**
 * Checks and runs the programs, which are made from the code blocks of the documentation. One run of the compiler
 * checks the types of all programs. A few processes run the programs side by side.
 */
import { execFile, fork } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { findServerSource, type RunningServer, type ServerSource } from '../../local-redis/index.ts'
import { entries } from '../../scripts/build/entries.ts'
import type { Job, Outcome } from './lane.ts'
import { root } from './page.ts'
import type { Program } from './program.ts'
import { declarations } from './scene.ts'

export interface Result {
  /** Messages about what is wrong with the program. */
  readonly problems: readonly string[]
  /** What the program printed. */
  readonly output: string
}

export interface Results {
  readonly of: ReadonlyMap<Program, Result>
  /**
   * The compiler's errors about the globals that programs may use (scene.ts). If there are any, the compiler may not
   * have found the type errors in the programs.
   */
  readonly aboutScene: readonly string[]
}

/** The number of lanes. A lane is a process that runs programs one after another, with servers of its own. */
const LANES = 2
/**
 * Time limit for a lane, in ms. A lane itself stops a program that hangs. This limit ends a lane that can no longer
 * stop its program.
 */
const LIMIT = 240_000

/**
 * The servers of a lane, which replace the addresses on the pages: `one` replaces `127.0.0.1:6379`, and `quorum`
 * replaces `redis-a:6379` to `redis-e:6379`.
 */
interface Servers {
  readonly one: RunningServer
  readonly quorum: readonly RunningServer[]
}

const quorumHosts = /\bredis-([a-e]):6379\b/g
/** With these settings a server loses no write. So a quorum counts the server's votes as soon as the server is up. */
const keepsEachWrite = ['--appendonly', 'yes', '--appendfsync', 'always']

export async function runAll(programs: readonly Program[]): Promise<Results> {
  // The folder is inside the project, so that modules find the project's packages. Each run has a folder of its own.
  const folder = fileURLToPath(new URL(`.cache/docs/${process.pid}/`, root))
  mkdirSync(folder, { recursive: true })
  const source = await findServerSource()
  const laneOf = shareOut(programs)
  const servers = await Promise.all(
    Array.from({ length: LANES }, (_, lane) =>
      serversFor(
        source,
        programs.filter(each => laneOf(each) === lane),
      ),
    ),
  )
  try {
    const jobs = programs.map((program, id) => jobOf(program, id, folder, servers[laneOf(program)]!))
    const settings = writeSettings(folder)
    const [types, ...outcomes] = await Promise.all([
      compile(settings),
      ...servers.map(({ one }, lane) => {
        const share = jobs.filter(({ id }) => laneOf(programs[id]!) === lane && toBeRun(programs[id]!))
        return runLane(join(folder, `lane-${lane}.json`), one.url, share, settings)
      }),
    ])
    const results = programs.map((program, id) => {
      const outcome = outcomes.flat().find(each => each.id === id)
      return [program, resultOf(program, jobs[id]!, types, outcome)] as const
    })
    return { of: new Map(results), aboutScene: types.filter(line => /^test\/docs\/|globals\.d\.ts\(/.test(line)) }
  } finally {
    await Promise.all(servers.flatMap(({ one, quorum }) => [one, ...quorum]).map(server => server.stop()))
    rmSync(folder, { recursive: true, force: true })
  }
}

async function serversFor(source: ServerSource, programs: readonly Program[]): Promise<Servers> {
  const several = programs.some(({ work }) => 'source' in work && usesQuorum(work.source))
  const quorum = several ? Array.from({ length: 5 }, () => source.start({ args: keepsEachWrite })) : []
  const [one, ...others] = await Promise.all([source.start(), ...quorum])
  return { one: one!, quorum: others }
}

function usesQuorum(source: string): boolean {
  return source.search(quorumHosts) >= 0
}

/** Chooses the lane of each program: each page goes to the lane with the least work so far. */
function shareOut(programs: readonly Program[]): (program: Program) => number {
  const lanes = new Map<string, number>()
  const loads = Array.from({ length: LANES }, () => 0)
  for (const page of new Set(programs.map(program => program.page))) {
    const lane = loads.indexOf(Math.min(...loads))
    lanes.set(page, lane)
    loads[lane]! += programs.filter(program => program.page === page).length
  }
  return ({ page }) => lanes.get(page)!
}

function toBeRun({ work }: Program): boolean {
  return work.kind === 'script' || (work.kind === 'module' && !work.typesOnly)
}

function jobOf({ page, blocks, work }: Program, id: number, folder: string, { one, quorum }: Servers): Job {
  const name = basename(page)
  if (work.kind !== 'script' && work.kind !== 'module') return { id, name }
  const { host, port } = new URL(one.url)
  const source = work.source
    .replace(/\b(?:127\.0\.0\.1|localhost):6379\b/g, host)
    .replace(/\bport: 6379\b/g, `port: ${port}`)
    .replace(quorumHosts, (_, letter: string) => new URL(quorum['abcde'.indexOf(letter)]!.url).host)
  const others = usesQuorum(work.source) ? quorum.map(({ url }) => url) : []
  if (work.kind === 'script') return { id, name, script: source, others }
  const module = join(folder, `${page.replaceAll('/', '.')}.${blocks[0]!.line}.ts`)
  writeFileSync(module, source)
  return { id, name, module, others }
}

/**
 * Writes the compiler's settings: the project's settings without three rules of style (`tidiness`). If a program
 * imports the package, `paths` leads the compiler to the source files of this project.
 */
function writeSettings(folder: string): string {
  const paths = Object.fromEntries(entries.map(({ name, source }) => [name, [`../../../${source}`]]))
  const tidiness = { noUnusedLocals: false, noUnusedParameters: false, noPropertyAccessFromIndexSignature: false }
  const compilerOptions = { ...tidiness, paths, moduleDetection: 'force' }
  const settings = join(folder, 'tsconfig.json')
  writeFileSync(settings, JSON.stringify({ extends: '../../../tsconfig.json', compilerOptions, include: ['*.ts'] }))
  writeFileSync(join(folder, 'globals.d.ts'), declarations)
  return settings
}

/** Returns the compiler's output, one line for each error. */
function compile(settings: string): Promise<string[]> {
  const tsc = fileURLToPath(new URL('node_modules/typescript/bin/tsc', root))
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [tsc, '-p', settings, '--pretty', 'false'], { maxBuffer: 2 ** 26 }, (error, output) => {
      const lines = output.split('\n').filter(line => / error TS\d+: /.test(line))
      if (error && lines.length === 0) reject(error)
      else resolve(lines)
    })
  })
}

function runLane(file: string, url: string, jobs: readonly Job[], settings: string): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  writeFileSync(file, JSON.stringify({ url, jobs }))
  const child = fork(fileURLToPath(new URL('lane.ts', import.meta.url)), [file], {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, TSX_TSCONFIG_PATH: settings },
    timeout: LIMIT,
    killSignal: 'SIGKILL',
  })
  child.on('message', outcome => outcomes.push(outcome as Outcome))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => resolve(outcomes))
  })
}

function resultOf(program: Program, { module }: Job, types: string[], outcome: Outcome | undefined): Result {
  const { work } = program
  const problems = work.kind === 'unusable' ? [work.why] : []
  if (module !== undefined) {
    const mine = types.filter(line => resolve(line.replace(/\(\d+,\d+\): error TS.*/, '')) === module)
    problems.push(...mine.map(line => `${program.page}${line.slice(line.indexOf('('))}`))
  }
  if (outcome?.error !== undefined) problems.push(asOnPage(outcome.error, program, module))
  if (!outcome && toBeRun(program)) problems.push('it was not run: the process that runs the blocks had ended before')
  return { problems, output: outcome?.output ?? '' }
}

/**
 * Returns the error with the page's name instead of the generated module's name, and without the lines that do not
 * concern the page.
 */
function asOnPage(error: string, { page }: Program, module: string | undefined): string {
  const lines = (module ? error.replaceAll(pathToFileURL(module).href, page).replaceAll(module, page) : error).split(
    '\n',
  )
  const last = lines.findLastIndex(line => line.includes(`${page}:`))
  return lines.slice(0, last < 0 ? undefined : last + 1).join('\n')
}
