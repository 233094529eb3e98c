/**
 * Faults that make the server lose its data, or make the data unavailable for a while. If a fault takes
 * holds away from their holders, the event `taken` records when.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Place, Replication } from '../../kit/replication.ts'
import { eventually } from '../../kit/time.ts'
import { now } from '../recorder.ts'
import { call, type Fault, taking } from './fault.ts'
import type { ServerFault } from './plan.ts'
import { harmed, type Stage } from './stage.ts'

/** Saving the data and ending the server take at most this many ms. Writes are paused for this time. */
const SAVING = 5_000
/**
 * The fault sets the memory limit to `less` bytes below the memory in use, again and again, until Redis has evicted
 * `keys` keys.
 */
const EVICTING = { less: 20_000, keys: 5 }

export const dataFaults = {
  flushall: { reach: 'server', run: stage => taking(stage, undefined, 'FLUSHALL', () => call(stage, 'FLUSHALL')) },
  evict: { reach: 'server', run: evict },
  'restart empty': {
    reach: 'server',
    run: (stage, { duration }) =>
      taking(stage, undefined, 'restart', async () => {
        await stage.server.kill()
        await sleep(duration)
        await stage.forgetDump()
        await stage.clock.under(() => stage.server.restart())
      }),
  },
  loading: { reach: 'server', run: load },
  failover: {
    reach: 'server',
    async run(stage, { duration, dice }) {
      const [server, spare] = stage.places
      await failOver(stage, server, spare, dice)
      await sleep(duration)
      await failOver(stage, spare, server, Math.floor(dice / 1_000))
      // Data that is left on the spare server would reappear at the beginning of the next failover.
      await spare.redis.flushall()
    },
  },
} satisfies Partial<Record<ServerFault, Fault>>

/**
 * Restarts the server with all its data, which takes a while to load. Nothing is written between SAVE and the restart,
 * so no data is lost, no hold is taken away, and nothing excuses a violation of I1.
 */
async function load(stage: Stage, { duration }: { duration: number }): Promise<void> {
  await notSaving(stage)
  await call(stage, 'CLIENT', 'PAUSE', String(SAVING), 'WRITE')
  await stage.forgetDump()
  await call(stage, 'SAVE')
  const delay = Math.ceil((duration * 1_000) / Math.max(1, await stage.admin.dbsize()))
  await stage.server.kill()
  const slow = ['--key-load-delay', String(delay), '--loading-process-events-interval-bytes', '1024']
  await stage.clock.under(() => stage.server.restart({ args: [...harmed, ...slow] }))
  await eventually(async () => /loading:0/.test(await stage.admin.info('persistence')), 3 * SAVING)
  await stage.forgetDump()
}

/**
 * Makes the replica the master, without the last writes. Some processes are connected to the new master at once. Others
 * may be connected to it a moment later, and until then the old master grants them locks. From the promotion on, a
 * grant of the old master may conflict with a grant of the new one. So the event `taken`, which is recorded for each
 * process, covers the time from the promotion until the process is connected to the new master.
 */
async function failOver(stage: Stage, master: Place, replica: Place, dice: number): Promise<void> {
  const replication = await Replication.begin(master, replica)
  try {
    await replication.loseWrites()
    await sleep(dice % 300)
    const from = now()
    await replication.promote()
    const late = dice % 3 === 0 ? dice % 200 : 0
    for (const [i, post] of stage.posts.entries()) {
      if (i === stage.posts.length >> 1) await sleep(late)
      post.ways.moveTo(replica.url)
      for (const worker of post.workers) stage.recorder.record('taken', { worker, from, how: 'failover' })
    }
  } finally {
    await replication.close()
  }
}

/** Lowers the memory limit until some keys have been evicted. It does not matter which keys. */
async function evict(stage: Stage): Promise<void> {
  const read = async (section: string, name: string) =>
    Number(new RegExp(`${name}:(\\d+)`).exec(await stage.admin.info(section))?.[1])
  const before = await read('stats', 'evicted_keys')
  await call(stage, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-random')
  await taking(stage, undefined, 'evict', async () => {
    try {
      await eventually(async () => {
        const limit = (await read('memory', 'used_memory')) - EVICTING.less
        await call(stage, 'CONFIG', 'SET', 'maxmemory', String(limit))
        const gone = (await read('stats', 'evicted_keys')) - before
        return gone >= EVICTING.keys || (await stage.admin.dbsize()) === 0
      })
    } finally {
      await call(stage, 'CONFIG', 'SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction')
    }
  })
}

/**
 * Waits until the server is not saving its data, for example for a replica. Call this function before a fault that
 * saves the data, or that makes saving fail.
 */
export function notSaving({ admin }: Stage): Promise<unknown> {
  return eventually(async () => /rdb_bgsave_in_progress:0/.test(await admin.info('persistence')))
}
