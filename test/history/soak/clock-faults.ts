/**
 * Steps of servers' times of day, by up to a minute. The fastest clock determines the tokens, so a token may be ahead of
 * the clocks: after a step back of a single server, and after a step ahead of one of several. I2 is promised for such a
 * token only while a majority of the servers (or the single one) knows the token, or after the clocks of all servers
 * have passed it. So no other fault may delete data before all clocks are right again: faults of servers, and those of
 * single locks on one server, come one after another.
 *
 * A step ahead may end every lease on that server at once, and so take holds away (losses.ts). A step back makes leases
 * longer, and takes nothing away.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LockConnectionError } from '../../../src/index.ts'
import { eventually } from '../../kit/time.ts'
import type { Faults } from './fault.ts'
import { lockFor, usualWants } from './lock-for.ts'
import { outrunning } from './losses.ts'
import type { Server } from './server.ts'
import type { Stage } from './stage.ts'
import { lockName } from './terms.ts'

const LONGEST = 60_000
const SHORTEST = 50
/** The clock stays back for at least this time, in ms. Every lock is granted several times in this time. */
const STANDS_BACK = 700
/** Time between two steps of clocks, in ms. In this time, renewals restore holds on servers that have lost them. */
const BETWEEN_STEPS = 700

export const clockFaults: Faults<Server> = {
  /** The clock stays ahead. The other servers follow one by one. */
  'clock ahead': {
    weight: 3,
    longest: 600,
    async run(stage, server, { duration, dice }) {
      const size = sizeOf(dice)
      await stepAhead(stage, server, size)
      await sleep(duration)
      for (const other of stage.servers) {
        if (other === server) continue
        await stepAhead(stage, other, size)
        await sleep(BETWEEN_STEPS)
      }
    },
  },
  /** The clock is set right by a step ahead. */
  'clock back': {
    weight: 3,
    longest: 2_000,
    async run(stage, server, { duration, dice }) {
      const size = sizeOf(dice)
      if (stage.size === 1) await tickAll(stage)
      await step(stage, server, -size)
      await sleep(STANDS_BACK + duration)
      await stepAhead(stage, server, size)
    },
  },
}

function sizeOf(dice: number): number {
  return SHORTEST + (dice % (LONGEST - SHORTEST))
}

function stepAhead(stage: Stage, server: Server, size: number): Promise<void> {
  return outrunning(stage, server, () => step(stage, server, size))
}

/** Steps the clock. Reads the clock right before and after, so that the history shows when the step happened. */
async function step(stage: Stage, server: Server, ms: number): Promise<void> {
  const { clock, redis, number } = server
  stage.readClock(server)
  clock.set(clock.offset + ms)
  stage.readClock(server)
  const [seconds] = await redis.time()
  const off = Number(seconds) * 1_000 - clock.now()
  if (Math.abs(off) > 5_000)
    throw new Error(`the clock of server ${number} is off by ${off} ms: it has not taken the step`)
}

function unlessUnanswered(error: unknown): void {
  if (!(error instanceof LockConnectionError)) throw error
}

/**
 * Makes sure that every lock has data on the single server before the clock steps back. An earlier fault may have deleted the data of a
 * lock, and I2 is not promised for a lock without data. A fair request creates data: it sets the lock's `clock` field
 * to the time of the request or later.
 */
async function tickAll({ server: { redis }, keys, locks }: Stage): Promise<void> {
  const [seconds, micros] = await redis.time()
  const since = Number(seconds) * 1_000_000 + Number(micros)
  await eventually(async () => {
    const clocks = await Promise.all(keys.map(key => redis.hget(lockName(key), 'clock')))
    const behind = keys.filter((_, i) => Number(clocks[i] ?? 0) < since)
    await Promise.all(
      behind.map(async key => {
        const lock = lockFor(locks, key, usualWants(key))
        // If a busy machine does not answer in time, the next round makes the call again.
        await lock.tryLock({ fair: true, timeout: 300, lease: 1_000 }).then(lease => lease?.release(), unlessUnanswered)
      }),
    )
    return behind.length === 0
  }, 15_000)
}
