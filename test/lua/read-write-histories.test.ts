/**
 * Tests lua/permits/ as a read-write lock: after each of many random calls, the data in Redis is consistent and phases
 * alternate.
 */
import { expect, test } from 'vitest'
import { Random } from '../kit/random.ts'
import { type Answer, History, type Holder, SEEDS, type Seen, sumOf, type Waiter } from './permits-history.ts'
import { type Asker, TestSemaphore } from './semaphore.ts'

const [READ, WRITE] = ['1/999999999', '1000000000/1000000000'] as const
const ALL = 1_000_000_000

const writes = ({ claim }: Holder) => claim.wants[0] === ALL

class ReadWriteHistory extends History {
  /** For each queued reader, how many writers' turns have begun since it was queued. */
  readonly #turns = new Map<string, number>()

  /**
   * Chooses the owner of the new call. The call names the owner `x`, names no owner, or names the owner of an earlier
   * call. If a call names no owner, its id serves as the owner. The earlier call is always a call of the same client
   * that named no owner and holds the lock. So a new call with the owner of an earlier call is a re-entry.
   */
  protected newcomer(call: Asker): Asker {
    const { random } = this
    const outer = this.before.holders.filter(
      ({ claim }) => claim.id.startsWith(call.client) && claim.owner === claim.id,
    )
    const owner = random.chance(0.2)
      ? 'x'
      : outer.length > 0 && random.chance(0.3)
        ? random.pick(outer).claim.id
        : call.id
    return { ...call, owner, wants: random.chance(0.6) ? READ : WRITE }
  }

  protected override acquired(who: Asker, answer: Answer, told: string): void {
    const { holders, queue, readers } = this.before
    const held = this.#heldBy(who)
    // Checks only calls whose owner already holds the lock. If one of its holds has lapsed, or if this very call
    // already holds the lock, there is nothing to check.
    if (!held.live || holders.some(({ claim }) => claim.id === who.id)) return
    const upgrade = who.wants === WRITE && !held.writes
    const queued = [...readers, ...queue].some(({ claim }) => claim.id === who.id)
    if (!upgrade) expect(answer, `re-entry ${told}`).toMatchObject({ status: 'reentered', token: held.token })
    else if (!queued) expect(answer.status, told).toBe('deadlock')
  }

  protected check(now: Seen, told: string): void {
    const { fields, holders, readers, queue: writers } = now
    for (const { claim } of readers) expect(claim.wants.join('/'), told).toBe(READ)
    for (const { claim } of writers) expect(claim.wants.join('/'), told).toBe(WRITE)
    const owners = new Set(holders.map(({ claim }) => claim.owner))
    if (holders.some(writes)) expect(owners.size, `I1 ${told}`).toBe(1)

    // For each owner with a name, the number of permits that the owner holds.
    const named = new Map<string, number>()
    for (const holder of holders) {
      const { owner, id } = holder.claim
      if (owner !== id) named.set(`@${owner}`, (named.get(`@${owner}`) ?? 0) + sumOf([holder]))
    }
    const noted = Object.entries(fields).filter(([name]) => name.startsWith('@'))
    expect(new Map(noted.map(([name, text]) => [name, Number(text.slice(46))])), told).toEqual(named)

    if (holders.length === 0) expect([...readers, ...writers], `I4 ${told}`).toEqual([])
    else if (!holders.some(writes) && writers.length === 0) expect(readers, `I4 ${told}`).toEqual([])
    this.#checkPhases(now, told)
  }

  #checkPhases({ holders, readers, queue: writers }: Seen, told: string): void {
    const { before } = this
    const known = new Set(before.holders.map(({ token }) => token))
    const isNew = ({ token }: Holder) => !known.has(token)
    /** Returns the waiters that were in the queue before the latest call and still are. */
    const stayed = (now: readonly Waiter[], then: readonly Waiter[]) =>
      now.filter(({ claim }) => then.some(other => other.claim.id === claim.id))
    const writer = holders.find(holder => writes(holder) && isNew(holder))
    const wrote = before.holders.some(writes)
    if (wrote && !holders.some(holder => writes(holder) && !isNew(holder)))
      expect(
        stayed(readers, before.readers),
        `I3 a writer has ended, and not all waiting readers were admitted: ${told}`,
      ).toEqual([])
    const reading = before.holders.length > 0 && !wrote
    const entered = holders.some(holder => !writes(holder) && isNew(holder))
    if (reading && entered && !holders.every(isNew))
      expect(stayed(writers, before.queue), `I3 a reader was admitted past a waiting writer: ${told}`).toEqual([])
    if (writer) {
      const ticket = before.queue.find(({ claim }) => claim.id === writer.claim.id)?.ticket
      const earlier = stayed(writers, before.queue).filter(other => other.ticket < ticket!)
      expect(earlier, `I3 a writer was overtaken: ${told}`).toEqual([])
    }
    for (const { claim } of readers) {
      const waited = before.readers.some(reader => reader.claim.id === claim.id)
      const turns = (waited ? this.#turns.get(claim.id)! : 0) + (writer ? 1 : 0)
      expect(turns, `I3 a reader waits for a second writer: ${told}`).toBeLessThanOrEqual(1)
      this.#turns.set(claim.id, turns)
    }
  }

  /** Returns what the owner of this call holds. `live` is false if the lease of one of its holds may have lapsed. */
  #heldBy(who: Asker) {
    const theirs = this.before.holders.filter(({ claim }) => claim.owner === who.owner && who.owner !== who.id)
    const sameClient = theirs.every(({ claim }) => claim.owner !== claim.id || who.id.startsWith(claim.id.slice(0, 12)))
    return {
      live: theirs.length > 0 && !theirs.some(({ lapsed }) => lapsed) && sameClient,
      writes: theirs.some(writes),
      token: theirs[0]?.token,
    }
  }
}

test.each(SEEDS)('seed %i', async seed => {
  await new ReadWriteHistory(await TestSemaphore.readWrite(), new Random(seed)).run()
})
