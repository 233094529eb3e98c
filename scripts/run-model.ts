/**
 * Checks spec/baton.pml with Spin: the protocol as it is must pass every configuration to the last state, and every
 * mutant, which is the protocol without one of its rules, must be refuted for the reason that is named here.
 *
 *   npm run model                          everything; about a minute on two free cores
 *   npm run model -- --trail no-timer      a short story that refutes one mutant (or breaks one configuration)
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

/** What the checker prints where a property is violated. */
const violations = {
  I1: /assertion violated \(holders<=1\)/,
  I3: /assertion violated\s+!\(+k!=/,
  I4: /acceptance cycle/,
} as const

type Property = keyof typeof violations

interface Subject {
  readonly name: string
  /** Without the leading -D. PROGRESS: also checks I4, which costs three times as much as I1 and I3. */
  readonly defines: readonly string[]
}

interface Mutant extends Subject {
  readonly breaks: Property
  readonly because: string
}

const of = (name: string, defines: string): Subject => ({ name, defines: defines.split(' ') })

/**
 * The most expensive ones first, so that no core is idle at the end. Unless FAIR says otherwise, two of three are fair. A
 * fault may also not happen: so "one and a lost message" searches all of "one", and all of "a lost message".
 */
const configurations: readonly Subject[] = [
  of('a waiter gives up, a lost message', 'PROGRESS QUITS=1 LOSSES=1'),
  of('leases lapse: paused holder, slow message', 'LATES=1 LAPSES=1'),
  of('a request runs twice, a lost message', 'PROGRESS REPEATS=1 LOSSES=1'),
  of('all fair, one unreachable', 'PROGRESS FAIR=7 CUTS=1'),
  of('all fair, a crash', 'PROGRESS FAIR=7 CRASHES=1'),
  of('a crash, a lost message', 'PROGRESS CRASHES=1 LOSSES=1'),
  of('all data lost', 'PROGRESS WIPES=1 WIPE_ALL UNGUARDED'),
  of('all fair, a lost message', 'PROGRESS FAIR=7 LOSSES=1'),
  of('a paused holder', 'PROGRESS LATES=1'),
  of('two crashes', 'PROGRESS CRASHES=2'),
  of('the queue lost', 'PROGRESS WIPES=1'),
  of('one unreachable', 'PROGRESS CUTS=1'),
  of('one fair, force-release', 'PROGRESS FAIR=1 FORCES=1 UNGUARDED'),
  of('one fair, two lost messages', 'PROGRESS FAIR=1 LOSSES=2'),
  of('none fair, two lost messages', 'PROGRESS FAIR=0 LOSSES=2'),
]

const mutants: readonly Mutant[] = [
  {
    ...of('no-timer', 'PROGRESS LOSSES=1 NO_TIMER'),
    breaks: 'I4',
    because: 'the message of a grant is lost; its waiter never looks, so it holds without knowing and all others wait',
  },
  {
    ...of('no-handback', 'PROGRESS QUITS=1 NO_HANDBACK'),
    breaks: 'I4',
    because: 'a grant crosses its waiter giving up; nobody holds, and only the end of the lease would free the lock',
  },
  {
    ...of('publish-first', 'PUBLISH_FIRST'),
    breaks: 'I1',
    because: 'between message and write the lock looks free: a newcomer takes it, and the waiter believes the message',
  },
  {
    ...of('unowned-release', 'LAPSES=1 UNOWNED_RELEASE'),
    breaks: 'I1',
    because:
      'a release runs after its lease has lapsed and ends the hold of the next, so somebody else gets the lock beside it',
  },
  {
    ...of('believe-old', 'LAPSES=1 BELIEVE_OLD'),
    breaks: 'I1',
    because: 'a late message tells of a grant that has lapsed, to a waiter that has joined again and just looked',
  },
  {
    ...of('believe-late', 'LAPSES=1 BELIEVE_LATE'),
    breaks: 'I1',
    because: 'a message is under way for longer than the lease; its waiter does not look before it uses the grant',
  },
  {
    ...of('ignore-reply', 'PROGRESS REPEATS=1 IGNORE_REPLY'),
    breaks: 'I4',
    because: 'a tend that is sent again runs after the release and gets the lock for a wait that is over',
  },
  {
    ...of('ignore-refusal', 'PROGRESS REPEATS=1 LOSSES=1 IGNORE_REFUSAL'),
    breaks: 'I4',
    because: 'the same, but it is only queued again; then it gets the lock by a message, and that is lost',
  },
  {
    ...of('barge', 'CRASHES=1 BARGE'),
    breaks: 'I3',
    because: 'a lease lapses with a waiter queued; an unfair newcomer that does not look at the queue is faster',
  },
  {
    ...of('new-ticket', 'CUTS=1 NEW_TICKET'),
    breaks: 'I3',
    because: 'a waiter that was unreachable for a moment joins again behind those that came after it',
  },
]

const model = fileURLToPath(new URL('../spec/baton.pml', import.meta.url))
const checkWithinMs = 600_000

interface Tools {
  readonly spin: Spin
  readonly cc: string
}

/**
 * full: every state, fast. quick: for a mutant, whose accident is found long before a good optimizer would be done.
 * short: goes on to shorter counterexamples.
 */
type Manner = 'full' | 'quick' | 'short'

const manners: Readonly<Record<Manner, { readonly compile: readonly string[]; readonly run: readonly string[] }>> = {
  full: { compile: ['-O2'], run: ['-w23', '-m10000'] },
  quick: { compile: ['-O0'], run: ['-w20', '-m10000'] },
  short: { compile: ['-O1', '-DREACH'], run: ['-w23', '-m300', '-i'] },
}

interface Outcome {
  readonly printed: string
  readonly errors: number
  readonly states: number
  /** Whether the search saw every state that there is. */
  readonly complete: boolean
  readonly seconds: number
}

/** Runs a command in a folder; answers what it printed. */
function runIn(folder: string, file: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd: folder, timeout: checkWithinMs, maxBuffer: 64 * 1024 * 1024 }
    execFile(file, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${file} ${args.join(' ')}: ${error.message}\n${stdout}${stderr}`))
      else resolve(stdout)
    })
  })
}

async function check({ spin, cc }: Tools, { defines }: Subject, folder: string, manner: Manner): Promise<Outcome> {
  const progress = defines.includes('PROGRESS')
  const { compile, run } = manners[manner]
  await copyFile(model, join(folder, 'baton.pml'))
  await runIn(folder, spin.binary, [...defines.map(define => `-D${define}`), '-a', 'baton.pml'])
  // The processes share all they have, so partial-order reduction would find nothing and cost time. NOFAIR: the model
  // needs no fairness, because looks that change nothing are not steps in it.
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

interface Row {
  readonly cells: readonly string[]
  readonly asExpected: boolean
  readonly note?: string
}

const story = (name: string) => `the story: npm run model -- --trail '${name}'`

async function configurationRow(tools: Tools, subject: Subject, folder: string): Promise<Row> {
  const { name, defines } = subject
  const { printed, errors, states, complete, seconds } = await check(tools, subject, folder, 'full')
  const asExpected = errors === 0 && complete
  const broken = Object.entries(violations).filter(([, pattern]) => pattern.test(printed))
  const found = broken.map(([property]) => property).join(' ') || 'something else'
  const verdict = asExpected ? 'holds' : errors > 0 ? `BROKEN: ${found}` : 'INCOMPLETE'
  const checked = [defines.includes('UNGUARDED') ? '' : 'I1', 'I3', defines.includes('PROGRESS') ? 'I4' : '']
  const note = errors > 0 ? `${name}: ${verdict}\n    ${story(name)}` : `${name}: ${defines.join(' ')}\n${printed}`
  return {
    cells: [name, checked.filter(Boolean).join(' '), 'holds', `${states}`, `${seconds.toFixed(1)} s`, verdict],
    asExpected,
    ...(asExpected ? {} : { note }),
  }
}

async function mutantRow(tools: Tools, mutant: Mutant, folder: string): Promise<Row> {
  const { printed, errors, states, seconds } = await check(tools, mutant, folder, 'quick')
  const { name, breaks, because } = mutant
  const asExpected = errors > 0 && violations[breaks].test(printed)
  const verdict = asExpected ? 'refuted' : errors > 0 ? 'REFUTED OTHERWISE' : 'NOT REFUTED'
  return {
    cells: [name, breaks, 'refuted', `${states}`, `${seconds.toFixed(1)} s`, verdict],
    asExpected,
    note: asExpected ? `${name}: ${because}\n    ${story(name)}` : `${name}\n${printed}`,
  }
}

/** Runs the jobs, a few at a time, and answers their results in the order of the jobs. */
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

/** Prints a short counterexample, step by step; false: there is none. */
async function tell(tools: Tools, name: string): Promise<boolean> {
  const subjects: readonly (Subject & Partial<Mutant>)[] = [...mutants, ...configurations]
  const subject = subjects.find(each => each.name === name)
  if (!subject) throw new Error(`nothing is named "${name}"; there are ${subjects.map(each => each.name).join(' · ')}`)
  const { defines, breaks, because } = subject
  const trail = await inFolder(async folder => {
    const { errors } = await check(tools, subject, folder, 'short')
    if (errors === 0) return ''
    return runIn(folder, tools.spin.binary, [...defines.map(define => `-D${define}`), '-t', 'baton.pml'])
  })
  if (!trail) {
    console.log(`${name}: no counterexample`)
    return false
  }
  console.log(breaks ? `${name} breaks ${breaks}: ${because}.\n` : `${name}:\n`)
  let violated = 'I4 is violated: from here on nobody holds, and somebody waits, for ever.'
  for (const line of trail.split('\n')) {
    const step = /^\s*(redis: .*|client .*|lost: .*)$/.exec(line)?.[1]
    if (step) console.log(/^redis: (\w+ of|the) |^client /.test(step) ? step : `    ${step}`)
    const failed = /text of failed assertion: assert\((.*)\)/.exec(line)?.[1]
    if (failed) violated = failed.includes('holders<=1') ? 'I1 is violated.' : 'I3 is violated.'
  }
  console.log(violated)
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
