/**
 * Tests waiters that give up shortly before or after their grant, at moments that are 0.25 ms apart. The message of the
 * grant may be late.
 */
import { describe, expect } from 'vitest'
import { type LockClient, type LockOptions, LockTimeoutError } from '../../src/index.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { outcomeOf, within } from '../kit/outcomes.ts'
import { park, parkMany } from '../kit/parking.ts'
import type { Where } from '../kit/proxies.ts'
import { freshKey, nothingLeft, plainRedis, test } from '../kit/redis.ts'
import { at } from '../kit/time.ts'

/**
 * With these options, no heartbeat comes and no lease ends during a test. So if the lock is granted to a waiter that
 * has given up, only that waiter's client can pass the lock on.
 */
const patient = { waiterTtl: 60_000, lease: 60_000 }
const patience = 40
const late = 2
/**
 * The moments at which the lock is released, in ms after the waiter's call. The waiter gives up after `patience`. The
 * first moment is 7 ms before that, the last but one is 3 ms after that, and the last is 15 ms after that.
 */
const moments = [...Array.from({ length: 41 }, (_, i) => -7 + i / 4), 15].map(offset => patience + offset)
const cancelled = new Error('cancelled')

const giveUps: Record<string, { options(patience: number): LockOptions; expected: (error: unknown) => boolean }> = {
  'times out': { options: patience => ({ timeout: patience }), expected: error => error instanceof LockTimeoutError },
  'is aborted': {
    options(patience) {
      const controller = new AbortController()
      setTimeout(() => controller.abort(cancelled), patience)
      return { signal: controller.signal }
    },
    expected: error => error === cancelled,
  },
}

const delays: Record<string, Where | undefined> = {
  'nothing is late': undefined,
  'messages come late': { direction: 'down', kind: 'messages' },
  'replies come late': { direction: 'down', kind: 'commands' },
  'requests go late': { direction: 'up', kind: 'commands' },
}

const races = Object.keys(giveUps).flatMap(way =>
  ['another client', 'the same client'].flatMap(to => kindsAndWays.map(each => ({ ...each, way, to }))),
)
/**
 * Whether the tests include this race. `where`: at which point a request, a reply or a message is late. The mutex runs
 * all races. They test the client's code, which is the same for all kinds, so the other kinds run only some of them.
 */
const hasRace = ({ kind, way, to }: (typeof races)[number], where?: Where) =>
  kind === 'mutex'
    ? !where || to === 'another client'
    : kind === 'semaphore' && way === 'is aborted' && (!where || where.kind === 'messages')

describe.each(Object.entries(delays))('%s', (_, where) => {
  // A client has two ways to end a grant that its waiter no longer wants: it sends a leave when the waiter gives up,
  // and it gives back a grant that arrives later. Either way is enough, so the test fails only if both are missing.
  // This test fails if `if (leaves) this.#port.leave(waiter)` is removed in src/key/key.ts and `if (meaning ===
  // 'take-back') return this.#port.leave(waiter)` becomes `if (meaning === 'take-back') return` in src/key/key.ts: an
  // unfair caller that has given up keeps a grant that comes by a reply. It also fails if `if (leaves)
  // this.#port.leave(waiter)` is removed in src/key/key.ts and `.giveBack({ key: locks.keys.keyOf(lock) as string, id
  // })` becomes `` in src/session.ts: a fair caller that has given up keeps a grant that comes by a message.
  test.each(races.filter(race => hasRace(race, where)))(
    'a waiter that $way: I4 I6 I7, the lock passes to $to, nothing is left ($kind, fair: $fair)',
    async ({ way, fair, to, client, clientBehindProxy }) => {
      const { locks: quitter, proxy } = await clientBehindProxy(patient)
      if (where) proxy.rule(where, { delay: late })
      const [holder, redis] = [client(patient), plainRedis()]
      const next = to === 'the same client' ? quitter : client(patient)
      const { options, expected } = giveUps[way]!
      const outcomes = new Set<boolean>()
      // In the first race the waiter has 5 s, so that at least one waiter is granted the lock, even on a slow machine.
      await race(0, 5_000)
      for (const moment of moments) await race(moment)
      expect(outcomes).toEqual(new Set([true, false]))
      for (const locks of [holder, quitter, next]) {
        expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0, lost: 0 })
      }

      async function race(moment: number, limit = patience): Promise<void> {
        const key = freshKey()
        const held = await holder.lock(key)
        const begin = performance.now()
        const outcome = quitter.lock(key, { fair, ...options(limit) }).then(
          lease => lease.release(),
          error => {
            if (!expected(error)) throw error
            return false
          },
        )
        await refusedOr(quitter, outcome)
        // `quitter` is the client whose waiter gives up, and `next` is the client that gets the lock afterwards. An
        // unfair call of another client could get the lock before the waiter. So such a call is made only after the
        // waiter has given up or released the lock.
        const parked = fair || next === quitter ? await park(next, key, { fair }) : undefined
        await at(begin + moment)
        const released = held.release()
        if (!parked) outcomes.add(await within(500, outcome))
        const lease = await within(1_500, parked?.lease ?? next.lock(key), `released after ${moment} ms`)
        expect(await released).toBe(true)
        expect(await lease.release()).toBe(true)
        outcomes.add(await within(500, outcome))
        await nothingLeft(redis, next, key)
      }
    },
  )
})

async function refusedOr(locks: LockClient, outcome: Promise<unknown>): Promise<void> {
  await Promise.race([new Promise(resolve => locks.once('waiting', resolve)), outcome])
}

// Two parts of the client can give the grant back, so only both changes together do harm. This test fails if `if
// (leaves) this.#port.leave(waiter)` is removed in src/key/key.ts and `.giveBack({ key: locks.keys.keyOf(lock) as
// string, id })` becomes `` in src/session.ts: the grant stays with a waiter that has left.
test.for(kinds)(
  'a hundred waiters give up at once: I4 I7, the lock passes to the remaining waiter ($kind)',
  async ({ client }, { key }) => {
    const [locks, next] = [client(patient), client(patient)]
    const held = await locks.lock(key)
    const controller = new AbortController()
    const { signal } = controller
    const quitting = await parkMany(locks, key, 50, { fair: true, signal })
    const { lease: wait } = await park(next, key, { fair: true })
    quitting.push(...(await parkMany(locks, key, 50, { signal })))
    const outcomes = quitting.map(outcomeOf)
    const released = held.release()
    controller.abort(cancelled)
    const lease = await within(1_000, wait)
    expect(new Set((await Promise.all(outcomes)).map(({ error }) => error))).toEqual(new Set([cancelled]))
    expect(await released).toBe(true)
    expect(await lease.release()).toBe(true)
    await nothingLeft(plainRedis(), locks, key)
    expect(locks.stats().waiting).toBe(0)
  },
)
