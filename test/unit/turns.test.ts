/**
 * Tests how clients take turns. For some ms after its release, a client leaves the lock to other clients. A call that
 * the client makes within this time has to wait.
 */
import { test as base, describe, expect } from 'vitest'
import { type Asker, HandingOn, leaseOf } from './handing-on.ts'
import { settled } from './promises.ts'
import { KEY, LEASE } from './waiting.ts'

/**
 * After its release, a client leaves the lock to other clients for a while: for TURN ms if they take turns with it, and
 * for CHANCE ms if they receive the messages about releases, but have not taken the lock yet.
 */
const TURN = 7
const CHANCE = 3
/**
 * After a wait of CHANCE ms, the client does not wait CHANCE ms again for at least this many ms. It asks at once
 * instead.
 */
const PAUSE = 100
/** How many ms a client keeps its data about other clients after the last use of these data. */
const MEMORY = 1_000

/**
 * A client with one caller that takes the lock in a loop. The caller makes each call after the answer to its previous
 * release.
 */
class Looping {
  readonly at = new HandingOn()
  asker!: Asker
  #calls = 0
  #token = 0

  constructor() {
    // A real channel also stays subscribed for a second after its last user has dropped it.
    this.at.channels.lingers = true
  }

  /** Makes a client that has the lock. It had to wait, so it is subscribed to messages about releases. */
  static async holding(): Promise<Looping> {
    const client = new Looping()
    await client.call()
    await client.at.attempt.answer(client.at.refused())
    await client.granted()
    client.at.rest()
    return client
  }

  async call(terms: { timeout?: number; owner?: string } = {}): Promise<void> {
    this.#calls += 1
    this.asker = await this.at.ask({ id: `call ${this.#calls}`, ...terms })
  }

