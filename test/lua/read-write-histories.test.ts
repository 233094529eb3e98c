/** lua/permits/ as a read-write lock: whatever is called in whatever order, what Redis has agrees with itself, and phases alternate. */
import { expect, test } from 'vitest'
import { type DecodedClaim, decodePermitsClaim } from '../../src/kinds/claim.ts'
import { Random } from '../kit/random.ts'
import { anonymous } from './callers.ts'
import { type Asker, another, asker, TestSemaphore } from './semaphore.ts'

const CALLS = 400
const [READ, WRITE] = ['1/999999999', '1000000000/1000000000'] as const
const ALL = 1_000_000_000

interface Holder {
  readonly claim: DecodedClaim
  readonly token: number
  readonly writes: boolean
}

interface Waiter {
  readonly id: string
  readonly ticket: number
}

interface State {
  readonly holders: readonly Holder[]
  readonly readers: readonly Waiter[]
  readonly writers: readonly Waiter[]
}

class History {
  readonly #lock: TestSemaphore
  readonly #random: Random
  /** Of three clients; nobody hears the last one. */
  readonly #clients: readonly Asker[] = ['ada', 'ben', 'deaf'].map(name => asker(anonymous(name), READ))
  readonly #asked: Asker[] = []
  readonly #tickets = new Map<string, number>()
  /** How many writers' turns have begun since each reader was queued. */
  readonly #turns = new Map<string, number>()
  readonly #lapsed = new Set<string>()
  #before: State = { holders: [], readers: [], writers: [] }
  #token = 0

  constructor(lock: TestSemaphore, random: Random) {
    this.#lock = lock
    this.#random = random
  }

  async listen(): Promise<void> {
    const ear = this.#lock.redis.duplicate()
    const [ada, ben] = this.#clients
    await ear.subscribe(`lock:inbox:${ada!.client}`, `lock:inbox:${ben!.client}`)
  }

