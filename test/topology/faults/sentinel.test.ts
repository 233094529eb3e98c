/**
 * Tests a master that fails or is replaced while clients use it through sentinels. Each kind of lock is tested, because
 * its scripts hand locks on and check holds on the new master. How a client finds the new master is the same for all
 * kinds; the other files about sentinels test this with mutexes.
 */
import { describe, expect, test } from 'vitest'
import type { Lock, LockClient } from '../../../src/index.ts'
import { kindNames, lockOf } from '../../kit/kind-clients.ts'
import { kinds } from '../../kit/kinds.ts'
import { heard, within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { freshKey, nothingLeft } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { scene, serve } from './sentinel-scene.ts'

/**
 * With these options a heartbeat every second makes up for messages that clients miss while they change servers.
 */
const busy = { lease: 60_000, waiterTtl: 3_000 }

describe('SENTINEL FAILOVER', () => {
  // This test fails if `subscriber.lost(this)` is removed in src/redis/one-server.ts: no client is
  // subscribed at the new master, so the release passes over all of them.
  test.each(kinds)('I3 I4: leases continue, waiters are granted in the order of their tickets ($kind)', async kind => {
    const { servers, master, make, allAt } = await scene(kind)
    const [one, two] = [make(busy), make(busy)]
    const [key, loose] = [freshKey('fair'), freshKey('unfair')]
    const held = await one.lock(key)
    const free = await two.lock(loose)
    const fair = []
    for (const locks of [one, two, one, two]) fair.push((await park(locks, key, { fair: true })).lease)
    const unfair = [(await park(one, loose)).lease, (await park(two, loose)).lease]
    await servers.inSync()
    const next = await servers.failover()
    expect(next).not.toBe(master)
    await allAt(next)
    await Promise.all([held.renew(), free.renew()])
    expect(await held.release()).toBe(true)
    const places = (await serve(fair, 5_000)).map(({ place }) => place)
    expect(places).toEqual([0, 1, 2, 3])
    expect(await free.release()).toBe(true)
    await serve(unfair, 5_000)
    for (const name of [key, loose]) await nothingLeft(servers.direct(next), one, name)
  })
})

describe('SENTINEL FAILOVER of busy locks', () => {
  /** Takes the lock again and again until `open` returns false. Calls `got` at each grant. */
  async function use(lock: Lock, fair: boolean, open: () => boolean, got: () => void): Promise<void> {
    while (open()) {
      const lease = await lock.lock({ fair })
      got()
      await sleep(20)
      await lease.release()
    }
  }

  // From the promotion until the clients learn of it, both servers grant and release locks. This test fails if
  // `this.withdrawals.sendAgain(each => key === undefined || each === key)` is removed in src/kind-client.ts: most
  // locks are blocked on the new master by holds that ended on the old one. Grants of the old master that the new one
  // lacks are lost. There are none if writes were paused, or if a grant counts only once the replica has it.
  test.each([
    { what: 'as usual' },
    { what: 'after a pause of writes', paused: true },
    { what: 'with replicas', replicas: { min: 1, timeout: 2_000 } },
  ])('I4: they go on ($what)', { timeout: 60_000 }, async ({ paused, replicas }) => {
    const { servers, make } = await scene()
    const clients = [1, 2, 3].map(() => make({ lease: 120_000, ...(replicas && { replicas }) }))
    const lost = clients.map(locks => heard(locks, 'lost'))
    const served = new Set<string>()
    let open = true
    const uses = Array.from({ length: 60 }, (_, i) => {
      const key = freshKey('busy')
      const lock = (locks: LockClient) => lockOf(locks, kindNames[i % kindNames.length]!, key)
      const got = () => served.add(key)
      return clients.map(locks => use(lock(locks), i % 2 === 0, () => open, got))
    })
    const over = Promise.allSettled(uses.flat())
    await eventually(() => served.size === 60, 10_000)
    for (let failovers = 0; failovers < 2; failovers++) {
      await servers.settled()
      const old = servers.direct(await servers.master())
      if (paused) await old.client('PAUSE', 15_000, 'WRITE')
      await servers.failover()
      if (paused) await old.client('UNPAUSE')
      // What the old master has answered does not count.
      await sleep(1_000)
      served.clear()
      await eventually(() => served.size >= 57, 10_000)
    }
    if (paused || replicas) expect(lost.flat()).toEqual([])
    open = false
    for (const locks of clients) locks.close()
    await over
  })
})

describe('SIGKILL of the master', () => {
  // This test fails if `this.holding.doubtAll(key)` is removed in src/kind-client.ts: the holder learns that its hold
  // is lost only by its next renewal, 20 s later.
  test.each(kinds)(
    'I2 I4 I8: holds that the replica has continue; others are lost, signalled, and granted again ($kind)',
    async kind => {
      const { servers, master, make, allAt } = await scene(kind)
      const [one, two] = [make(busy), make(busy)]
      const [kept, gone] = [freshKey('kept'), freshKey('gone')]
      const held = await one.lock(kept)
      const { lease: next } = await park(two, kept, { fair: true })
      await servers.loseWrites()
      const lost = await one.lock(gone)
      const { lease: heir } = await park(two, gone, { fair: true })
      const { lease: unfair } = await park(make(busy), gone)
      const events = heard(one, 'lost')
      await master.kill()
      const promoted = await servers.movedFrom(master)
      await allAt(promoted)

      await eventually(() => lost.signal.aborted, 3_000)
      expect(events.map(({ key }) => key)).toEqual([gone])
      expect(lost.held).toBe(false)
      // The new master does not have the queue yet. Until the fair waiter has joined the queue again, either waiter may
      // be granted first.
      const tokens = (await serve([heir, unfair], 6_000)).map(({ token }) => token)
      expect(Math.min(...tokens)).toBeGreaterThan(lost.fencingToken)
      expect(await lost.release()).toBe(false)

      await held.renew()
      expect(await held.release()).toBe(true)
      expect(await (await within(4_000, next)).release()).toBe(true)
      for (const name of [kept, gone]) await nothingLeft(servers.direct(promoted), one, name)
    },
  )
})
