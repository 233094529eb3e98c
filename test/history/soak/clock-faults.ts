/**
 * Steps of the server's time of day, by up to a minute.
 *
 * Forward, it stays there. Back, it is set right again after a while, which is a step forward as well: tokens of that
 * time are ahead of the clock, and I2 is promised for them only as long as their lock's data is kept, so no data is lost
 * before the clock has caught up.
 *
 * A step forward may end every lease at once: all that was granted before it counts as taken away. A step back makes
 * leases longer, and takes nothing.
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
/** ms that it stands back at least: every lock is granted some times. */
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
 * I2 over a step back is promised for locks whose data is there, and a fault before this one may have lost some. So the
 * keeper asks for each lock, fairly, by which its clock passes the present moment: with a token, or at least a ticket.
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
        // Where it is not answered in its time, because the machine is busy, it asks again.
        await lock.tryLock({ fair: true, timeout: 300, lease: 1_000 }).then(lease => lease?.release(), unlessUnanswered)
      }),
    )
    return behind.length === 0
  }, 15_000)
}
