/**
 * Faults that make a single server lose its data, or make the data unavailable for a while. If a fault takes holds away
 * from their holders, the event `taken` records when.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Replication } from '../../kit/replication.ts'
import { eventually } from '../../kit/time.ts'
import { now } from '../recorder.ts'
import { type Choices, call, type Faults, taking } from './fault.ts'
import type { Server } from './server.ts'
import type { Stage } from './stage.ts'

/** Saving the data and ending the server take at most this many ms. Writes are paused for this time. */
const SAVING = 5_000
/**
 * The fault sets the memory limit to `less` bytes below the memory in use, again and again, until Redis has evicted
 * `keys` keys.
 */
const EVICTING = { less: 20_000, keys: 5 }

export const dataFaults: Faults<Server> = {
  flushall: {
    weight: 2,
    run: (stage, server) => taking(stage, undefined, 'FLUSHALL', () => call(server, 'FLUSHALL')),
  },
  evict: { weight: 2, run: evict },
  'restart empty': {
    weight: 2,
    longest: 800,
    run: (stage, server, { duration }) =>
      taking(stage, undefined, 'restart', async () => {
        await server.kill()
        await sleep(duration)
        await server.comeBackEmpty('the truth')
      }),
  },
  loading: { weight: 2, longest: 1_500, run: load },
  failover: {
    weight: 3,
    longest: 800,
    async run(stage, server, { duration, dice }) {
      const spare = stage.spare!
      await failOver(stage, server, spare, dice)
      await sleep(duration)
      await failOver(stage, spare, server, Math.floor(dice / 1_000))
      // Data that is left on the spare server would reappear at the beginning of the next failover.
      await spare.redis.flushall()
    },
  },
}

/**
 * Restarts the server with all its data, which takes a while to load. Nothing is written between SAVE and the restart,
 * so no data is lost, no hold is taken away, and nothing excuses a violation of I1.
 */
async function load(_: Stage, server: Server, { duration }: Choices): Promise<void> {
  await notSaving(server)
  await call(server, 'CLIENT', 'PAUSE', String(SAVING), 'WRITE')
  await server.forgetDisk()
  await call(server, 'SAVE')
  const delay = Math.ceil((duration * 1_000) / Math.max(1, await server.redis.dbsize()))
  await server.kill()
  await server.comeBack('--key-load-delay', String(delay), '--loading-process-events-interval-bytes', '1024')
  await eventually(async () => /loading:0/.test(await server.redis.info('persistence')), 3 * SAVING)
  await server.forgetDisk()
}

/**
 * Makes the replica the master, without the last writes. Some processes are connected to the new master at once. Others
 * may be connected to it a moment later, and until then the old master grants them locks. From the promotion on, a
 * grant of the old master may conflict with a grant of the new one. So the event `taken`, which is recorded for each
 * process, covers the time from the promotion until the process is connected to the new master.
 */
async function failOver(stage: Stage, master: Server, replica: Server, dice: number): Promise<void> {
  const replication = await Replication.begin(master, replica)
  try {
    await replication.loseWrites()
    await sleep(dice % 300)
    const from = now()
    await replication.promote()
    const late = dice % 3 === 0 ? dice % 200 : 0
    for (const [i, post] of stage.posts.entries()) {
      if (i === stage.posts.length >> 1) await sleep(late)
      for (const { proxy } of post.lines) proxy.switchTo(replica.url)
      for (const worker of post.workers) stage.recorder.record('taken', { worker, from, how: 'failover' })
    }
  } finally {
    await replication.close()
  }
}

/** Lowers the memory limit until some keys have been evicted. It does not matter which keys. */
async function evict(stage: Stage, server: Server): Promise<void> {
  const read = async (section: string, name: string) =>
    Number(new RegExp(`${name}:(\\d+)`).exec(await server.redis.info(section))?.[1])
  const before = await read('stats', 'evicted_keys')
  await call(server, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-random')
  await taking(stage, undefined, 'evict', async () => {
    try {
      await eventually(async () => {
        const limit = (await read('memory', 'used_memory')) - EVICTING.less
        await call(server, 'CONFIG', 'SET', 'maxmemory', String(limit))
        const gone = (await read('stats', 'evicted_keys')) - before
        return gone >= EVICTING.keys || (await server.redis.dbsize()) === 0
      })
    } finally {
      await call(server, 'CONFIG', 'SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction')
    }
  })
}

/**
 * Waits until the server is not saving its data, for example for a replica. Call this function before a fault that
 * saves the data, or that makes saving fail.
 */
export function notSaving({ redis }: Server): Promise<unknown> {
  return eventually(async () => /rdb_bgsave_in_progress:0/.test(await redis.info('persistence')))
}