  /** One call, told as text. */
  async step(): Promise<string> {
    const lock = this.#lock
    const random = this.#random
    const who = this.#somebody()
    const at = `${who.name} ${this.#asked.indexOf(who)} ${who.wants === READ ? 'reads' : 'writes'}`
    const what = random.pick(['acquire', 'queue', 'queue', 'release', 'release', 'leave', 'tend', 'lapse', 'force'])
    if (what === 'acquire' || what === 'queue') {
      const held = this.#heldBy(who)
      const queued = [...this.#before.readers, ...this.#before.writers].some(({ id }) => id === who.id)
      const repeated = this.#before.holders.some(({ claim }) => claim.id === who.id)
      const answer = await lock.acquire(who, what === 'queue' ? 'queue' : undefined)
      if (answer.ticket) this.#tickets.set(who.id, answer.ticket)
      const told = `${what} ${at}: ${answer.status}`
      // One that has just lapsed is another matter.
      if (held.live && !repeated) {
        const upgrade = who.wants === WRITE && !held.writes
        if (!upgrade) expect(answer, `re-entry ${told}`).toMatchObject({ status: 'reentered', token: held.token })
        else if (!queued) expect(answer.status, told).toBe('deadlock')
      }
      return told
    }
    if (what === 'release') return `${what} ${at}: ${await lock.release(who)}`
    if (what === 'leave') return `${what} ${at}: ${await lock.leave(who)}`
    if (what === 'lapse') {
      if (this.#before.holders.some(({ claim }) => claim.id === who.id)) {
        await lock.lapse(who)
        this.#lapsed.add(who.id)
      }
    } else if (what === 'force') {
      if (random.chance(0.2)) await lock.forceRelease(another(who).id, random.chance(0.5) ? who.id : undefined)
    } else {
      const ticket = this.#tickets.get(who.id)
      if (ticket) await lock.tend([who, ticket])
    }
    return `${what} ${at}`
  }

  async check(told: string): Promise<void> {
    const { redis, names } = this.#lock
    const keys = [...Object.values(names), `${names.lock}:readers`]
    const [hash, deadlines, readers, writers, lives] = await Promise.all([
      redis.hgetall(names.lock),
      redis.zrange(names.deadlines, 0, '-1'),
      this.#queue(`${names.lock}:readers`, READ),
      this.#queue(names.queue, WRITE),
      Promise.all(keys.map(key => redis.pttl(key))),
    ])
    const { taken = '0', ...fields } = hash
    const holders = Object.entries(fields).flatMap(([name, record]): Holder[] => {
      if (name.length !== 28) return []
      const claim = decodePermitsClaim(record.slice(17))!
      return [{ claim, token: Number(record.slice(0, 16)), writes: claim.wants[0] === ALL }]
    })
    const wanted = ({ writes }: Holder) => (writes ? ALL : 1)
    expect(Number(taken), told).toBe(holders.reduce((sum, holder) => sum + wanted(holder), 0))
    expect(deadlines.sort(), told).toEqual(holders.map(({ claim }) => claim.id).sort())
    const owners = new Set(holders.map(({ claim }) => claim.owner))
    if (holders.some(({ writes }) => writes)) expect(owners.size, `I1 ${told}`).toBe(1)

    // What each owner with a name holds.
    const named = new Map<string, number>()
    for (const holder of holders) {
      const { owner, id } = holder.claim
      if (owner !== id) named.set(`@${owner}`, (named.get(`@${owner}`) ?? 0) + wanted(holder))
    }
    const noted = Object.entries(fields).filter(([name]) => name.startsWith('@'))
    expect(new Map(noted.map(([name, text]) => [name, Number(text.slice(46))])), told).toEqual(named)

    for (const { id } of [...readers, ...writers]) expect(deadlines, told).not.toContain(id)
    if (holders.length === 0) expect([...readers, ...writers], `I4 ${told}`).toEqual([])
    else if (!holders.some(({ writes }) => writes) && writers.length === 0) expect(readers, `I4 ${told}`).toEqual([])
    this.#checkPhases({ holders, readers, writers }, told)

    const largest = Math.max(this.#token, ...holders.map(({ token }) => token))
    expect(Number(fields['clock'] ?? largest), `I2 ${told}`).toBeGreaterThanOrEqual(largest)
    this.#token = largest
    expect(lives, `I7 ${told}`).not.toContain(-1)
  }

  #checkPhases(now: State, told: string): void {
    const before = this.#before
    const known = new Set(before.holders.map(({ token }) => token))
    const [writer] = now.holders.filter(({ writes, token }) => writes && !known.has(token))
    const wrote = before.holders.some(({ writes }) => writes)
    const waited = before.readers.filter(({ id }) => now.readers.some(reader => reader.id === id))
    if (wrote && !now.holders.some(({ writes, token }) => writes && known.has(token)))
      expect(waited, `I3 a writer has ended, and not all readers are admitted: ${told}`).toEqual([])
    const reading = before.holders.length > 0 && !wrote
    const entered = now.holders.filter(({ writes, token }) => !writes && !known.has(token))
    const passed = before.writers.filter(({ id }) => now.writers.some(other => other.id === id))
    if (reading && entered.length > 0 && now.holders.some(({ token }) => known.has(token)))
      expect(passed, `I3 a reader was let in past a writer: ${told}`).toEqual([])
    if (writer) {
      const ticket = before.writers.find(({ id }) => id === writer.claim.id)?.ticket
      const earlier = now.writers.filter(
        other => before.writers.some(({ id }) => id === other.id) && other.ticket < ticket!,
      )
      expect(earlier, `I3 a writer was overtaken: ${told}`).toEqual([])
    }
    for (const { id } of now.readers) {
      const turns = (before.readers.some(reader => reader.id === id) ? this.#turns.get(id)! : 0) + (writer ? 1 : 0)
      expect(turns, `I3 a reader waits for a second writer: ${told}`).toBeLessThanOrEqual(1)
      this.#turns.set(id, turns)
    }
    this.#before = now
  }

  async #queue(key: string, wants: string): Promise<Waiter[]> {
    const entries = await this.#lock.redis.zrange(key, 0, '-1', 'WITHSCORES')
    return entries.flatMap((text, i): Waiter[] => {
      if (i % 2 === 1) return []
      const claim = decodePermitsClaim(text)!
      expect(claim.wants.join('/')).toBe(wants)
      return [{ id: claim.id, ticket: Number(entries[i + 1]) }]
    })
  }

  /** What the owner of this call holds; not live where some of it may have lapsed. */
  #heldBy(who: Asker) {
    const { holders } = this.#before
    const theirs = holders.filter(({ claim }) => claim.owner === who.owner && who.owner !== who.id)
    const lapsed = theirs.some(({ claim }) => this.#lapsed.has(claim.id))
    const sameClient = theirs.every(({ claim }) => claim.owner !== claim.id || who.id.startsWith(claim.id.slice(0, 12)))
    return {
      live: theirs.length > 0 && !lapsed && sameClient,
      writes: theirs.some(({ writes }) => writes),
      token: theirs[0]?.token,
    }
  }

  /** Mostly one who holds, or is queued; or a newcomer; or one whose call is over. */
  #somebody(): Asker {
    const { holders, readers, writers } = this.#before
    const ids = new Set([...holders.map(({ claim }) => claim.id), ...[...readers, ...writers].map(({ id }) => id)])
    const here = this.#asked.filter(({ id }) => ids.has(id))
    if (here.length > 0 && this.#random.chance(0.6)) return this.#random.pick(here)
    return this.#asked.length === 0 || this.#random.chance(0.8) ? this.#newcomer() : this.#random.pick(this.#asked)
  }

  /** Without a name, or of an owner with one, or inside a hold of its client. */
  #newcomer(): Asker {
    const random = this.#random
    const client = random.pick(this.#clients)
    const fresh = another(client)
    const outer = this.#before.holders.filter(
      ({ claim }) => claim.id.startsWith(client.client) && claim.owner === claim.id,
    )
    const owner = random.chance(0.2)
      ? 'x'
      : outer.length > 0 && random.chance(0.3)
        ? random.pick(outer).claim.id
        : fresh.id
    const who = { ...fresh, owner, wants: random.chance(0.6) ? READ : WRITE }
    this.#asked.push(who)
    return who
  }
}

test.each([1, 2, 3, 4, 5, 6])('seed %i', async seed => {
  const history = new History(await TestSemaphore.readWrite(), new Random(seed))
  await history.listen()
  const told: string[] = []
  for (let i = 0; i < CALLS; i++) {
    told.push(await history.step())
    await history.check(told.slice(-6).join(' · '))
  }
})
