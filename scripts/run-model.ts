/**
 * Checks the models of spec/ with Spin. In every configuration, the search must cover all states of the protocol and
 * find no error. A mutant is the protocol without one of its rules. In every mutant, Spin must find a violation of the
 * property that models.ts names.
 *
 *   npm run model                          everything; about three minutes on two free cores
 *   npm run model -- --trail no-timer      a short counterexample for one mutant (or for a failing configuration)
 *
 * Needs a C compiler, and Spin (find-spin.ts). Works in a temporary folder. The exit code is 1 if anything is not as
 * expected.
 */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import which from 'which'
import { findSpin, type Spin } from './find-spin.ts'
import { type Model, type Mutant, models, type Property, type Subject } from './models.ts'

const spec = fileURLToPath(new URL('../spec/', import.meta.url))
const checkWithinMs = 600_000

interface Tools {
  readonly spin: Spin
  readonly cc: string
}

type Of<S> = S & { readonly model: Model }

/**
 * - full: searches every state, with an optimizing compiler.
 * - quick: compiles without optimization. Used for mutants, because a mutant's error is usually found before an
 *   optimizing compiler would be done.
 * - short: continues until it has found the shortest counterexample.
 */
type Manner = 'full' | 'quick' | 'short'

const manners: Readonly<Record<Manner, { readonly compile?: readonly string[]; readonly run: readonly string[] }>> = {
  full: { run: ['-w23', '-m10000'] },
  quick: { compile: ['-O0'], run: ['-w20', '-m10000'] },
  short: { compile: ['-O1', '-DREACH'], run: ['-w23', '-m300', '-i'] },
}

interface Outcome {
  readonly printed: string
  readonly errors: number
  readonly states: number
  /** Whether the search covered every state. */
  readonly complete: boolean
  readonly seconds: number
}

