/**
 * The soak: processes use locks in every way while everything around them fails. At the end, the checker judges what
 * the processes have recorded.
 *
 *   npm run soak -- --minutes 10 --seed 7        the seed determines the order of faults and choices, not their timing
 *   npm run soak -- --quorum 5                   the locks are mutexes over 5 servers
 *   npm run soak -- --quorum 5 --dead            two of them are dead all the time
 *   npm run soak -- --quorum 5 --disks-lost      restarted servers are empty, but claim to persist: the run must fail
 *   npm run soak -- --check history.jsonl        the verdict on a stored history
 *
 * A run without a violation exits with 0 and leaves nothing behind. Any other run exits with 1, prints its seed and the
 * last events of the violated key, and keeps its history.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { check } from '../check.ts'
import type { HistoryEvent } from '../events.ts'
import { now, readEvents } from '../recorder.ts'
import { Director } from './director.ts'
import { Eyes } from './eyes.ts'
import { kindNames } from './plan.ts'
import { reportLines } from './report.ts'
import { Stage } from './stage.ts'
import { keyNames, type Terms, timesOf } from './terms.ts'

/** Time between two progress reports, in ms. */
const PROGRESS = 10_000
const SIZES = [3, 5, 7]

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    quorum: { type: 'string' },
    keys: { type: 'string' },
    processes: { type: 'string' },
    dead: { type: 'boolean', default: false },
    'disks-lost': { type: 'boolean', default: false },
    check: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})

function number(name: 'minutes' | 'seed' | 'quorum' | 'keys' | 'processes', least: number, usual: number): number {
  const value = values[name] ?? String(usual)
  const parsed = Number(value)
  if (value !== '' && parsed >= least && (name === 'minutes' || Number.isInteger(parsed))) return parsed
  return refuse(name, `a number from ${least}`)
}

function refuse(name: keyof typeof values, accepted: string): never {
  console.error(`--${name} is ${JSON.stringify(values[name])}; accepted: ${accepted}`)
  process.exit(64)
}

/** Returns the number of servers of the locks. */
function serverCount(): number {
  if (values.quorum === undefined) return 1
  const servers = number('quorum', 3, 3)
  return SIZES.includes(servers) ? servers : refuse('quorum', SIZES.join(', '))
}

async function judge(file: string): Promise<boolean> {
  const events: HistoryEvent[] = []
  for await (const event of readEvents(file)) events.push(event)
  const verdict = check(events)
  const run = events.find(event => event.kind === 'run')
  for (const line of reportLines(verdict, events, run?.seed ?? 0, kindNames(run?.servers ?? 1))) console.log(line)
  return verdict.violations.length === 0
}

async function play(terms: Terms): Promise<readonly string[]> {
  const start = now()
  const stage = await Stage.open(terms)
  // If the run is interrupted, end its processes. Otherwise a process that a fault has stopped would outlive the run.
  process.once('exit', () => stage.abandon())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const { seed, servers, times } = terms
  const { waiterTtl, longestLease, outageTimeout } = times
  stage.recorder.record('run', { seed, waiterTtl, longestLease, outageTimeout, ...(servers > 1 && { servers }) })
  const director = new Director(stage, terms)
  const eyes = new Eyes(stage)
  const progress = setInterval(() => {
    console.log(`${String(Math.round((now() - start) / 1000)).padStart(4)} s  ${director.faults} faults so far`)
  }, PROGRESS)
  try {
    eyes.open()
    await director.play()
  } finally {
    clearInterval(progress)
    eyes.close()
    await stage.close()
  }
  return director.failures
}

async function soak(): Promise<boolean> {
  const servers = serverCount()
  const one = servers === 1
  if (one && values.dead) refuse('dead', 'only with --quorum')
  const count = number('keys', 1, one ? 40 : 12)
  const terms: Terms = {
    minutes: number('minutes', 0, 10),
    seed: number('seed', 0, Math.floor(Math.random() * 2 ** 31)),
    keys: keyNames(count, one ? undefined : ['mutex']),
    servers,
    dead: values.dead,
    disksLost: values['disks-lost'],
    // Each server of a quorum adds to the machine's work, so a quorum run has fewer processes.
    processes: number('processes', 1, one ? 6 : 4),
    callers: one ? 10 : 5,
    folder: mkdtempSync(join(tmpdir(), 'baton-soak-')),
    times: timesOf(servers),
  }
  const history = join(terms.folder, 'history.jsonl')
  const over = one ? '' : ` over ${servers} servers${values.dead ? ', a minority of them dead' : ''}`
  console.log(`soak: ${terms.minutes} min, ${terms.processes} processes, ${count} keys${over}, seed ${terms.seed}`)
  const start = now()
  const failures = await play(terms)
  const clean = await judge(history)
  for (const failure of failures) console.log(`a fault could not be played: ${failure}`)
  const good = clean && failures.length === 0
  console.log(`${good ? 'passed' : 'FAILED'}: seed ${terms.seed}, ${Math.round((now() - start) / 1000)} s`)
  if (good && !values.keep) rmSync(terms.folder, { recursive: true })
  else console.log(`history: ${history}`)
  return good
}

const good = values.check === undefined ? await soak() : await judge(values.check)
process.exitCode = good ? 0 : 1
