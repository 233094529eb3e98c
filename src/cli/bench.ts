/** `baton bench`: locks under contention, side by side. What is measured and how: src/bench/run.ts. */
import { writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { type Command, InvalidArgumentError } from 'commander'
import { closest } from 'fastest-levenshtein'
import type { Results } from '../bench/contract.ts'
import { htmlReport } from '../bench/report/html.ts'
import { openProgress, type Progress } from '../bench/report/progress.ts'
import { tables } from '../bench/report/table.ts'
import { rivals } from '../bench/rivals/index.ts'
import { run } from '../bench/run.ts'
import { scenarios } from '../bench/scenarios.ts'

/** Exit codes; an interrupted run ends with 128 + the signal's number. */
const usage = 64
const unavailable = 69
const notWritten = 73

interface Options {
  scenario: string[]
  rival: string[]
  rounds: number
  seconds: number
  rtt: number
  warmCores: boolean
  url?: string
  json?: string
  html?: string
}

export function addBench(program: Command): void {
  program
    .command('bench')
    .description('locks under contention, side by side: latency, throughput, cost, fairness')
    .option('--scenario <names>', `${namesOf(scenarios)} (default: all)`, collect, [])
    .option('--rival <names>', `${namesOf(rivals)} (default: all)`, collect, [])
    .option('--rounds <n>', 'times each rival has its turn; of fewer than 3 the range says little', atLeast(1, true), 3)
    .option('--seconds <s>', 'measured part of a loop', atLeast(0.1), 2)
    .option('--rtt <ms>', 'network delay between clients and server, there and back', atLeast(0), 0)
    .option('--no-warm-cores', 'let idle cores sleep, which costs 50 to 100 µs at each wake-up')
    .option('--url <url>', 'Redis to use (default: $REDIS_URL, else a server that is started for this)')
    .option('--json <file>', 'write the raw results')
    .option('--html <file>', 'write a page with plots')
    .action(async (options: Options) => {
      process.exitCode = await bench(options)
    })
}

async function bench({ scenario, rival, url = process.env['REDIS_URL'], ...options }: Options): Promise<number> {
  const chosen = choose('scenario', scenario, scenarios)
  if (typeof chosen === 'string') return complain(chosen, usage)
  const competing = choose('rival', rival, rivals)
  if (typeof competing === 'string') return complain(competing, usage)
  // The value is not quoted: a mistyped address still has its password.
  if (url && !isAddress(url)) return complain('--url is not an address of the form redis://host:port', usage)
  if (url?.startsWith('rediss:') && options.rtt > 0) return complain('--rtt does not work with TLS', usage)

  const progress = openProgress(process.stdout, process.env)
  const interruption = new AbortController()
  const interrupt = (name: NodeJS.Signals) => {
    if (interruption.signal.aborted) process.exit(128 + constants.signals[name])
    interruption.abort(name)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const name of signals) process.on(name, interrupt)
  try {
    const plan = { ...options, url: url || undefined, scenarios: chosen, rivals: competing }
    const results = await run(plan, progress, interruption.signal)
    return await show(results, options, progress)
  } catch (error) {
    progress.end()
    const { aborted, reason } = interruption.signal
    if (aborted) return complain(`Interrupted by ${reason}`, 128 + constants.signals[reason as NodeJS.Signals])
    return complain(messageOf(error), unavailable)
  } finally {
    for (const name of signals) process.off(name, interrupt)
  }
}

async function show(results: Results, { json, html }: Partial<Options>, progress: Progress): Promise<number> {
  progress.end()
  const { cpu, cores, redis, node, system } = results.machine
  console.log(`${cores} × ${cpu}, ${system}, Node ${node}, ${redis}`)
  console.log(`\n${tables(results)}\n`)
  for (const note of results.notes) console.log(`* ${note}`)
  try {
    if (json) await writeFile(json, `${JSON.stringify(results, null, 1)}\n`)
    if (html) await writeFile(html, htmlReport(results))
  } catch (error) {
    return complain(messageOf(error), notWritten)
  }
  return 0
}

/** Those named, in the order of the list and each once; all when none is. Otherwise what to say about it. */
function choose<T extends { readonly name: string }>(
  what: string,
  names: readonly string[],
  all: readonly T[],
): readonly T[] | string {
  const known = all.map(({ name }) => name)
  const unknown = names.find(name => !known.includes(name))
  if (unknown !== undefined) return `There is no ${what} '${unknown}'. Did you mean '${closest(unknown, known)}'?`
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name))
}

/** Repeatable, and each time a list with commas. */
function collect(value: string, before: string[]): string[] {
  return [...before, ...value.split(',').map(name => name.trim())]
}

function atLeast(least: number, whole = false): (value: string) => number {
  return value => {
    const number = Number(value)
    if (value.trim() === '' || !(number >= least) || !Number.isFinite(number) || (whole && !Number.isInteger(number))) {
      throw new InvalidArgumentError(`It must be ${whole ? 'an integer' : 'a number'} of at least ${least}.`)
    }
    return number
  }
}

function namesOf(all: readonly { readonly name: string }[]): string {
  return all.map(({ name }) => name).join(', ')
}

function isAddress(url: string): boolean {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' }
  return hostname !== '' && ['redis:', 'rediss:'].includes(protocol)
}

function complain(message: string, exitCode: number): number {
  console.error(message)
  return exitCode
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
