/**
 * Makes random calls of the scripts in lua/permits/. After each call, checks that the lock's data in Redis is
 * consistent.
 */
import { expect } from 'vitest'
import { decodePermitsClaim } from '../../src/kinds/claim.ts'
import type { Random } from '../kit/random.ts'
import { caller } from './callers.ts'
import { type Asker, another, asker, type TestSemaphore } from './semaphore.ts'
import { WAITER } from './test-lock.ts'

const CALLS = 400
export const SEEDS = [1, 2, 3]

export interface Holder {
  readonly claim: NonNullable<ReturnType<typeof decodePermitsClaim>>
  readonly token: number
  /**
   * Whether the holder's lease has lapsed. The holder stays in Redis until a later call notices this and removes it.
   */
  readonly lapsed: boolean
}

export interface Waiter {
  readonly claim: Holder['claim']
  readonly ticket: number
}

/** The data of a lock in Redis. */
export interface Seen {
  /** The fields of the lock's hash that are not holders. */
  readonly fields: Readonly<Record<string, string>>
  readonly holders: readonly Holder[]
  readonly queue: readonly Waiter[]
  /** The readers' queue of a read-write lock. */
  readonly readers: readonly Waiter[]
}

export type Answer = Awaited<ReturnType<TestSemaphore['acquire']>>

export abstract class History {
  protected readonly random: Random
  /** The data before the latest call. */
  protected before: Seen = { fields: {}, holders: [], queue: [], readers: [] }
  readonly #lock: TestSemaphore
  /** One caller for each of three clients. The inbox of the last one has no subscriber. */
  readonly #clients: readonly Asker[] = ['ada', 'ben', 'deaf'].map(name => asker(caller(name), '1/3'))
  readonly #asked: Asker[] = []
  readonly #tickets = new Map<string, number>()
  #token = 0

  constructor(lock: TestSemaphore, random: Random) {
    this.#lock = lock
    this.random = random
  }

  /** Completes a new call: sets the number of permits that it asks for, and may set another owner. */
  protected abstract newcomer(call: Asker): Asker

  /** Checks the answer to a call that asked for the lock. */
  protected acquired(_who: Asker, _answer: Answer, _told: string): void {}

  protected abstract check(now: Seen, told: string): void

  async run(): Promise<void> {
    const ear = this.#lock.redis.duplicate()
    const [ada, ben] = this.#clients
    await ear.subscribe(`lock:inbox:${ada!.client}`, `lock:inbox:${ben!.client}`)
    const told: string[] = []
    for (let i = 0; i < CALLS; i++) {
      told.push(await this.#step())
      const now = await this.#look(told.slice(-6).join(' · '))
      this.check(now, told.slice(-6).join(' · '))
      this.before = now
    }
  }

  /** Makes one random call, and returns a description of it. */
  async #step(): Promise<string> {
    const lock = this.#lock
    const random = this.random
    const who = this.#somebody()
    const at = `${who.name} ${this.#asked.indexOf(who)} ${who.wants}`
    const what = random.pick(['acquire', 'queue', 'queue', 'release', 'release', 'leave', 'tend', 'lapse', 'force'])
    if (what === 'acquire' || what === 'queue') {
      const answer = await lock.acquire(who, what === 'queue' ? 'queue' : undefined)
      if (answer.ticket) this.#tickets.set(who.id, answer.ticket)
      const told = `${what} ${at}: ${answer.status}`
      this.acquired(who, answer, told)
      return told
    }
    if (what === 'release') return `${what} ${at}: ${await lock.release(who)}`
    if (what === 'leave') return `${what} ${at}: ${await lock.leave(who)}`
    if (what === 'lapse') {
      if (this.before.holders.some(({ claim }) => claim.id === who.id)) await lock.lapse(who)
    } else if (what === 'force') {
      if (random.chance(0.2)) await lock.forceRelease(another(who).id, random.chance(0.5) ? who.id : undefined)
    } else {
      const ticket = this.#tickets.get(who.id)
      if (ticket) await lock.tend([who, ticket])
    }
    return `${what} ${at}`
  }

  async #look(told: string): Promise<Seen> {
    const { redis, names } = this.#lock
    const keys = [names.lock, names.deadlines, names.queue, `${names.lock}:r`]
    const [hash, deadlines, queue, readers, lives] = await Promise.all([
      redis.hgetall(names.lock),
      redis.zrangebyscore(names.deadlines, 0, `(${WAITER}`, 'WITHSCORES'),
      this.#queue(names.queue),
      this.#queue(`${names.lock}:r`),
      Promise.all(keys.map(key => redis.pttl(key))),
    ])
    const ends = new Map(deadlines.flatMap((id, i) => (i % 2 === 0 ? [[id, Number(deadlines[i + 1])]] : [])))
    const holders = Object.entries(hash).flatMap(([name, record]): Holder[] => {
      if (name.length !== 28) return []
      const claim = decodePermitsClaim(record.slice(17))!
      return [{ claim, token: Number(record.slice(0, 16)), lapsed: ends.get(name) === 1 }]
    })
    const { taken = '0', ...fields } = hash
    expect(Number(taken), told).toBe(sumOf(holders))
    expect([...ends.keys()].sort(), told).toEqual(holders.map(({ claim }) => claim.id).sort())
    for (const { claim } of [...queue, ...readers]) expect([...ends.keys()], told).not.toContain(claim.id)
    const largest = Math.max(this.#token, ...holders.map(({ token }) => token))
    expect(Number(fields['clock'] ?? largest), `I2 ${told}`).toBeGreaterThanOrEqual(largest)
    this.#token = largest
    expect(lives, `I7 ${told}`).not.toContain(-1)
    return { fields, holders, queue, readers }
  }

  async #queue(key: string): Promise<Waiter[]> {
    const entries = await this.#lock.redis.zrange(key, 0, '-1', 'WITHSCORES')
    return entries.flatMap((text, i): Waiter[] =>
      i % 2 === 0 ? [{ claim: decodePermitsClaim(text)!, ticket: Number(entries[i + 1]) }] : [],
    )
  }

  /** In most cases, returns a caller that holds or is queued; otherwise a newcomer or an earlier caller. */
  #somebody(): Asker {
    const { holders, queue, readers } = this.before
    const ids = new Set([...holders, ...queue, ...readers].map(({ claim }) => claim.id))
    const here = this.#asked.filter(({ id }) => ids.has(id))
    if (here.length > 0 && this.random.chance(0.6)) return this.random.pick(here)
    if (this.#asked.length > 0 && !this.random.chance(0.8)) return this.random.pick(this.#asked)
    const who = this.newcomer(another(this.random.pick(this.#clients)))
    this.#asked.push(who)
    return who
  }
}

/** Returns the sum of the permits that these holders have taken. */
export function sumOf(holders: readonly Holder[]): number {
  return holders.reduce((sum, { claim }) => sum + claim.wants[0], 0)
}
