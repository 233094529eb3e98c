/**
 * Measures how long one script call occupies the server. Each case is measured alone, on a key with 1, 1,000 or 50,000
 * waiters. The calls are made without a `LockClient`, through the `Kind` of src/kinds/mutex/. The waiters have the ids
 * of clients that do not exist. If a case needs a client that receives grants, the case subscribes to the inbox of such
 * a client.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Server } from '../../benchmarks/harness/server.ts'
import { systemClock } from '../../src/clock.ts'
import type { Claim, Kind, Queued } from '../../src/kind.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { scripts as texts } from '../../src/kinds/mutex/scripts.generated.ts'
import { clientsOf } from '../../src/redis/clients.ts'
import { Connection } from '../../src/redis/connection.ts'
import { newClientId, newHoldId } from '../../src/redis/ids.ts'
import { Keys, Namespace, unlockChannel } from '../../src/redis/keys.ts'
import { Scripts } from '../../src/redis/scripts.ts'
import { HEARD, type ScriptTime } from './figures.ts'
import { scriptTimes, startServer } from './server.ts'

const SIZES = [1, 1_000, 50_000]
/** How many calls may be under way at the same time. */
const BATCH = 1_000
/** How many connections are opened at the same time: fewer than the server's TCP backlog. */
const CONNECTING = 100
const LEASE = 120_000
/** The number of waiters in one call of `tend`. */
const TENDED = 500
/** The expiry of waiters that should expire, in ms. */
const SHORT = 2_000
/**
 * How often each case is prepared and measured, so that other load on the machine does not always hit the same call.
 */
const ROUNDS = 2

const keys = new Keys(new Namespace('scale:', false), mutex)

class Scene {
  readonly key = `scale-${newClientId()}`
  readonly #server: Server
  readonly #make: (waiterTtl: number) => Kind
  readonly kind: Kind
  readonly #ears: Redis[] = []

  constructor(server: Server, make: (waiterTtl: number) => Kind) {
    this.#server = server
    this.#make = make
    this.kind = make(LEASE)
  }

  claim(client = newClientId(), owner?: string): Claim {
    const id = newHoldId(client)
    return { key: this.key, id, owner: owner ?? id, label: 'host:4711', lease: LEASE, headStart: 0 }
  }

  async hold(): Promise<Claim> {
    const claim = this.claim()
    await this.kind.attempt(claim, 0)
    return claim
  }

  /**
   * Adds `count` waiters. `client` is the id of their client; undefined gives each waiter its own. `ttl` is the
   * waiters' expiry in ms.
   */
  async queue(count: number, client?: string, ttl = LEASE): Promise<Queued[]> {
    const kind = this.#make(ttl)
    return inBatches(count, async () => {
      const claim = this.claim(client)
      const answer = await kind.queue!.join(claim)
      return { claim, ticket: answer.granted ? '' : answer.ticket }
    })
  }

  /** Returns the id of a client that is subscribed to its inbox. */
  async listening(): Promise<string> {
    const client = newClientId()
    const ear = this.#server.redis.duplicate()
    this.#ears.push(ear)
    await ear.subscribe(keys.inboxPrefix(this.key) + client)
    return client
  }

  /** Subscribes `count` clients to the message that the lock is free. */
  async hear(count: number): Promise<void> {
    const hear = async () => {
      const ear = this.#server.redis.duplicate()
      this.#ears.push(ear)
      await ear.subscribe(unlockChannel(keys.of(this.key).lock))
    }
    await inBatches(count, hear, CONNECTING)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const ear of this.#ears) ear.disconnect()
    const { redis } = this.#server
    await redis.config('SET', 'lazyfree-lazy-expire', 'no')
    await redis.flushall('ASYNC')
  }

  /** Ends the holder's lease at once, as if its time had passed. */
  async lapse(): Promise<void> {
    const lock = keys.of(this.key).lock
    const [token, , ...claim] = (await this.#server.redis.hget(lock, 'holder'))!.split(' ')
    const begun = Date.now() - Number(claim[2]) - 1_000
    await this.#server.redis.hset(lock, 'holder', [token, begun * 1_000, ...claim].join(' '))
  }

  /** From now on, a background thread of the server frees the memory of expired keys. */
  async freeLazily(): Promise<void> {
    await this.#server.redis.config('SET', 'lazyfree-lazy-expire', 'yes')
  }

  tend(waiters: readonly Queued[], ttl = LEASE): Promise<unknown> {
    return this.#make(ttl).queue!.tend(this.key, waiters)
  }
}

async function inBatches<T>(count: number, make: (i: number) => Promise<T>, batch = BATCH): Promise<T[]> {
  const made: T[] = []
  while (made.length < count) {
    const some = Array.from({ length: Math.min(batch, count - made.length) }, (_, i) => make(made.length + i))
    made.push(...(await Promise.all(some)))
  }
  return made
}

async function oneByOne(count: number, call: (i: number) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i++) await call(i)
}

/** Prepares a key with `size` waiters, and returns the action to measure. */
type Case = (scene: Scene, size: number) => Promise<() => Promise<unknown>>

/**
 * Measures a call on a queue whose keys have expired. The first command that touches these keys has to remove them, and
 * this command is the measured call.
 */
const expired: Case = async (scene, size) => {
  await scene.hold()
  await scene.queue(size, undefined, SHORT)
  // The keys of a queue expire at the latest when no waiter has joined for twice `SHORT`, the waiters' expiry.
  await sleep(2 * SHORT + 500)
  await scene.lapse()
  return () => scene.kind.attempt(scene.claim(), 0)
}

