/**
 * One lock on a real server. Tests set its state, call its scripts, read its state, and collect the messages of the
 * scripts.
 */
import type { Redis } from 'ioredis'
import { test as base, expect, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Names, VoteMode } from '../../src/kind.ts'
import { decodeHolder, decodeNames } from '../../src/kinds/claim.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { type MutexScripts, mutexScripts } from '../../src/kinds/scripts.ts'
import { clientsOf } from '../../src/redis/clients.ts'
import { Connection } from '../../src/redis/connection.ts'
import { newClientId } from '../../src/redis/ids.ts'
import { Keys, Namespace, unlockChannel } from '../../src/redis/keys.ts'
import { Scripts } from '../../src/redis/scripts.ts'
import { newHoldId } from '../kit/ids.ts'
import { type NamesOf, namesOf } from '../kit/names.ts'
import { freshKey, ownServer, plainRedis, redisUrl } from '../kit/redis.ts'
import { type Caller, claimOf } from './callers.ts'

/** What the deadline of a waiter has more than that of a hold, ms (lua/holder.lua). */
export const WAITER = 1e13
/** How long a free lock keeps its last token, ms. */
export const MEMORY = 60_000

export interface Given {
  readonly holder?: Caller
  /** The time left of the holder's lease, in ms. A negative time means that the lease has lapsed. */
  readonly endsIn?: number
  /** The holder's re-entrant holds, without the first hold. */
  readonly reentries?: readonly Caller[]
  /** The waiters, in the order of the queue, unless their `joinedAgo` says otherwise. */
  readonly waiters?: readonly Caller[]
  /** The last ticket or token issued, µs; default: the server's time. */
  readonly clock?: number
}

export interface Asking {
  readonly queue?: boolean
  /** A number: as `queue`, unless so many callers are queued. */
  readonly mode?: VoteMode | number
  /** The smallest token or ticket that may be issued, µs. */
  readonly floor?: number
  /** The token of the vote that the caller gives back. */
  readonly returned?: number
}

export interface Message {
  readonly to: string
  readonly text: string
}

/**
 * A heartbeat's reply for one waiter. It is the waiter's position, or its grant, which has a token, a ttl in ms, and a
 * cause.
 */
type Place = number | [token: string, ttl: number, how: string]

/** Returns the message that unfair waiters receive when a release leaves the lock free. */
export function freedBy({ client }: Caller): Message {
  return { to: 'unlock', text: `free ${client}` }
}

/** Returns when a lease begins, in µs, from its end `until` and its length `lease`, both in ms. */
function fromFor(until: number, lease: number): number {
  return (until - lease) * 1_000
}

/** Makes a lock that no other test uses, on the server that all tests share. */
export function sharedLock(): Promise<TestLock> {
  return lockOn(redisUrl())
}

/** Declares a test, which receives a lock that no other test uses, on the server that all tests share. */
export const test = base.extend('lock', () => sharedLock())

/** Declares a test, which receives a lock on a server of its own. */
export const testAlone = base.extend('lock', () => lockOnOwnServer())

/** Makes a lock on a server of its own, for tests that count commands or break the server. */
export async function lockOnOwnServer(): Promise<TestLock> {
  return lockOn((await ownServer()).url)
}

async function lockOn(url: string): Promise<TestLock> {
  const connection = new Connection(clientsOf(url).make(5_000), systemClock, 5_000, {})
  onTestFinished(() => connection.close())
  connection.uplink.open()
  await connection.run(redis => redis.ping())
  return new TestLock(
    url,
    plainRedis(url),
    new Scripts<MutexScripts>(connection, mutexScripts, {
      cluster: false,
      inboxes: 'lock:inbox:',
      tokenMemory: MEMORY,
    }),
  )
}

export class TestLock {
  readonly redis: Redis
  readonly scripts: Scripts<MutexScripts>
  /** What scripts take. */
  readonly keys: Names
  readonly names: NamesOf<'lock' | 'queue' | 'deadlines'>
  readonly inbox: string
  readonly #url: string