function runIn(folder: string, file: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd: folder, timeout: checkWithinMs, maxBuffer: 64 * 1024 * 1024 }
    execFile(file, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${file} ${args.join(' ')}: ${error.message}\n${stdout}${stderr}`))
      else resolve(stdout)
    })
  })
}

async function check({ spin, cc }: Tools, subject: Of<Subject>, folder: string, manner: Manner): Promise<Outcome> {
  const { defines, model } = subject
  const progress = defines.includes('PROGRESS')
  const { compile = [model.optimize], run } = manners[manner]
  await copyFile(join(spec, model.file), join(folder, model.file))
  await runIn(folder, spin.binary, [...defines.map(define => `-D${define}`), '-a', model.file])
  // NOREDUCE: the processes share all variables, so partial-order reduction would only cost time. NOFAIR: the checker
  // does not assume that each process gets its turn (fairness). The models need no such assumption, because no process
  // can repeat its steps for ever: a request that would change nothing is not a step.
  const flags = ['-w', '-DNOREDUCE', '-DMEMLIM=4000', progress ? '-DNOFAIR' : '-DSAFETY']
  await runIn(folder, cc, [...compile, ...flags, '-o', 'pan', 'pan.c'])
  const begin = performance.now()
  const printed = await runIn(folder, join(folder, 'pan'), ['-n', ...run, ...(progress ? ['-a'] : [])])
  const seconds = (performance.now() - begin) / 1000
  const number = (pattern: RegExp) => Number(pattern.exec(printed)?.[1] ?? Number.NaN)
  return {
    printed,
    errors: number(/errors: (\d+)/),
    states: number(/(\d+) states, stored/),
    complete:
      /Full statespace search/.test(printed) && !/not completed|too small|out of memory|truncated/i.test(printed),
    seconds,
  }
}

/** Returns the property to which the failed assertion belongs. */
function propertyOf(assertion: string, { assertions }: Model): Property | undefined {
  return (Object.keys(assertions) as Property[]).find(property => assertions[property]?.test(assertion))
}

/** Returns the violated property, according to the checker's output. */
function violated(printed: string, model: Model): Property | undefined {
  if (/acceptance cycle/.test(printed)) return 'I4'
  return propertyOf(/assertion violated (.*)/.exec(printed)?.[1] ?? '', model)
}

interface Row {
  readonly cells: readonly string[]
  readonly asExpected: boolean
  readonly note?: string
}

const story = (name: string) => `the story: npm run model -- --trail '${name}'`

async function configurationRow(tools: Tools, subject: Of<Subject>, folder: string): Promise<Row> {
  const { name, defines } = subject
  const { printed, errors, states, complete, seconds } = await check(tools, subject, folder, 'full')
  const asExpected = errors === 0 && complete
  const found = violated(printed, subject.model) ?? 'something else'
  const verdict = asExpected ? 'holds' : errors > 0 ? `BROKEN: ${found}` : 'INCOMPLETE'
  const shown = subject.model.shows.filter(property => property !== 'I1' || !defines.includes('UNGUARDED'))
  const checked = [...shown, ...(defines.includes('PROGRESS') ? ['I4'] : [])].sort()
  const note = errors > 0 ? `${name}: ${verdict}\n    ${story(name)}` : `${name}: ${defines.join(' ')}\n${printed}`
  return {
    cells: [name, checked.join(' '), 'holds', `${states}`, `${seconds.toFixed(1)} s`, verdict],
    asExpected,
    ...(asExpected ? {} : { note }),
  }
}

async function mutantRow(tools: Tools, mutant: Of<Mutant>, folder: string): Promise<Row> {
  const { printed, errors, states, seconds } = await check(tools, mutant, folder, 'quick')
  const { name, breaks, model } = mutant
  const asExpected = errors > 0 && violated(printed, model) === breaks
  const verdict = asExpected ? 'refuted' : errors > 0 ? 'REFUTED OTHERWISE' : 'NOT REFUTED'
  return {
    cells: [name, breaks, 'refuted', `${states}`, `${seconds.toFixed(1)} s`, verdict],
    asExpected,
    note: asExpected ? `${name}: ${story(name)}` : `${name}\n${printed}`,
  }
}

/** Runs the jobs, a few at a time, and returns their results in the order of the jobs. */
async function inParallel<T>(jobs: readonly (() => Promise<T>)[], width: number): Promise<T[]> {
  const results: T[] = []
  const pending = jobs.entries()
  const worker = async () => {
    for (const [i, job] of pending) results[i] = await job()
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-model-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const configurations = models.flatMap(model => model.configurations.map(each => ({ ...each, model })))
const mutants = models.flatMap(model => model.mutants.map(each => ({ ...each, model })))

/** Prints a short counterexample, step by step. Returns false if there is none. */
async function tell(tools: Tools, name: string): Promise<boolean> {
  const subjects: readonly Of<Subject & Partial<Mutant>>[] = [...mutants, ...configurations]
  const subject = subjects.find(each => each.name === name)
  if (!subject) throw new Error(`nothing is named "${name}"; there are ${subjects.map(each => each.name).join(' · ')}`)
  const { defines, breaks, model } = subject
  const trail = await inFolder(async folder => {
    const { errors } = await check(tools, subject, folder, 'short')
    if (errors === 0) return ''
    return runIn(folder, tools.spin.binary, [...defines.map(define => `-D${define}`), '-t', model.file])
  })
  if (!trail) {
    console.log(`${name}: no counterexample`)
    return false
  }
  console.log(breaks ? `${name} breaks ${breaks}:\n` : `${name}:\n`)
  // If several assertions fail in one step, the first one counts, because the checker stopped there.
  let broken: string | undefined
  for (const line of trail.split('\n')) {
    const step = /^\s*(redis: .*|client .*|lost: .*)$/.exec(line)?.[1]
    if (step) console.log(/^redis: (\w+ of|the) |^client /.test(step) ? step : `    ${step}`)
    const failed = /text of failed assertion: assert\((.*)\)/.exec(line)?.[1]
    if (failed) broken ??= `${propertyOf(failed, model)} is violated.`
  }
  console.log(broken ?? 'I4 is violated: from here on somebody waits, for ever, who could have the lock.')
  return true
}

async function findTools(): Promise<Tools> {
  const cc = (await which('cc', { nothrow: true })) ?? (await which('gcc', { nothrow: true }))
  if (!cc)
    throw new Error(
      'a C compiler is needed (Debian, Ubuntu: apt-get install gcc libc6-dev; macOS: xcode-select --install)',
    )
  return { spin: await findSpin(), cc }
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({ options: { trail: { type: 'string' } } })
  const tools = await findTools()
  if (values.trail !== undefined) return tell(tools, values.trail)

  const begin = performance.now()
  const jobs = [
    ...configurations.map(each => () => inFolder(folder => configurationRow(tools, each, folder))),
    ...mutants.map(each => () => inFolder(folder => mutantRow(tools, each, folder))),
  ]
  const rows = await inParallel(jobs, Math.min(4, Math.max(2, availableParallelism())))
  const table = new Table({
    head: ['name', 'property', 'expected', 'states', 'time', 'verdict'],
    colAligns: ['left', 'left', 'left', 'right', 'right', 'left'],
    style: { head: [], border: [] },
  })
  for (const { cells } of rows) table.push([...cells])
  console.log(`${table}`)
  for (const { note } of rows) if (note) console.log(note)
  console.log(`${tools.spin.version}; ${((performance.now() - begin) / 1000).toFixed(0)} s`)
  return rows.every(row => row.asExpected)
}

try {
  if (!(await main())) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