  async granted(): Promise<void> {
    this.#token += 10_000
    await this.at.grantNext(this.#token)
  }

  /** Releases the lock. `heard` clients receive the message; this client is one of them. */
  async release(heard: number): Promise<void> {
    // After TURN ms, the run of local hand-offs is over, so the lock goes back to Redis.
    this.at.clock.block(TURN)
    void leaseOf(this.asker).release()
    await this.at.released(heard)
    this.at.rest()
  }

  async freedBy(...clients: string[]): Promise<void> {
    for (const client of clients) this.at.unlocked(KEY, client)
    await settled()
  }

  /**
   * Makes the next call while other clients do nothing. Waits until the client asks for the lock, and grants it.
   * Returns how many ms passed before the client asked.
   */
  async leaves(): Promise<number> {
    await this.call()
    let ms = 0
    for (; !this.asks && ms < 50; ms += 0.5) await this.at.clock.advance(0.5)
    await this.granted()
    return ms
  }

  get asks(): boolean {
    return this.at.asking.length > 0
  }
}

/** Declares a test, which receives a client that has the lock. */
const test = base.extend('client', () => Looping.holding())

describe('a caller that asks again after its release', () => {
  test('asks at once if no other client heard the release, and remembers nothing', async ({ client }) => {
    const { timers } = client.at.residue
    await client.release(1)
    expect(client.at.residue.timers).toBe(timers)
    await client.call()
    expect(client.asks).toBe(true)
  })

  test('leaves the lock to other clients that heard the release, listens meanwhile, and asks if none of them takes it', async () => {
    const client = await Looping.holding()
    await client.release(3)
    await client.call()
    expect(client.at.channels.users).toEqual({ [`unlock of ${KEY}`]: 1 })
    await client.at.clock.advance(CHANCE - 0.1)
    expect(client.asks).toBe(false)
    await client.at.clock.advance(0.1)
    expect(client.asks).toBe(true)
  })

  test('asks at once when the lock was released by force, which is no turn', async ({ client }) => {
    await client.release(3)
    await client.freedBy('B', 'C')
    await client.call()
    await client.at.attempt.answer(client.at.refused())
    client.at.unlocked(KEY)
    await settled()
    expect(client.asks).toBe(true)
  })

  test('does not wait for others with a single attempt or in the queue', async ({ client }) => {
    await client.release(3)
    await client.at.ask({ id: 'once', mode: 'once' })
    await client.at.ask({ id: 'fair', mode: 'queue' })
    expect(client.at.asking).toEqual(['once', 'fair'])
  })

  test('leaves the lock to others even if its owner has a name, but not while that owner has the lock', async () => {
    const client = await Looping.holding()
    await client.release(3)
    await client.freedBy('B')
    await client.call({ owner: 'somebody' })
    expect(client.asks).toBe(false)
    await client.freedBy('C')
    await client.granted()
    await client.call({ owner: 'somebody' })
    expect(client.asks).toBe(true)
  })

  // The look asks early, so the head of the line no longer waits for a turn after which its answer would name the owner.
  test('I4 asks by itself if its owner has a name and the line has been refused, because the owner may have the lock', async ({
    client,
  }) => {
    await client.release(3)
    await client.freedBy('B', 'C')
    await client.call()
    await client.granted()
    await client.release(3)
    await client.call()
    await client.at.clock.advance(TURN - 1)
    await client.freedBy('B')
    await client.at.clock.advance(1)
    client.at.io.look(KEY)
    await client.at.attempt.answer(client.at.refused())
    await client.call({ owner: 'somebody' })
    expect(client.asks).toBe(true)
  })

  test('leaves the lock to nobody because of a release of a lease that was lost before', async ({ client }) => {
    await client.release(3)
    await client.freedBy('B', 'C')
    await client.call()
    await client.granted()
    client.at.clock.block(LEASE)
    expect(await leaseOf(client.asker).release()).toBe(false)
    await client.call()
    expect(client.asks).toBe(true)
  })

  test('re-enters at once, even after a nested hold of its owner was released', async ({ client }) => {
    await client.release(3)
    await client.freedBy('B', 'C')
    await client.call({ owner: 'somebody' })
    await client.granted()
    await client.call({ owner: 'somebody' })
    await client.granted()
    await client.release(0)
    await client.call({ owner: 'somebody' })
    expect(client.asks).toBe(true)
  })

  test('I4 asks, listens, and asks once more before it parks', async ({ client }) => {
    client.at.channels.lingers = false
    client.at.channels.slow = true
    await client.release(2)
    await client.call()
    await client.at.clock.advance(CHANCE)
    await client.at.attempt.answer(client.at.refused())
    expect(client.asks).toBe(false)
    await client.at.channels.hearings.next.answer()
    expect(client.asks).toBe(true)
  })
})

describe('a call that comes before the release is answered', () => {
  test('leaves the lock to the other clients of the last round, until the answer says that they have left', async () => {
    const client = await Looping.holding()
    await client.release(2)
    await client.freedBy('B')
    await client.call()
    await client.granted()
    client.at.clock.block(TURN)
    void leaseOf(client.asker).release()
    await client.call()
    expect(client.asks).toBe(false)
    await client.at.released(1)
    expect(client.asks).toBe(true)
  })
})

describe('little time is lost to clients that', () => {
  test('only listen: they are given a chance now and then', async ({ client }) => {
    const begin = client.at.clock.now()
    let lost = 0
    for (let turn = 0; turn < 100; turn++) {
      await client.release(4)
      lost += await client.leaves()
    }
    const elapsed = client.at.clock.now() - begin
    expect(lost).toBeGreaterThan(CHANCE)
    expect(lost).toBeLessThanOrEqual(CHANCE * (1 + elapsed / PAUSE))
  })

  test('have left: after three turns they are no longer waited for', async ({ client }) => {
    await client.release(2)
    await client.freedBy('B')
    const left = [await client.leaves()]
    for (let turn = 0; turn < 6; turn++) {
      await client.release(2)
      left.push(await client.leaves())
    }
    expect(left).toEqual([0, TURN, TURN, TURN, CHANCE, 0, 0])
  })
})

test('a run of hand-offs within the client is one turn, so clients that take turns are not forgotten during it', async () => {
  const client = await Looping.holding()
  await client.release(2)
  await client.freedBy('B')
  await client.call()
  // Only a waiter that has been refused asks for tokens for local hand-offs.
  await client.at.attempt.answer(client.at.refused())
  await client.granted()
  for (let handOff = 0; handOff < 10; handOff++) {
    const { asker } = client
    await client.call()
    void leaseOf(asker).release()
    await settled()
    expect(leaseOf(client.asker).via).toBe('handoff')
  }
  await client.release(2)
  expect(await client.leaves()).toBe(TURN)
})

test('if nobody heard of a release because a fair waiter has the lock, turns are as after the release before it', async () => {
  const client = await Looping.holding()
  await client.release(3)
  await client.freedBy('B', 'C')
  await client.call()
  await client.granted()
  await client.release(0)
  await client.call()
  // Refuse the client twice: before it subscribes, and after it has subscribed.
  await client.at.attempt.answer(client.at.refused())
  await client.at.attempt.answer(client.at.refused())
  await client.freedBy('B')
  expect(client.asks).toBe(false)
  await client.freedBy('C')
  expect(client.asks).toBe(true)
})

describe('I7 what is known about other clients', () => {
  test('is kept while somebody waits', async ({ client }) => {
    await client.release(3)
    await client.call()
    await client.at.clock.advance(CHANCE)
    await client.at.attempt.answer(client.at.refused())
    await client.at.clock.advance(2 * MEMORY)
    expect(client.asks).toBe(false)
    await client.freedBy('B')
    await client.at.clock.advance(CHANCE - 0.1)
    expect(client.asks).toBe(false)
    await client.freedBy('C')
    expect(client.asks).toBe(true)
  })
})
