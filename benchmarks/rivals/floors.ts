/**
 * Floors show the least that Redis itself costs. They are not usable locks: they have no renewed lease, no fencing
 * token and no handling of crashes.
 *
 *  floor-blpop     A list with a token (for a semaphore, one per permit). BLPOP acquires and LPUSH releases. The
 *                  server's own queue of blocked clients hands over, first come, first served. Each waiter has its own
 *                  connection, and each acquisition takes two commands.
 *
 *  floor-publish   A token goes from process to process by message, with one EVALSHA per acquisition:
 *
 *                    process 0: release ──EVALSHA──▶ RPUSH the releaser's next request to the queue of process 0
 *                                                    LPOP from the queue of process 1, or of process 0 if that is empty
 *                                                    PUBLISH the popped request ───message──▶ process 1: acquired
 *
 *                  If a waiter of the other process is queued, the token goes to that process. So each hand-off takes
 *                  one command to the server and one message from it. Each process has one connection for commands and
 *                  one for messages, and all its waiters share them.
 *
 *                  In the loops, a waiter asks again right after its release, and one EVALSHA carries both the release
 *                  and the next request. In all other cases, a request has its own EVALSHA, which takes a free token or
 *                  puts the request into the queue. The EVALSHA of a release then only passes the token on. `release`
 *                  resolves before its EVALSHA is sent, because that EVALSHA may still have to carry the waiter's next
 *                  request. So the time until `release` resolves does not include any work of the server.
 *
 *  floor-broadcast A writer's release is one PUBLISH on a channel to which each process with readers subscribes. The
 *                  message admits all readers that are waiting when it arrives. Mutual exclusion is missing: a
 *                  writer gets the lock at once, whoever else holds it.
 *
 *  floor-set       SET NX PX acquires, and a compare-and-delete script releases. This is the cost of an uncontended
 *                  lock.
 */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Contender, Release, Rival, RivalClient, Setting } from '../contract.ts'
import { allBut } from '../scenarios.ts'

const noLease = 'its token has no lease, so a crash of the holder loses the token'
const oneEach = 'it needs a connection per waiter, more than a server accepts'
const byHand = { kind: 'floor', package: undefined, runtime: 'node', missing: async () => undefined } as const

export const floorBlpop: Rival = {
  ...byHand,
  name: 'floor-blpop',
  fair: true,
  locks: ['mutex', 'semaphore'],
  note: 'Floor: a list with one token per permit. BLPOP acquires and LPUSH releases. One connection per waiter.',
  skips: {
    'drain-10000': oneEach,
    'semaphore-drain-10000': oneEach,
    'semaphore-used-10000': oneEach,
    'crash-holder': noLease,
    'crash-waiters': noLease,
  },
  open: openBlpop,
}

async function openBlpop({ url, permits = 1 }: Setting): Promise<RivalClient> {
  const connections: Redis[] = []
  /** Puts the tokens of a key into its list, unless another process has done so. */
  const mint = `if redis.call('SET', KEYS[2], 1, 'NX') then for i = 1, ARGV[1] do redis.call('LPUSH', KEYS[1], i) end end`
  const minted = new Set<string>()
  return {
    async contender(): Promise<Contender> {
      const redis = await connect(url)
      connections.push(redis)
      return {
        async acquire(key) {
          if (!minted.has(key)) {
            minted.add(key)
            await redis.eval(mint, 2, key, `${key}:made`, permits)
          }
          await redis.blpop(key, 0)
          return () => redis.lpush(key, 1)
        },
      }
    },
    close: async () => disconnect(connections),
  }
}

export const floorPublish: Rival = {
  ...byHand,
  name: 'floor-publish',
  fair: true,
  note: 'Floor: a script passes a token by PUBLISH, to the other process if a caller waits there.',
  skips: {
    uncontended: 'it needs another caller to publish to',
    'crash-holder': noLease,
    'crash-waiters': noLease,
  },
  open: openPublish,
}

/**
 * Passes the token on. KEYS: this process's queue, the other process's queue, the key that exists while the token is
 * taken. ARGV: channel prefix, entry of the next request or ''.
 */
const pass = `
if ARGV[2] ~= '' then redis.call('RPUSH', KEYS[1], ARGV[2]) end
local next = redis.call('LPOP', KEYS[2]) or redis.call('LPOP', KEYS[1])
if next then redis.call('PUBLISH', ARGV[1] .. string.sub(next, 1, 1), next) else redis.call('DEL', KEYS[3]) end`

/**
 * Takes a free token, or queues. KEYS: this process's queue, the key that exists while the token is taken. ARGV: the
 * request's entry. Replies 1 if the caller got the token.
 */
