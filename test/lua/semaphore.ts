/** Calls the scripts of a semaphore or a read-write lock, and reads the lock's keys in Redis. */
import type { Redis } from 'ioredis'
import { test as base, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Names, Runner } from '../../src/kind.ts'
import { encodeClaim } from '../../src/kinds/claim.ts'
import { reading } from '../../src/kinds/permits/read-write.ts'
import { semaphore } from '../../src/kinds/permits/semaphore.ts'
import type { PermitsScripts } from '../../src/kinds/scripts.ts'
import { clientsOf } from '../../src/redis/clients.ts'
import { Connection } from '../../src/redis/connection.ts'
import { Keys, Namespace } from '../../src/redis/keys.ts'
import { type Executor, Scripts, type TextSettings } from '../../src/redis/scripts.ts'
import { newHoldId } from '../kit/ids.ts'
import { type NamesOf, namesOf, renewed } from '../kit/names.ts'
import { freshKey, ownServer, plainRedis, redisUrl } from '../kit/redis.ts'
import type { Caller } from './callers.ts'
import { MEMORY, WAITER } from './test-lock.ts'

/** A caller, and the permits that it wants, as the text `<permits>/<of>`. */
export interface Asker extends Caller {
  readonly wants: string
}

type Kind = typeof semaphore | typeof reading
/** The words for the keys of both kinds. Each kind uses only its own. */
const WORDS = ['lock', 'deadlines', 'queue', 'readers', 'waiting', 'turns', 'shares'] as const

/** Returns what runs the scripts of a kind. */
export function runnerOf(kind: Kind, executor: Executor, settings: TextSettings): Runner<PermitsScripts> {
  return new Scripts<PermitsScripts>(executor, kind.scripts, settings)
}

/** Makes the names of locks of a kind. */
export function keysOf(kind: Kind, cluster: boolean): Keys {
  return new Keys(new Namespace('lock:', cluster), kind)
}

export class TestSemaphore {
  readonly redis: Redis
  /** What scripts take. */
  readonly keys: Names
  readonly names: NamesOf<(typeof WORDS)[number]>
  readonly #scripts: Runner<PermitsScripts>

  constructor(redis: Redis, runner: Runner<PermitsScripts>, keys: Names) {
    this.redis = redis
    this.keys = keys
    this.names = namesOf(keys.lock, ...WORDS)
    this.#scripts = runner
  }

  static async on(url = redisUrl(), kind: Kind = semaphore): Promise<TestSemaphore> {
    const connection = new Connection(clientsOf(url).make(5_000), systemClock, 5_000, {})
    onTestFinished(() => connection.close())
    connection.uplink.open()
    await connection.run(redis => redis.ping())
    const settings = { cluster: false, inboxes: 'lock:inbox:', tokenMemory: MEMORY }
    return new TestSemaphore(plainRedis(url), runnerOf(kind, connection, settings), keysOf(kind, false).of(freshKey()))
  }

  static async readWrite(): Promise<TestSemaphore> {
    return TestSemaphore.on(redisUrl(), reading)
  }

  /** Makes a lock on a server of its own, for tests that would disturb other tests on a shared server. */
  static async onOwnServer(): Promise<TestSemaphore> {
    return TestSemaphore.on((await ownServer()).url)
  }

  /** `mode`: a number as for `Asking`. */
  async acquire(who: Asker, mode?: 'queue' | 'try' | number, waits?: 1) {
    const { status, values } = await this.#scripts.run('acquire', this.keys, [
      claimOf(who),
      mode ?? (waits && 'try'),
      waits,
    ])
    const [first, second, ticket] = values.map(Number)
    if (status === 'granted' || status === 'succeeded' || status === 'reentered')
      return { status, token: first!, ttl: second, around: values[2] }
    if (status === 'full') return { status, waiters: first! }
    return status === 'refused' ? { status, ttl: first!, position: second!, ticket: ticket! } : { status }
  }

  async release({ id, minHold }: Asker) {
    const { status, values } = await this.#scripts.run('release', this.keys, [id, minHold && 1])
    return [status, ...values]
  }

  /** Withdraws the caller's request. `queued: false` means that the caller never tried to join the queue. */
  async leave(who: Asker, { queued = true } = {}): Promise<string> {
    const entry = queued ? claimOf(who) : undefined
    return (await this.#scripts.run('leave', this.keys, [who.id, entry])).status
  }

  async tend(...waiters: readonly (readonly [Asker, number])[]): Promise<unknown[]> {
    const list = waiters.flatMap(([who, ticket]) => [claimOf(who), ticket])
    const { values } = await this.#scripts.run('tend', this.keys, [waiters[0]![0].ttl, ...list])
    return values.slice(5)
  }

  /**
   * Returns the ids of at most `most` holders, beginning after the position `after`. `end` is the position for the next
   * call.
   */
  async holdersAfter(after: string, most: number): Promise<{ ids: string[]; end: string }> {
    const { values } = await this.#scripts.run('inspect', this.keys, [most, after])
    const live = values[2] as string[]
    const [id, deadline] = live.slice(-2)
    return { ids: live.filter((_, i) => i % 2 === 0), end: `${deadline} ${id}` }
  }

  async sweep(): Promise<string> {
    return (await this.#scripts.run('sweep', this.keys, [])).status
  }

  async renew({ id }: Asker, token: number, ms: number): Promise<unknown> {
    const { values } = await this.#scripts.run('renew', renewed(this.keys.lock), [id, token, ms])
    return values[0]
  }

  async forceRelease(request: string, only?: string): Promise<string> {
    return (await this.#scripts.run('forceRelease', this.keys, [request, only])).status
  }

  /** Returns the ids of holders and waiters, and the number of permits taken. */
  async state(): Promise<{ taken: number; holders: string[]; deadlines: string[]; queue: string[] }> {
    const { taken, ...fields } = await this.redis.hgetall(this.names.lock)
    const ids = (names: string[]) => names.map(name => name.split(' ', 1)[0]!)
    return {
      taken: Number(taken ?? 0),
      holders: Object.keys(fields)
        .filter(name => name.length === 28)
        .sort(),
      deadlines: (await this.redis.zrangebyscore(this.names.deadlines, 0, `(${WAITER}`)).sort(),
      queue: ids(await this.redis.zrange(this.names.queue, 0, '-1')),
    }
  }

  async lapse({ id }: Asker): Promise<void> {
    await this.redis.zadd(this.names.deadlines, 1, id)
  }
}

/** Declares a test, which receives a semaphore or a read-write lock that no other test uses. */
export const test = base.extend('semaphore', () => TestSemaphore.on()).extend('lock', () => TestSemaphore.readWrite())

export function asker(who: Caller, wants: string): Asker {
  return { ...who, wants }
}

/** Returns the arguments of a further call by the client of `who`. */
export function another(who: Asker): Asker {
  return { ...who, id: newHoldId(who.client) }
}

export function claimOf({ id, lease, ttl, headStart, owner, name: label, wants, minHold }: Asker): string {
  return encodeClaim({ id, owner, label, lease, headStart: headStart / 1000, wants, minHold }, ttl)
}
