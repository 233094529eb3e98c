/** The master fails, or is replaced, under clients that find it through sentinels. */
import { describe, expect, test } from 'vitest'
import { heard } from '../../contract/support.ts'
import { freshKey } from '../../kit/redis.ts'
import { nothingLeft, parkOne, within } from '../../kit/steps.ts'
import { eventually } from '../../kit/time.ts'
import { scene, serve } from './sentinel-scene.ts'

/** A heartbeat every second, for what a message missed while everybody changed servers. */
const busy = { lease: 60_000, waiterTtl: 3_000 }

describe('SENTINEL FAILOVER', () => {
  // Break: `up: () => subscriber.restore()` to `up: () => {}` in src/redis/link.ts: nobody hears at the new master, so
  // the release passes over them all.
  test('I3 I4: leases go on, waiters are granted in the order of their tickets', async () => {
    const { servers, master, make, allAt } = await scene()
    const [one, two] = [make(busy), make(busy)]
    const [key, loose] = [freshKey('fair'), freshKey('unfair')]
    const held = await one.lock(key)
    const free = await two.lock(loose)
    const fair = []
    for (const locks of [one, two, one, two]) fair.push((await parkOne(locks, key, { fair: true })).wait)
    const unfair = [(await parkOne(one, loose)).wait, (await parkOne(two, loose)).wait]
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

describe('SIGKILL of the master', () => {
  // Break: `this.holding.doubtAll(key)` away in src/locks.ts: the holder learns of its loss by a renewal, 20 s later.
  test('I2 I4 I8: what the replica has goes on; what it has not is lost, signalled, and granted anew', async () => {
    const { servers, master, make, allAt } = await scene()
    const [one, two] = [make(busy), make(busy)]
    const [kept, gone] = [freshKey('kept'), freshKey('gone')]
    const held = await one.lock(kept)
    const { wait: next } = await parkOne(two, kept, { fair: true })
    await servers.loseWrites()
    const lost = await one.lock(gone)
    const { wait: heir } = await parkOne(two, gone, { fair: true })
    const { wait: unfair } = await parkOne(make(busy), gone)
    const events = heard(one, 'lost')
    await master.kill()
    const promoted = await servers.movedFrom(master)
    await allAt(promoted)

    await eventually(() => lost.signal.aborted, 3_000)
    expect(events.map(({ key }) => key)).toEqual([gone])
    expect(lost.held).toBe(false)
    // Which of them is first is open, as long as the queue is not there again.
    const tokens = (await serve([heir, unfair], 6_000)).map(({ token }) => token)
    expect(Math.min(...tokens)).toBeGreaterThan(lost.fencingToken)
    expect(await lost.release()).toBe(false)

    await held.renew()
    expect(await held.release()).toBe(true)
    expect(await (await within(4_000, next)).release()).toBe(true)
    for (const name of [kept, gone]) await nothingLeft(servers.direct(promoted), one, name)
  })
})
