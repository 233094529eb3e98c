/**
 * The soak: processes use locks in every way while everything around them fails. At the end, the checker judges what
 * the processes have recorded.
 *
 *   npm run soak -- --minutes 10 --seed 7        the seed determines the faults and choices of a run, not their timing
 *   npm run soak -- --quorum 5                   the locks are mutexes over 5 servers (quorum/scene.ts)
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
import { faultsOfOneServer, OneServer } from './one-server.ts'
import { faultsOfQuorum, QuorumScene } from './quorum/scene.ts'
import { QUORUM_TIMES } from './quorum/terms.ts'
import { reportLines } from './report.ts'
import { keyNames, type Terms, TIMES } from './terms.ts'

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

/** Returns the number of servers of the quorum; undefined for a single server. */
function quorum(): number | undefined {
  if (values.quorum === undefined) return undefined
  const servers = number('quorum', 3, 3)
  return SIZES.includes(servers) ? servers : refuse('quorum', SIZES.join(', '))
}

async function judge(file: string): Promise<boolean> {
  const events: HistoryEvent[] = []
  for await (const event of readEvents(file)) events.push(event)
  const verdict = check(events)
  const run = events.find(event => event.kind === 'run')
  const kinds = run?.servers === undefined ? faultsOfOneServer : faultsOfQuorum
  for (const line of reportLines(verdict, events, run?.seed ?? 0, kinds)) console.log(line)
  return verdict.violations.length === 0
}

async function play(terms: Terms, servers: number | undefined): Promise<readonly string[]> {
  const start = now()
  const emptied = values['disks-lost'] ? 'that it persists' : 'the truth'
  const scene = await (servers === undefined
    ? OneServer.open(terms)
    : QuorumScene.open(terms, servers, emptied, values.dead))
  // If the run is interrupted, end its processes. Otherwise a process that a fault has stopped would outlive the run.
  process.once('exit', () => scene.stage.abandon())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const { waiterTtl, longestLease, outageTimeout } = terms.times
  const over = servers !== undefined && { servers }
  scene.stage.recorder.record('run', { seed: terms.seed, waiterTtl, longestLease, outageTimeout, ...over })
  const director = new Director(scene)
  const progress = setInterval(() => {
    console.log(`${String(Math.round((now() - start) / 1000)).padStart(4)} s  ${director.faults} faults so far`)
  }, PROGRESS)
  try {
    scene.open()
    await director.play(terms.minutes)
  } finally {
    clearInterval(progress)
    await scene.close()
  }
  return director.failures
}

async function soak(): Promise<boolean> {
  const servers = quorum()
  const one = servers === undefined
  if (one && values.dead) refuse('dead', 'only with --quorum')
  const count = number('keys', 1, one ? 40 : 12)
  const terms: Terms = {
    minutes: number('minutes', 0, 10),
    seed: number('seed', 0, Math.floor(Math.random() * 2 ** 31)),
    keys: keyNames(count, one ? undefined : ['mutex']),
    // Each server of a quorum adds to the machine's work, so a quorum run has fewer processes.
    processes: number('processes', 1, one ? 6 : 4),
    callers: one ? 10 : 5,
    folder: mkdtempSync(join(tmpdir(), 'baton-soak-')),
    times: one ? TIMES : QUORUM_TIMES,
  }
  const history = join(terms.folder, 'history.jsonl')
  const over = one ? '' : ` over ${servers} servers${values.dead ? ', a minority of them dead' : ''}`
  console.log(`soak: ${terms.minutes} min, ${terms.processes} processes, ${count} keys${over}, seed ${terms.seed}`)
  const start = now()
  const failures = await play(terms, servers)
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