  constructor(url: string, redis: Redis, runner: Scripts<MutexScripts>, key = freshKey()) {
    const keys = new Keys(new Namespace('lock:', false), mutex)
    this.#url = url
    this.redis = redis
    this.scripts = runner
    this.keys = keys.of(key)
    this.names = namesOf(this.keys.lock, 'lock', 'queue', 'deadlines')
    this.inbox = keys.inboxPrefix(this.names.lock)
  }

  /** Makes another lock on the same connections. */
  another(): TestLock {
    return new TestLock(this.#url, this.redis, this.scripts)
  }

  /** Writes a state in the format of lua/README.md, with expiry times so late that no key expires during a test. */
  async given({ holder, endsIn = 10_000, reentries = [], waiters = [], clock }: Given): Promise<void> {
    const micros = await this.micros()
    const now = Math.floor(micros / 1000)
    const keep = now + 1.05 * MEMORY
    const hash: Record<string, string | number> = { clock: clock ?? micros, keep }
    if (holder) {
      hash['holder'] = `${micros} ${fromFor(now + endsIn, holder.lease)} ${claimOf(holder)}`
    }
    if (reentries.length > 0) hash['holds'] = 1
    if (waiters.length > 0) hash['queued'] = now + MEMORY
    const write = this.redis.multi().hset(this.names.lock, hash).pexpireat(this.names.lock, keep)
    if (reentries.length > 0) {
      for (const { id } of [holder!, ...reentries]) write.zadd(this.names.deadlines, now + endsIn, id)
    }
    waiters.forEach((waiter, i) => {
      const { id, headStart, deadlineIn, joinedAgo = waiters.length - i } = waiter
      write.zadd(this.names.queue, micros - joinedAgo * 1000 - headStart, claimOf(waiter))
      if (deadlineIn !== undefined) write.zadd(this.names.deadlines, WAITER + now + deadlineIn, id)
    })
    write.pexpireat(this.names.queue, now + MEMORY).pexpireat(this.names.deadlines, keep)
    await write.exec()
  }

  /**
   * Makes one attempt. With `queue`, a refused caller joins the queue. A client sends a `floor`, or the `mode` 'raise'
   * 'same' or 'place', only if several servers keep the lock (lua/mutex/acquire.lua).
   */
  async acquire(who: Caller, { queue = false, mode, floor, returned }: Asking = {}) {
    const args = [claimOf(who), queue ? 'queue' : mode, floor, returned] as const
    const { status, values } = await this.scripts.run('acquire', this.keys, args)
    if (status === 'unfinished' || status === 'absent') return { status }
    if (status === 'full') return { status, waiters: Number(values[0]) }
    if (status !== 'refused') return { status, token: Number(values[0]), ttl: Number(values[1] ?? who.lease) }
    const [ttl, position, ticket, heldFor, clock, bytes] = values.slice(0, 6).map(Number)
    const { owner, label } = decodeNames(values.slice(6).join(' '), bytes!)
    return { status, ttl, position, ticket, owner, label, heldFor, clock }
  }

  /** Acquires the lock for a caller that must be granted the lock. Returns the token. */
  async grant(who: Caller): Promise<number> {
    const { status, token } = await this.acquire(who)
    if (token === undefined) throw new Error(`not granted but ${status}`)
    return token
  }

  /** Makes an attempt that queues the caller. Fails if the lock is free. Returns the ticket. */
  async enqueue(who: Caller): Promise<number> {
    const { status, ticket } = await this.acquire(who, { queue: true })
    if (ticket === undefined) throw new Error(`not queued but ${status}`)
    return ticket
  }

  /** Releases the hold. `used` is the last token that the client itself has issued, in hand-offs to its own waiters. */
  async release({ id, minHold }: Caller, used?: number) {
    const args = minHold ? ([id, used ?? 0, 1] as const) : ([id, used] as const)
    const { status, values } = await this.scripts.run('release', this.keys, args)
    if (status !== 'passed') return { status }
    return { status, id: values[0], token: Number(values[1]), ttl: Number(values[2]) }
  }

  /** Withdraws the caller's request. `queued: false` means that the caller never tried to join the queue. */
  async leave(who: Caller, { queued = true } = {}): Promise<string> {
    const entry = queued ? claimOf(who) : undefined
    return (await this.scripts.run('leave', this.keys, [who.id, entry])).status
  }

  /** Sends the heartbeat of waiters of one client, each with its ticket. */
  async tend(...waiters: readonly (readonly [Caller, number])[]) {
    const ttl = waiters[0]![0].ttl
    const list = waiters.flatMap(([who, ticket]) => [claimOf(who), ticket])
    const { status, values } = await this.scripts.run('tend', this.keys, [ttl, ...list])
    if (status === 'unfinished') return { status }
    const [left, heldFor, clock, bytes, text, ...places] = values as [
      number,
      number,
      string,
      number,
      string,
      ...Place[],
    ]
    const { owner, label } = decodeNames(text, bytes)
    return { ttl: left, owner, label, heldFor, clock: Number(clock), places }
  }

  async sweep(): Promise<string> {
    return (await this.scripts.run('sweep', this.keys, [])).status
  }

  async forceRelease(request: string = newHoldId(newClientId()), only?: string): Promise<string> {
    return (await this.scripts.run('forceRelease', this.keys, [request, only])).status
  }

  /**
   * Records in Redis a hand-off within a client: the client has passed the lock from the hold `first` to another of its
   * waiters, `who`, with this token. In Redis, the hold keeps the id of `first`.
   */
  async pass(first: Caller, who: Caller, token: number) {
    const claim = claimOf({ ...who, id: first.id })
    const { status, values } = await this.scripts.run('pass', this.keys, [first.id, claim, token, who.lease])
    return status === 'gone' ? { status } : { status, ttl: Number(values[0]), queued: values[1] === '1' }
  }

  /** Returns the server's time, in µs. */
  async micros(): Promise<number> {
    const [seconds, micros] = await this.redis.time()
    return Number(seconds) * 1_000_000 + Number(micros)
  }

  /**
   * Reads the deadline of each hold, in ms by the server's clock. The result is empty until the holder has re-entered.
   * From then on, Redis has a deadline for each hold.
   */
  async deadlines(): Promise<Record<string, number>> {
    const flat = await this.redis.zrangebyscore(this.names.deadlines, 0, `(${WAITER}`, 'WITHSCORES')
    return Object.fromEntries(flat.flatMap((id, i) => (i % 2 === 0 ? [[id, Number(flat[i + 1])]] : [])))
  }

  /**
   * Reads the fields of the lock's hash, with the field `holder` split into its parts. In the result, `hold` is the id
   * of the holder's first hold. It is absent if the first hold was released while the holder had other holds.
   */
  async hash(): Promise<Record<string, string>> {
    const { holder, ...fields } = await this.redis.hgetall(this.names.lock)
    if (holder === undefined) return fields
    // The scripts rely on the lengths of the first three parts.
    expect(holder).toMatch(/^\d{16} \d{16} \S{28} /)
    const { token, until, claim } = decodeHolder(holder)!
    const left = 'holds' in fields && (await this.redis.zscore(this.names.deadlines, claim.id)) === null
    const live = left ? {} : { hold: claim.id }
    const { owner, label } = claim
    return { ...fields, token: String(token), until: String(until), ...live, owner, label }
  }

  /** Changes the holder's token, or the end of its lease. */
  async amendHolder({ token, until }: { token?: number; until?: number }): Promise<void> {
    const holder = (await this.redis.hget(this.names.lock, 'holder'))!
    const [oldToken, oldFrom] = holder.split(' ', 2)
    const from = until === undefined ? oldFrom : fromFor(until, decodeHolder(holder)!.claim.lease)
    const amended = `${token ?? oldToken} ${from} ${holder.slice(34)}`
    await this.redis.hset(this.names.lock, 'holder', amended)
  }

  async holder(): Promise<string | undefined> {
    return (await this.hash())['hold']
  }

  /** Returns the ids of the waiters, in the order of the queue. */
  async order(): Promise<string[]> {
    return (await this.redis.zrange(this.names.queue, 0, '-1')).map(entry => entry.split(' ', 1)[0]!)
  }

  async deadline({ id }: Caller): Promise<number | undefined> {
    const score = Number(await this.redis.zscore(this.names.deadlines, id))
    return score < WAITER ? undefined : score - WAITER
  }

  /**
   * Reads every byte of the lock's keys, and when they expire. Does not use DUMP for a hash: Redis rehashes a large
   * hash step by step, so the order of its fields in a dump may change although nothing is written.
   */
  async snapshot(): Promise<unknown[]> {
    const keys = Object.values(this.names)
    const life = (key: string) => this.redis.call('PEXPIRETIME', key)
    const content = async (key: string) =>
      (await this.redis.type(key)) === 'hash' ? this.redis.hgetall(key) : this.redis.dumpBuffer(key)
    return Promise.all(keys.flatMap(key => [content(key), life(key)]))
  }

  async lapse(): Promise<void> {
    await this.amendHolder({ until: Math.floor((await this.micros()) / 1000) - 1 })
  }

  /**
   * Collects the messages to the clients of these callers, and the messages by which unfair waiters learn that the lock
   * is free. Leaves out messages that begin with `entered`. Returns a function that resolves to all messages that were
   * sent before the function was called.
   */
  async listen(...callers: readonly Caller[]): Promise<() => Promise<Message[]>> {
    const everything = await this.listenToEverything(...callers)
    return async () => (await everything()).filter(({ text }) => !text.startsWith('entered '))
  }

  async listenToEverything(...callers: readonly Caller[]): Promise<() => Promise<Message[]>> {
    const unlock = unlockChannel(this.names.lock)
    const channels = new Map([[unlock, 'unlock']])
    for (const { client, name } of callers) channels.set(this.inbox + client, name)
    const messages: Message[] = []
    let end = () => {}
    const ear = plainRedis(this.#url).on('message', (channel: string, text: string) => {
      if (text === 'end') end()
      else messages.push({ to: channels.get(channel)!, text })
    })
    await ear.subscribe(...channels.keys())
    return async () => {
      const ended = new Promise<void>(resolve => {
        end = resolve
      })
      // Redis delivers messages in order. So when the message `end` arrives, all earlier messages have arrived.
      await this.redis.publish(unlock, 'end')
      await ended
      return messages
    }
  }

  /** Returns the message that announces a grant to a waiter. */
  grantMessage(reason: 'handoff' | 'expiry', to: Caller, token: number): Message {
    return { to: to.name, text: `${reason} ${to.id} ${token} ${this.names.lock}` }
  }

  /** Makes the server refuse to allocate memory from now on. Call this only with a server that no other test uses. */
  async exhaustMemory(): Promise<void> {
    await this.redis.config('SET', 'maxmemory-policy', 'noeviction')
    await this.redis.config('SET', 'maxmemory', '1')
  }

  /**
   * Returns the commands that scripts call in Redis during `action`, sorted. Call this only with a server that no other
   * test uses.
   */
  async callsInside(action: () => Promise<unknown>): Promise<string[]> {
    await this.redis.config('RESETSTAT')
    await action()
    const stats = await this.redis.info('commandstats')
    const counts = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)] as unknown as [string, string, string][]
    const fromOutside = /^(evalsha|eval|config\|resetstat)$/
    return counts
      .filter(([, command]) => !fromOutside.test(command))
      .flatMap(([, command, calls]) => Array<string>(Number(calls)).fill(command.toUpperCase()))
      .sort()
  }
}
