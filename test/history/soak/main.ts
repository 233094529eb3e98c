/**
 * The soak: processes that use locks in every way while everything around them fails, and a verdict on what they recorded.
 *
 *   npm run soak -- --minutes 10 --seed 7        the faults and choices of a run follow from its seed (not their timing)
 *   npm run soak -- --check history.jsonl        the verdict on a history that was kept
 *
 * A run without a violation ends with 0 and leaves nothing; another ends with 1, names its seed, shows the last events of
 * the key concerned and keeps its history.
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
import { keyFaults } from './key-faults.ts'
import { processFaults } from './process-faults.ts'
import { reportLines } from './report.ts'
import { serverFaults } from './server-faults.ts'
import { Stage } from './stage.ts'
import { LONGEST_LEASE, OUTAGE_TIMEOUT, type Terms, WAITER_TTL } from './terms.ts'

const kinds = [processFaults, serverFaults, keyFaults].flatMap(Object.keys)

/** Between two lines of progress, ms. */
const PROGRESS = 10_000

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    keys: { type: 'string', default: '40' },
    processes: { type: 'string', default: '6' },
    check: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})

function number(name: 'minutes' | 'seed' | 'keys' | 'processes', value: string, least: number): number {
  const parsed = Number(value)
  if (value !== '' && parsed >= least && (name === 'minutes' || Number.isInteger(parsed))) return parsed
  console.error(`--${name} is ${JSON.stringify(value)}; accepted: a number from ${least}`)
  process.exit(64)
}

async function judge(file: string): Promise<boolean> {
  const events: HistoryEvent[] = []
  for await (const event of readEvents(file)) events.push(event)
  const verdict = check(events)
  const seed = events.find(event => event.kind === 'run')?.seed ?? 0
  for (const line of reportLines(verdict, events, seed, kinds)) console.log(line)
  return verdict.violations.length === 0
}

async function play(terms: Terms): Promise<readonly string[]> {
  const start = now()
  const stage = await Stage.open(terms)
  // A process that a fault has stopped would outlive an interrupted run.
  process.once('exit', () => stage.abandon())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  stage.recorder.record('run', {
    seed: terms.seed,
    waiterTtl: WAITER_TTL,
    longestLease: LONGEST_LEASE,
    outageTimeout: OUTAGE_TIMEOUT,
  })
  const eyes = new Eyes(stage)
  const director = new Director(stage, terms)
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
  const terms: Terms = {
    minutes: number('minutes', values.minutes, 0),
    seed: number('seed', values.seed ?? String(Math.floor(Math.random() * 2 ** 31)), 0),
    keys: number('keys', values.keys, 1),
    processes: number('processes', values.processes, 1),
    folder: mkdtempSync(join(tmpdir(), 'baton-soak-')),
  }
  const history = join(terms.folder, 'history.jsonl')
  console.log(`soak: ${terms.minutes} min, ${terms.processes} processes, ${terms.keys} keys, seed ${terms.seed}`)
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
