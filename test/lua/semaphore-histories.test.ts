/** lua/permits/: whatever is called in whatever order, what Redis has of a semaphore agrees with itself after each call. */
import { expect, test } from 'vitest'
import { decodePermitsClaim } from '../../src/kinds/claim.ts'
import { Random } from '../kit/random.ts'
import { caller } from './callers.ts'
import { type Asker, another, asker, TestSemaphore } from './semaphore.ts'

const CALLS = 400
const NUMBERS = [3, 4]

class History {
  readonly #semaphore: TestSemaphore
  readonly #random: Random
  /** Of three clients; nobody hears the last one. */
  readonly #clients: readonly Asker[] = ['ada', 'ben', 'deaf'].map(name => asker(caller(name), '1/3'))
  readonly #asked: Asker[] = []
  readonly #tickets = new Map<string, number>()
  #token = 0

  constructor(semaphore: TestSemaphore, random: Random) {
    this.#semaphore = semaphore
    this.#random = random
  }

  async listen(): Promise<void> {
    const ear = this.#semaphore.redis.duplicate()
    const [ada, ben] = this.#clients
    await ear.subscribe(`lock:inbox:${ada!.client}`, `lock:inbox:${ben!.client}`)
  }

  /** One call, told as text. */
  async step(): Promise<string> {
    const semaphore = this.#semaphore
    const random = this.#random
    const who = await this.#somebody()
    const at = `${who.name} ${this.#asked.indexOf(who)} ${who.wants}`
    const what = random.pick(['acquire', 'queue', 'queue', 'release', 'release', 'leave', 'tend', 'lapse', 'force'])
    if (what === 'acquire' || what === 'queue') {
      const answer = await semaphore.acquire(who, what === 'queue' ? 'queue' : undefined)
      if (answer.ticket) this.#tickets.set(who.id, answer.ticket)
      return `${what} ${at}: ${answer.status}`
    }
    if (what === 'release') return `${what} ${at}: ${await semaphore.release(who)}`
    if (what === 'leave') return `${what} ${at}: ${await semaphore.leave(who)}`
    if (what === 'lapse') {
      if ((await semaphore.state()).deadlines.includes(who.id)) await semaphore.lapse(who)
    } else if (what === 'force') {
      if (random.chance(0.2)) await semaphore.forceRelease(another(who).id, random.chance(0.5) ? who.id : undefined)
    } else {
      const ticket = this.#tickets.get(who.id)
      if (ticket) await semaphore.tend([who, ticket])
    }
    return `${what} ${at}`
  }

  async check(told: string): Promise<void> {
    const { redis, names } = this.#semaphore
    const { taken = '0', ...fields } = await redis.hgetall(names.lock)
    const holders = Object.entries(fields).filter(([name]) => name.length === 28)
    const claims = holders.map(([, record]) => decodePermitsClaim(record.slice(17))!)
    const sum = claims.reduce((sum, { wants }) => sum + wants[0], 0)
    expect(Number(taken), told).toBe(sum)
    expect(sum, `I1 ${told}`).toBeLessThanOrEqual(Math.max(...NUMBERS))
    const deadlines = await redis.zrange(names.deadlines, 0, '-1')
    expect(deadlines.sort(), told).toEqual(holders.map(([id]) => id).sort())
    const queue = (await redis.zrange(names.queue, 0, '-1')).map(text => decodePermitsClaim(text)!)
    for (const { id } of queue) expect(deadlines, told).not.toContain(id)
    const [head] = queue
    if (head)
      expect(sum + head.wants[0], `I4 the head fits, and is not admitted: ${told}`).toBeGreaterThan(head.wants[1])
    const tokens = holders.map(([, record]) => Number(record.slice(0, 16)))
    expect(new Set(tokens).size, `I2 ${told}`).toBe(tokens.length)
    const largest = Math.max(this.#token, ...tokens)
    expect(Number(fields['clock'] ?? largest), `I2 ${told}`).toBeGreaterThanOrEqual(largest)
    this.#token = largest
    for (const key of Object.values(names)) expect(await redis.pttl(key), `I7 ${key} ${told}`).not.toBe(-1)
  }

  /** Mostly one who holds, or is queued; or a newcomer; or one whose call is over. */
  async #somebody(): Promise<Asker> {
    const { holders, queue } = await this.#semaphore.state()
    const here = this.#asked.filter(({ id }) => holders.includes(id) || queue.includes(id))
    if (here.length > 0 && this.#random.chance(0.6)) return this.#random.pick(here)
    return this.#asked.length === 0 || this.#random.chance(0.8) ? this.#newcomer() : this.#random.pick(this.#asked)
  }

  #newcomer(): Asker {
    const of = this.#random.pick(NUMBERS)
    const who = { ...another(this.#random.pick(this.#clients)), wants: `${this.#random.int(1, of)}/${of}` }
    this.#asked.push(who)
    return who
  }
}

test.each([1, 2, 3, 4, 5, 6])('seed %i', async seed => {
  const history = new History(await TestSemaphore.on(), new Random(seed))
  await history.listen()
  const told: string[] = []
  for (let i = 0; i < CALLS; i++) {
    told.push(await history.step())
    await history.check(told.slice(-6).join(' · '))
  }
})