const ask = `
if redis.call('SET', KEYS[2], 1, 'NX') then return 1 end
redis.call('RPUSH', KEYS[1], ARGV[1])
return 0`

async function openPublish({ url, namespace, process: own }: Setting): Promise<RivalClient> {
  const [redis, inbox] = await Promise.all([connect(url), connect(url)])
  const [passSha, askSha] = (await Promise.all([redis.script('LOAD', pass), redis.script('LOAD', ask)])).map(String)
  const channels = `${namespace}:floor:`
  const granted = new Map<string, (release: Release) => void>()
  /** A release that has not been sent yet. It waits for the waiter's next request, to be sent together with it. */
  let held: { entry: string; key: string } | undefined

  const send = (key: string, entry: string) =>
    redis.evalsha(passSha!, 3, `${key}:q${own}`, `${key}:q${1 - own}`, `${key}:out`, channels, entry)
  const flush = () => {
    if (held) send(held.key, '')
    held = undefined
  }
  const releaseOf = (entry: string, key: string) => async () => {
    flush()
    held = { entry, key }
    // If the waiter asks again at once, this happens before `flush` runs, and the request is sent with the release.
    process.nextTick(flush)
  }
  inbox.on('message', (_channel, entry: string) => {
    const grant = granted.get(entry)
    granted.delete(entry)
    grant?.(releaseOf(entry, entry.slice(entry.indexOf('|') + 1)))
  })
  await inbox.subscribe(channels + own)

  return {
    contender: index => ({
      acquire: key =>
        new Promise<Release>((resolve, reject) => {
          const entry = `${own}.${index}|${key}`
          granted.set(entry, resolve)
          if (held?.entry === entry) {
            held = undefined
            send(key, entry).catch(reject)
            return
          }
          redis.evalsha(askSha!, 2, `${key}:q${own}`, `${key}:out`, entry).then(taken => {
            if (taken !== 1) return
            granted.delete(entry)
            resolve(releaseOf(entry, key))
          }, reject)
        }),
    }),
    close: async () => disconnect([redis, inbox]),
  }
}

export const floorSet: Rival = {
  ...byHand,
  name: 'floor-set',
  fair: false,
  note: 'Floor: SET NX PX acquires, a compare-and-delete script releases. One connection. Only for the uncontended scenario.',
  skips: allBut(['uncontended'], 'it cannot wait'),
  open: openSet,
}

const compareAndDelete = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

async function openSet({ url }: Setting): Promise<RivalClient> {
  const redis = await connect(url)
  const sha = String(await redis.script('LOAD', compareAndDelete))
  const contender: Contender = {
    async acquire(key) {
      const token = randomUUID()
      const taken = await redis.set(key, token, 'PX', 30_000, 'NX')
      if (taken === null) throw new Error('another caller holds the lock')
      return () => redis.evalsha(sha, 1, key, token)
    },
  }
  return { contender: () => contender, close: async () => disconnect([redis]) }
}

export const floorBroadcast: Rival = {
  ...byHand,
  name: 'floor-broadcast',
  fair: true,
  locks: ['readWrite'],
  note: 'Floor: when a writer releases, one PUBLISH wakes the readers of all processes. Readers send nothing, and no caller is excluded.',
  skips: allBut(['read-write-admit-1', 'read-write-admit-1000'], 'it excludes no caller'),
  open: openBroadcast,
}

async function openBroadcast({ url }: Setting): Promise<RivalClient> {
  const [redis, inbox] = await Promise.all([connect(url), connect(url)])
  const listensTo = new Set<string>()
  let parked: ((release: Release) => void)[] = []
  inbox.on('message', () => {
    const admitted = parked
    parked = []
    for (const admit of admitted) admit(async () => {})
  })
  const reader: Contender = {
    async acquire(key) {
      if (!listensTo.has(key)) {
        listensTo.add(key)
        await inbox.subscribe(key)
      }
      return new Promise<Release>(resolve => parked.push(resolve))
    },
  }
  const writer: Contender = { acquire: async key => () => redis.publish(key, '') }
  return {
    contender: (_, reading) => (reading ? reader : writer),
    close: async () => disconnect([redis, inbox]),
  }
}

async function connect(url: string): Promise<Redis> {
  const redis = new Redis(url, { lazyConnect: true })
  redis.on('error', () => {}) // nothing to do here, because each command that fails rejects with its error
  await redis.connect()
  return redis
}

function disconnect(connections: readonly Redis[]): void {
  for (const redis of connections) redis.disconnect()
}
