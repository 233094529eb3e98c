/**
 * Random histories on a real Redis. Several clients request, get, release, renew and force-release two locks, and
 * `World` (world.ts) checks the outcome of each call.
 *
 * A failure prints the seed and the shortest failing history. BATON_SEED repeats the histories of a seed.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Lease, LockClient } from '../../../src/index.ts'
import { freshKey, plainRedis, redisUrl } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { type Ask, World } from './world.ts'

const seed = process.env['BATON_SEED']
/** Runs a history with new clients, so that a broken client of an earlier history has no effect. */
async function withClients(count: number, run: (clients: LockClient[]) => Promise<void>): Promise<void> {
  const clients = Array.from({ length: count }, (_, i) => new LockClient(redisUrl(), { label: `client ${i}` }))
  try {
    // Connect every client first. A request of an unconnected client may end without a reply, and then tests nothing
    // about locks.
    await Promise.all(clients.map(locks => locks.isLocked('connected')))
    await run(clients)
  } finally {
    await Promise.all(clients.map(locks => locks.close()))
  }
}

/**
 * Limits the histories by number and by time, so that a slow machine tries fewer histories instead of taking longer.
 */
function limits(numRuns: number, ms: number) {
  return { numRuns, interruptAfterTimeLimit: ms, ...(seed !== undefined && { seed: Number(seed) }) }
}

interface Step {
  run(world: World): Promise<void> | void
  [shown: string]: unknown
}

/**
 * Blocks the event loop. If a timer becomes due in this time, the next step sends its requests before the timer fires.
 */
function stallFor(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

const choice = fc.nat(100)
const duration = fc.integer({ min: 1, max: 30 })
const ask: fc.Arbitrary<Ask> = fc.record({
  client: choice,
  key: fc.constantFrom(0, 0, 1),
  fair: fc.boolean(),
  once: fc.constantFrom(false, false, true),
  timeout: fc.constantFrom(undefined, undefined, 0, 3, 15, 40),
  lease: fc.constantFrom(undefined, undefined, undefined, 25, 60),
  owner: fc.constantFrom(undefined, undefined, undefined, 'x', 'y'),
})

/**
 * Lets a lease lapse while a waiter is queued and no timer can fire. The newcomer's request then makes Redis notice the
 * lapse and grant the lock to the queued waiter.
 */
async function lapse(world: World, [holder, waiter, newcomer]: readonly [Ask, Ask, Ask]): Promise<void> {
  world.ask({ ...holder, lease: 25 })
  await world.look()
  world.ask({ ...waiter, key: holder.key, fair: true, once: false, timeout: undefined })
  await world.look()
  stallFor(30)
  world.ask({ ...newcomer, key: holder.key })
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: ask.map(asked => ({ ask: asked, run: (world: World) => world.ask(asked) })) },
  {
    weight: 5,
    arbitrary: fc.tuple(choice, fc.boolean()).map(([release, twice]) => ({
      release,
      twice,
      run: (world: World) => world.release(release, twice),
    })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(choice, fc.constantFrom(20, 500, 5_000)).map(([renew, ms]) => ({
      renew,
      ms,
      run: (world: World) => world.renew(renew, ms),
    })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(choice, fc.nat(1)).map(([by, forceRelease]) => ({
      forceRelease,
      by,
      run: (world: World) => world.forceRelease(by, forceRelease),
    })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(ask, fc.integer({ min: 2, max: 8 })).map(([asked, crowd]) => ({
      crowd,
      ask: asked,
      run: (world: World) => {
        const one = { ...asked, fair: false, once: false, owner: undefined, brief: true }
        for (let i = 0; i < crowd; i++) world.ask(one)
      },
    })),
  },
  { weight: 2, arbitrary: choice.map(abort => ({ abort, run: (world: World) => world.abort(abort) })) },
  { weight: 6, arbitrary: fc.constant({ look: true, run: (world: World) => world.look() }) },
  { weight: 3, arbitrary: duration.map(pass => ({ pass, run: () => sleep(pass) })) },
  {
    weight: 1,
    arbitrary: fc.tuple(ask, ask, ask).map(asks => ({ lapse: asks, run: (world: World) => lapse(world, asks) })),
  },
  { weight: 2, arbitrary: duration.map(stall => ({ stall, run: () => stallFor(stall) })) },
)

test('I1 I2 I3 I5 I6 I7 I8 hold in every history of a few clients', async () => {
  const redis = plainRedis()
  const histories = fc.record({
    clients: fc.integer({ min: 2, max: 4 }),
    steps: fc.array(step, { minLength: 1, maxLength: 30, size: 'max' }),
  })
  const property = fc.asyncProperty(histories, history =>
    withClients(history.clients, async clients => {
      const world = new World(clients, redis)
      for (const { run } of history.steps) {
        await run(world)
        world.check()
      }
      await world.drain()
    }),
  )
  await fc.assert(property, limits(60, 15_000))
})

const caller = fc.record({ client: choice, quits: fc.constantFrom(false, false, true) })

test('I3 fair grants follow the order of the requests, except for requests that have given up', async () => {
  const property = fc.asyncProperty(fc.array(caller, { minLength: 2, maxLength: 12 }), callers =>
    withClients(3, async clients => {
      const key = freshKey('order')
      const queued = async () => (await clients[0]!.inspect(key)).waiters.length
      const holder = await clients[0]!.lock(key)
      const granted: number[] = []
      const quitting = new AbortController()
      const calls: Promise<unknown>[] = []
      for (const [place, { client, quits }] of callers.entries()) {
        const signal = quits ? quitting.signal : undefined
        const use = () => granted.push(place)
        calls.push(clients[client % 3]!.using(key, { fair: true, signal }, use).catch(error => error))
        await eventually(async () => (await queued()) === place + 1)
      }
      quitting.abort()
      const stay = callers.flatMap(({ quits }, place) => (quits ? [] : [place]))
      await eventually(async () => (await queued()) === stay.length)
      await holder.release()
      await Promise.all(calls)
      expect(granted).toEqual(stay)
      expect(await clients[0]!.inspect(key)).toMatchObject({ locked: false, waiters: [] })
    }),
  )
  await fc.assert(property, limits(40, 8_000))
})

/** Ways in which an owner locks again just when its hold has ended for the client but not yet for Redis. */
const reentries = {
  'an owner by name asks after the hold has ended': async (locks: LockClient, key: string) => {
    const first = await locks.lock(key, { owner: 'y', lease: 60 })
    while (first.held);
    return locks.lock(key, { owner: 'y' })
  },
  'a nested call asks before the hold ends, and is answered after that': (locks: LockClient, key: string) =>
    new Promise<Lease>((resolve, reject) => {
      const run = async (first: Lease) => {
        while (first.remaining() > 0.2);
        const second = locks.lock(key)
        while (first.held);
        resolve(await second)
      }
      locks.using(key, { lease: 60 }, run).catch(reject)
    }),
}

describe('I7 after a re-entry was released, a hold that has run out does not keep the lock', () => {
  test.each(Object.entries(reentries))('%s', async (_, reenter) => {
    await withClients(1, async ([locks]) => {
      for (let i = 0; i < 10; i++) {
        const key = freshKey('run-out')
        const second = await reenter(locks!, key)
        await second.release()
        await eventually(async () => !(await locks!.isLocked(key)))
      }
    })
  })
})
