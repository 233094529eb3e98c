/** Faults of single locks. A fault that takes a hold away records the time of the loss in the event `taken`. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { LockConnectionError } from '../../../src/index.ts'
import { now } from '../recorder.ts'
import { type Choices, call, type Faults, taking } from './fault.ts'
import { lockFor, usualWants } from './lock-for.ts'
import type { Stage } from './stage.ts'
import { holdNames, kindOf, lockName, queueNames } from './terms.ts'

const INBOX = 'lock:inbox:'
/**
 * The length of a hold's id. In the hash of a lock, the id is the name of a field. No other field has a name of this
 * length, so the length shows which fields are holds.
 */
const HOLD_ID = 28

/** The fault of single locks for any number of servers. */
export const releaseFaults: Faults<string> = {
  'force release': {
    weight: 8,
    reach: 'nothing',
    run: (stage, key, { dice }) => taking(stage, key, 'forceRelease', () => forceRelease(stage, key, dice)),
  },
}

/** The faults of single locks on a single server. */
export const keyFaults: Faults<string> = {
  /** Deletes the key that records the lock's holders. If several keys record them, `dice` selects one of these keys. */
  delete: {
    weight: 5,
    reach: 'nothing',
    run: (stage, key, { dice }) => {
      const names = holdNames(key)
      return taking(stage, key, 'DEL', () => call(stage.server, 'DEL', names[dice % names.length]!))
    },
  },
  'delete all': {
    weight: 3,
    run: (stage, key) =>
      taking(stage, key, 'DEL', () => call(stage.server, 'DEL', ...holdNames(key), ...queueNames(key))),
  },
  /** Deletes the queue, not the holder. Waiters join the queue again with their heartbeats. */
  'delete queue': { weight: 3, run: ({ server }, key) => call(server, 'DEL', ...queueNames(key)) },
  // During this fault, the heartbeats of waiters for this lock get no useful reply, so the fault reaches these waiters.
  'wrong type': {
    weight: 2,
    longest: 600,
    run: (stage, key, { duration }) => taking(stage, key, 'wrong type', () => occupied(stage, lockName(key), duration)),
  },
  'wrong type of queue': {
    weight: 2,
    longest: 600,
    run: (stage, key, { duration }) => occupied(stage, `${lockName(key)}:q`, duration),
  },
  'forge messages': { weight: 5, reach: 'nothing', run: forgeMessages },
  'forge grants': { weight: 8, reach: 'nothing', run: forgeGrants },
}

/** Takes the lock from all holders, or from one of them. */
async function forceRelease({ locks, size }: Stage, key: string, dice: number): Promise<void> {
  const lock = lockFor(locks, key, usualWants(key))
  try {
    const [holder] = dice % 2 === 0 ? [] : (await lock.inspect()).holders
    await locks.forceRelease(lock, ...(holder ? ([holder.id] as const) : []))
  } catch (error) {
    // Over a quorum, servers may have faults at the same time, and a call that cannot reach a majority fails.
    if (size === 1 || !(error instanceof LockConnectionError)) throw error
  }
}

async function occupied({ server }: Stage, name: string, duration: number): Promise<void> {
  await call(server, 'SET', name, 'a string')
  await sleep(duration)
  await call(server, 'DEL', name)
}

/**
 * Sends forged messages of every kind. None of them has the id of a queued waiter, so none can forge a grant to a
 * queued waiter.
 */
async function forgeMessages({ server: { redis }, recorder }: Stage, key: string): Promise<void> {
  const lock = lockName(key)
  const stranger = randomBytes(12).toString('base64url')
  for (const channel of [`unlock:${lock}`, `${lock}:unlock`]) await redis.publish(channel, 'free')
  const holder = await holderOf(redis, key)
  for (const inbox of (await redis.pubsub('CHANNELS', `${INBOX}*`)) as string[]) {
    const client = inbox.slice(INBOX.length)
    await redis.publish(inbox, `handoff ${client}${stranger} 1 ${lock}`)
    await redis.publish(inbox, `expiry ${client}${stranger} 99999999999999999 ${lock}`)
    if (holder?.startsWith(client)) {
      await redis.publish(inbox, `lost ${holder} 1 ${lock}`)
      // If the holder's client does not know of the grant yet, it may believe this message.
      recorder.record('forged', { key, id: holder, token: 1 })
      await redis.publish(inbox, `handoff ${holder} 1 ${lock}`)
    }
    await redis.publish(inbox, 'beat 0')
    await redis.publish(inbox, '')
  }
}

/** Returns the id of one of the current holders. */
async function holderOf(redis: Redis, key: string): Promise<string | undefined> {
  if (kindOf(key) === 'mutex') return (await redis.hget(lockName(key), 'holder'))?.split(' ')[2]
  return (await redis.hkeys(lockName(key))).find(name => name.length === HOLD_ID)
}

/**
 * Forges grants for waiters, with their true ids. The client of each waiter receives two forged messages: the token of
 * the first is old, and the token of the second is the present time. The client believes the first only if no reply has
 * reported the lock's clock yet. It believes the second until the first renewal. Each forged grant is recorded.
 *
 * If the lock has no waiter at the moment, the fault hits another lock that has a waiter, or soon will have one.
 */
async function forgeGrants({ server, recorder, keys }: Stage, asked: string, { dice }: Choices): Promise<void> {
  const { redis } = server
  for (const end = now() + 1_000; now() < end; await sleep(10)) {
    for (const key of [asked, ...keys]) {
      const lock = lockName(key)
      const queues = queueNames(key)
      const entries = (await Promise.all(queues.map(name => redis.zrange(name, '0', '1')))).flat()
      const ids = entries.map(entry => entry.slice(0, entry.indexOf(' ')))
      for (const id of ids) {
        const inbox = INBOX + id.slice(0, 12)
        recorder.record('forged', { key, id, token: 1 })
        await redis.publish(inbox, `expiry ${id} 1 ${lock}`)
        const [seconds, micros] = await redis.time()
        const token = Number(seconds) * 1_000_000 + Number(micros)
        recorder.record('forged', { key, id, token })
        for (let times = dice % 2; times >= 0; times--) await redis.publish(inbox, `handoff ${id} ${token} ${lock}`)
      }
      if (ids.length > 0) return
    }
  }
}
