/**
 * Steps of the server's time of day, by up to a minute.
 *
 * After a step forward, the clock stays ahead. After a step back, the clock is later set right by a step forward. If a
 * token is issued before that, it is ahead of the clock. I2 is promised for such a token only while the data of its
 * lock is kept. So no other fault deletes data until the clock has been set right: faults of the server and of single
 * locks come one after another.
 *
 * A step forward may end every lease at once, so every earlier grant counts as taken away. A step back makes leases
 * longer, and takes nothing away.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LockConnectionError } from '../../../src/index.ts'
import { eventually } from '../../kit/time.ts'
import { type Fault, taking } from './fault.ts'
import { lockFor, usualWants } from './lock-for.ts'
import type { ServerFault } from './plan.ts'
import type { Stage } from './stage.ts'
import { lockName } from './terms.ts'

const LONGEST = 60_000
const SHORTEST = 50
/** The clock stays back for at least this time, in ms. Every lock is granted several times in this time. */
const STANDS_BACK = 700

export const clockFaults = {
  'clock forward': { reach: 'server', run: (stage, { dice }) => forward(stage, sizeOf(dice)) },
  'clock back': {
    reach: 'server',
    async run(stage, { duration, dice }) {
      const size = sizeOf(dice)
      await tickAll(stage)
      await stage.stepClock(-size)
      await sleep(STANDS_BACK + duration)
      await forward(stage, size)
    },
  },
} satisfies Partial<Record<ServerFault, Fault>>

function sizeOf(dice: number): number {
  return SHORTEST + (dice % (LONGEST - SHORTEST))
}

function forward(stage: Stage, size: number): Promise<void> {
  return taking(stage, undefined, 'clock', () => stage.stepClock(size))
}

function unlessUnanswered(error: unknown): void {
  if (!(error instanceof LockConnectionError)) throw error
}

/**
 * Makes sure that every lock has data before the clock steps back. An earlier fault may have deleted the data of a
 * lock, and I2 is not promised for a lock without data. A fair request creates data: it sets the lock's `clock` field
 * to the time of the request or later.
 */
async function tickAll({ admin, keys, locks }: Stage): Promise<void> {
  const [seconds, micros] = await admin.time()
  const since = Number(seconds) * 1_000_000 + Number(micros)
  await eventually(async () => {
    const clocks = await Promise.all(keys.map(key => admin.hget(lockName(key), 'clock')))
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
