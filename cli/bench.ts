/** `baton bench` compares locks under contention. benchmarks/run.ts says what is measured, and how. */
import { writeFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Results, takesPart } from '../benchmarks/contract.ts'
import type { Progress } from '../benchmarks/report/progress.ts'
import { scenarios } from '../benchmarks/scenarios.ts'
import { messageOf } from '../local-redis/error-message.ts'
import { namedServer } from './address.ts'
import { urlOption } from './connection.ts'
import { exitCodes, Failure } from './failure.ts'
import { reachServer } from './reach.ts'
import { exitCodeOf, onEnding } from './signals.ts'

interface Options {
  scenario: string[]
  rival: string[]
  quick?: true
  all?: true
  rounds?: number
  seconds?: number
  rtt: number
  warmCores: boolean
  url?: readonly string[]
  json?: string
  html?: string
}

/** How many rounds there are, and how many seconds each measurement takes. `short`: with --quick. */
const usual = { rounds: 3, seconds: 2 }
const short = { rounds: 1, seconds: 1 }

export function addBench(program: Command): void {
  const competing = new Option('--rival <names>', 'names of the locks to compare, separated by commas')
    .argParser(collect)
    .default([], 'those of --quick')
  const command = program
    .command('bench')
    .description('measures locks under contention, side by side: latency, throughput, cost, fairness')
    .addOption(
      new Option(
        '--quick',
        'measure for less than 90 s: one round of the most important scenarios, without most locks of other packages (default)',
      ).conflicts('all'),
    )
    .option('--all', 'measure every scenario and every lock')
    .addOption(new Option('--scenario <names>', namesOf(scenarios)).argParser(collect).default([], 'those of --quick'))
    .addOption(competing)
    .option(
      '--rounds <n>',
      `number of rounds; each lock is measured once per round; use at least 3 to see how much the figures vary (default: ${usual.rounds}, of --quick ${short.rounds})`,
      atLeast(1, true),
    )
    .option(
      '--seconds <s>',
      `how long callers acquire and release a lock in each measurement, in seconds (default: ${usual.seconds}, of --quick ${short.seconds})`,
      atLeast(0.1),
    )
    .option('--rtt <ms>', 'round-trip delay to add between clients and server, in ms', atLeast(0), 0)
    .option('--no-warm-cores', 'do not keep idle cores awake; each wake-up then takes 50 to 100 µs longer')
    .addOption(
      urlOption(
        'address of one server, not of a cluster (default: $REDIS_URL, else a server started for the benchmark)',
      ),
    )
    .option('--json <file>', 'file to write the raw results to, as JSON')
    .option('--html <file>', 'file to write a page with plots to, as HTML')
    .addHelpText(
      'after',
      `
Examples:
  baton bench
  baton bench --scenario 2x8-hold5
  baton bench --rival baton-fair,redlock --scenario 2x8 --rounds 1
  baton bench --all --json results.json --html results.html

A run says at its beginning how long it will take. With --all, it takes 30 to 40
minutes, and with all locks of other packages 90 minutes or more. With
--scenario or --rival, what is not named is everything, in three rounds, unless
--quick is given too. Locks of other packages are measured if the package is
installed in the current folder. Missing packages are listed at the end.
Scenarios on several servers (quorum-…) start their own servers, so they run
only without --url. A server that you give by --url keeps its data: baton
removes only its own keys. If a lock fails or hangs in a scenario, it is left
out of the later rounds of that scenario. Ctrl-C ends the run, and shows and
writes the results so far. A second Ctrl-C ends the run immediately, without
results. If stdout is not a terminal, progress is printed to stderr.`,
    )
    .action(async (options: Options) => {
      process.exitCode = await bench(options)
    })
  // The rivals' adapters are loaded only when this command runs or its help is shown.
  program.hook('preSubcommand', async (_, subcommand) => {
    if (subcommand !== command) return
    const { rivals } = await import('../benchmarks/rivals/index.ts')
    competing.description = namesOf(rivals)
  })
}