const cases: Record<string, Case> = {
  'acquire, refused': async (scene, size) => {
    await scene.hold()
    await scene.queue(size)
    return () => oneByOne(200, () => scene.kind.attempt(scene.claim(), 0))
  },
  'acquire, joining the queue': async (scene, size) => {
    await scene.hold()
    await scene.queue(size)
    return () => oneByOne(200, () => scene.kind.queue!.join(scene.claim()))
  },
  'leave, from the middle of the queue': async (scene, size) => {
    await scene.hold()
    const queued = await scene.queue(size)
    const from = Math.floor(size / 2)
    return () => oneByOne(Math.min(size - from, 200), i => scene.kind.leave(queued[from + i]!.claim))
  },
  'release, handing on to a live waiter': async (scene, size) => {
    let { id } = await scene.hold()
    const queued = await scene.queue(size, await scene.listening())
    return () =>
      oneByOne(Math.min(size, 200), async i => {
        await scene.kind.release({ key: scene.key, id })
        id = queued[i]!.claim.id
      })
  },
  'release and sweep, all waiters of one dead client': async (scene, size) => {
    const { id } = await scene.hold()
    await scene.queue(size, newClientId())
    return () => scene.kind.release({ key: scene.key, id })
  },
  'release and sweep, each waiter of a dead client of its own': async (scene, size) => {
    const { id } = await scene.hold()
    await scene.queue(size)
    return () => scene.kind.release({ key: scene.key, id })
  },
  'release and sweep, all waiters expired at once': async (scene, size) => {
    const { id } = await scene.hold()
    // The waiter that is added last has a longer expiry, so the queue itself does not expire.
    await scene.queue(size, undefined, SHORT)
    await scene.queue(1)
    await sleep(2 * SHORT)
    return () => scene.kind.release({ key: scene.key, id })
  },
  'acquire, after the whole queue has expired': expired,
  'the same with `lazyfree-lazy-expire yes`': async (scene, size) => {
    await scene.freeLazily()
    return expired(scene, size)
  },
  'tend, waiters of the end of the queue': async (scene, size) => {
    await scene.hold()
    const queued = await scene.queue(size)
    await scene.tend(queued)
    return () => oneByOne(20, () => scene.tend(queued.slice(-TENDED)))
  },
  'tend, after the deadlines of all were over at once': async (scene, size) => {
    await scene.hold()
    const queued = await scene.queue(size)
    await scene.tend(queued, SHORT)
    await sleep(2 * SHORT)
    return () => oneByOne(20, () => scene.tend(queued.slice(-TENDED)))
  },
  'tend, the lease has lapsed and those ahead are of dead clients': async (scene, size) => {
    await scene.hold()
    await scene.queue(size)
    const queued = await scene.queue(Math.min(size, TENDED), await scene.listening())
    await scene.tend(queued)
    await scene.lapse()
    return () => scene.tend(queued)
  },
  'forced release, live waiters': async (scene, size) => {
    await scene.hold()
    await scene.queue(size, await scene.listening())
    return () => oneByOne(Math.min(size, 50), () => scene.kind.inspection.forceRelease(scene.key))
  },
  'forced release, of so many holds of one owner': async (scene, size) => {
    const client = await scene.listening()
    await inBatches(size, () => scene.kind.attempt(scene.claim(client, 'me'), 0))
    return () => scene.kind.inspection.forceRelease(scene.key)
  },
  'inspect, page by page': async (scene, size) => {
    await scene.hold()
    await scene.queue(size)
    return () => scene.kind.inspection.inspect(scene.key)
  },
}

/** Measures a release whose message is received by `size` clients. */
const released: Case = async (scene, size) => {
  await scene.hear(size)
  return () =>
    oneByOne(20, async () => {
      const { id } = await scene.hold()
      await scene.kind.release({ key: scene.key, id })
    })
}

const all: readonly (readonly [what: string, prepare: Case, sizes: readonly number[]])[] = [
  ...Object.entries(cases).map(([what, prepare]) => [what, prepare, SIZES] as const),
  // By default, Redis accepts 5,000 clients with two connections each.
  [HEARD, released, [1, 1_000, 5_000]],
]

export async function scripts(progress: (line: string) => void): Promise<ScriptTime[]> {
  await using own = await startServer()
  const { server } = own
  const connection = new Connection(clientsOf(own.running.url).make(60_000), systemClock, 60_000, {
    up() {},
    down() {},
  })
  connection.open()
  const runner = new Scripts(connection, texts, { cluster: false, inboxes: keys.inboxPrefix(''), tokenMemory: 600_000 })
  const make = (waiterTtl: number) =>
    mutex.make({
      names: keys,
      scripts: runner,
      replicated: undefined,
      waiterTtl,
      newId: () => newHoldId(newClientId()),
      warn() {},
    })
  // Turns off expiry in the background. So an expired key is removed by the first command that touches it, and that
  // command is the measured script.
  await server.redis.call('DEBUG', 'SET-ACTIVE-EXPIRE', '0')
  const times: ScriptTime[] = []
  for (const [what, prepare, sizes] of all) {
    for (const size of sizes) {
      progress(`${what}: ${size}`)
      const micros: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        await using scene = new Scene(server, make)
        const run = await prepare(scene, size)
        micros.push(...(await scriptTimes(server, run)))
      }
      micros.sort((a, b) => a - b)
      const [least, most] = [micros[0]!, micros.at(-1)!]
      times.push({ what, size, calls: micros.length, least, median: micros[Math.floor(micros.length / 2)]!, most })
    }
  }
  connection.close()
  return times
}
