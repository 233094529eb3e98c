/**
 * A process of the soak. It works from its start: its callers lock, work and release as their seed says, and record
 * everything. After the message 'drain', it makes no more requests. After the message 'close', it closes its client and
 * must end on its own. If the client has left a timer or a connection open, the process does not end, and the test
 * fails.
 */
// This import replaces `Date`. So it comes before any module that may read the time of day.
import '../../kit/time-of-day.ts'
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Random } from '../../kit/random.ts'
import { jump } from '../../kit/time-of-day.ts'
import { now, Recorder } from '../recorder.ts'
import { Witnesses } from '../witnesses.ts'
import { Caller } from './caller.ts'
import { clientOf } from './client-of.ts'
import { LOOPED, type Terms } from './terms.ts'

export interface Orders extends Terms {
  /** The name of the process, unique in the run. The successor of a killed process has another name. */
  readonly worker: string
  /** The number of the random stream from which the process makes its choices (test/kit/random.ts). */
  readonly stream: number
  /** For each server of the locks, the URL by which the process reaches it. */
  readonly urls: readonly string[]
  readonly witnessUrl: string
  readonly history: string
}

export type ToWorker = 'drain' | 'close' | { readonly block: number } | { readonly jump: number }

/**
 * The event loop is checked every LOOK ms. If a check comes more than STALLED ms late, the event loop counts as having
 * stood still.
 */
const LOOK = 100
const STALLED = 250

const orders = JSON.parse(process.argv[2] as string) as Orders
const { worker } = orders
const recorder = new Recorder(orders.history)
recorder.record('started', { worker })

process.on('unhandledRejection', error => crashed('unhandled rejection', error))
process.on('uncaughtException', error => crashed('uncaught exception', error))

function crashed(what: string, error: unknown): void {
  recorder.record('crash', { worker, error: `${what}: ${error instanceof Error ? error.stack : error}` })
}

let looked = now()
const looks = setInterval(() => {
  const t = now()
  if (t - looked > LOOK + STALLED) recorder.record('stall', { worker, from: looked }, t)
  looked = t
}, LOOK)

const witness = new Redis(orders.witnessUrl)
const { lease, waiterTtl, outageTimeout, tokenMemory } = orders.times
const locks = clientOf(orders.urls, { lease, waiterTtl, outageTimeout, tokenMemory, label: worker })
locks.on('disconnected', () => recorder.record('link', { worker, up: false }))
locks.on('reconnected', () => recorder.record('link', { worker, up: true }))
locks.on('waiting', ({ key, owner }) => recorder.record('waiting', { worker, key, owner }))

const draining = new AbortController()
setMaxListeners(0, draining.signal)
const caller = new Caller(
  worker,
  locks,
  new Witnesses(worker, orders.folder, witness, recorder),
  recorder,
  draining.signal,
)
const callers = Array.from({ length: orders.callers }, async (_, i) => {
  const random = new Random(orders.seed, orders.stream * orders.callers + i)
  while (!draining.signal.aborted) {
    const pause = await caller.once(random, orders)
    await sleep(pause, undefined, { signal: draining.signal }).catch(() => {})
  }
})

const looping = loop()

process.on('message', (message: ToWorker) => {
  if (message === 'drain') drain()
  else if (message === 'close') close()
  else if ('jump' in message) jump(message.jump)
  else {
    const end = now() + message.block
    while (now() < end);
  }
})
process.on('disconnect', () => process.exit(1))

async function loop(): Promise<void> {
  // Pause after a call that was not granted. Such a call may fail at once, for example while its Redis user lacks a
  // right.
  while (!draining.signal.aborted) if (!(await caller.again(LOOPED, orders.times))) await sleep(LOOK)
}

async function drain(): Promise<void> {
  draining.abort()
  await Promise.all([...callers, looping])
  if (process.connected) process.send?.('drained')
}

async function close(): Promise<void> {
  await locks.close()
  clearInterval(looks)
  witness.disconnect()
  process.removeAllListeners('disconnect')
  process.disconnect()
}