async function bench({ scenario, rival, url: given, ...options }: Options): Promise<number> {
  const [{ rivals }, { run }, { openProgress, roughly }, { quick, hurried, lengthOf }] = await Promise.all([
    import('../benchmarks/rivals/index.ts'),
    import('../benchmarks/run.ts'),
    import('../benchmarks/report/progress.ts'),
    import('../benchmarks/harness/plan.ts'),
  ])
  const isQuick = options.quick ?? !(options.all || scenario.length > 0 || rival.length > 0)
  const chosen = choose('scenario', scenario, scenarios, isQuick ? quick.scenarios : undefined)
  const named = choose('rival', rival, rivals, isQuick ? quick.rivals : undefined)
  const competing = isQuick && rival.length === 0 ? named.map(hurried) : named
  const idle = competing.find(one => !chosen.some(each => takesPart(one, each)))
  if (rival.length > 0 && idle)
    throw new Failure(
      `${idle.name} cannot run in any of these scenarios; choose others with --scenario`,
      exitCodes.usage,
    )
  const address = namedServer(given, 'baton bench')
  if (address?.tls && options.rtt > 0)
    throw new Failure(
      '--rtt cannot add a delay to a TLS connection; leave --rtt out, or give an address that begins with redis://',
      exitCodes.usage,
    )
  // If the server cannot be used, this call reports the reason within seconds.
  if (address) (await reachServer(address)).disconnect()

  const progress = openProgress(process.stdout, process.stderr, process.env)
  const interruption = new AbortController()
  const interrupt = (name: NodeJS.Signals) => {
    if (interruption.signal.aborted) process.exit(exitCodeOf(name))
    interruption.abort(name)
  }
  const stopListening = onEnding(interrupt)
  try {
    const { rounds, seconds, rtt, warmCores } = { ...(isQuick ? short : usual), ...options }
    const plan = { rounds, seconds, rtt, warmCores, url: address?.url, scenarios: chosen, rivals: competing }
    const more = isQuick ? '; --all measures more' : ''
    process.stderr.write(`This takes about ${roughly(await lengthOf(plan))}${more}.\n`)
    const results = await run(plan, progress, interruption.signal)
    await show(results, options, progress)
    // If the run was interrupted, its results so far are shown before the interruption is reported.
    interruption.signal.throwIfAborted()
    return 0
  } catch (error) {
    progress.end()
    if (error instanceof Failure) throw error
    const { aborted, reason } = interruption.signal
    throw aborted
      ? new Failure(`the run was interrupted by ${reason}`, exitCodeOf(reason))
      : new Failure(messageOf(error), exitCodes.unavailable)
  } finally {
    stopListening()
  }
}

async function show(results: Results, { json, html }: Partial<Options>, progress: Progress): Promise<void> {
  progress.end()
  const { goalsTable, tables, wrapped } = await import('../benchmarks/report/table.ts')
  const { cpu, cores, redis, node, system } = results.machine
  console.log(wrapped(`${cores} × ${cpu}, ${system}, Node ${node}, ${redis}`))
  console.log(`\n${tables(results)}\n`)
  if (results.goals?.length) console.log(`${goalsTable(results)}\n`)
  for (const note of results.notes) console.log(wrapped(`* ${note}`))
  try {
    if (json) await writeFile(json, `${JSON.stringify(results, null, 1)}\n`)
    if (html) await writeFile(html, (await import('../benchmarks/report/html.ts')).htmlReport(results))
  } catch (error) {
    throw new Failure(messageOf(error), exitCodes.notWritten)
  }
  console.log(`\nA page with plots${html ? `: ${pathToFileURL(html).href}` : ' and p99: add --html <file>'}`)
  console.log('What the figures mean, and how they could mislead:')
  console.log('https://github.com/redis-baton/redis-baton/blob/main/docs/benchmarks.md')
}

/** Returns the named items in the order of the list, each once. If no name is given, the names are `otherwise`. */
function choose<T extends { readonly name: string }>(
  what: string,
  names: readonly string[],
  all: readonly T[],
  otherwise: readonly string[] = all.map(({ name }) => name),
): readonly T[] {
  const unknown = names.find(name => all.every(one => one.name !== name))
  if (unknown !== undefined) {
    throw new Failure(`option '--${what}' does not accept '${unknown}'; there are ${namesOf(all)}`, exitCodes.usage)
  }
  const wanted = names.length === 0 ? otherwise : names
  return all.filter(({ name }) => wanted.includes(name))
}

/** Adds the names in `value`, a list with commas, to the names from earlier uses of the option. */
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
