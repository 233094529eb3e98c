/**
 * Tests a master that hangs, is replaced, and then continues. The old master acts as a master until the sentinels
 * demote it, and no client may stay with it. The kind of lock makes no difference, so the tests use a mutex.
 */
import { describe, expect, test } from 'vitest'
import { within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { freeze, patient, scene, serve } from './sentinel-scene.ts'

/** How long the old master still acts as a master after it continues, in ms. */
const LINGER = 12_000

describe('a master is stopped until after its failover, and then continues', () => {
  // This test fails if `if (name !== this.#name) return` becomes `return` in src/redis/sentinels.ts: the idle client
  // stays with the old master, and is granted locks that other clients are granted on the new master.
  test('I1 I4: clients leave the master while it is stopped; a lease continues; pending requests are granted', async () => {
    const { servers, master, make, connections, allAt } = await scene()
    const [holder, idle, asking] = [make(), make(), make()]
    const key = freshKey()
    const held = await holder.lock(key)
    const { lease: queued } = await park(asking, key, { fair: true })
    expect(await idle.isLocked(key)).toBe(true)
    await servers.inSync()
    const goOn = freeze(master)
    const asked = asking.lock(freshKey('asked'))
    const newcomer = make().lock(freshKey('newcomer'))
    const next = await servers.movedFrom(master)
    await allAt(next)
    await servers.linger(LINGER)
    goOn()
    await eventually(async () => /role:master/.test(await servers.direct(master).info('replication')))

    const leases = await within(6_000, Promise.all([asked, newcomer]))
    expect(await idle.tryLock(key)).toBeNull()
    const late = await idle.lock(freshKey('late'))
    for (const lease of [...leases, late]) {
      expect(await servers.direct(next).exists(`lock:{${lease.key}}`)).toBe(1)
      expect(await lease.release()).toBe(true)
    }
    await held.renew()
    expect(await held.release()).toBe(true)
    await serve([queued], 3_000)
    expect(await connections(master)).toBe(0)
  })

  // This test fails if `if (before !== undefined && master !== before) this.#listener.onSwitched()` is removed in
  // src/redis/sentinels.ts: the client does not switch, because it could not receive the announcement of the switch.
  test('a client whose sentinels were all away during the failover leaves the old master when one sentinel is back', async () => {
    const { servers, master, make, connections, allAt } = await scene()
    const [only] = servers.sentinels
    const idle = make(patient, [only!])
    await idle.lock(freshKey())
    await eventually(async () => (await connections(master)) === 2)
    await servers.inSync()
    await only!.kill()
    const goOn = freeze(master)
    const next = await servers.movedFrom(master)
    await servers.linger(LINGER)
    goOn()
    expect(await connections(master), 'not told yet').toBe(2)
    await only!.restart()
    await allAt(next)
    expect(await servers.direct(master).info('replication'), 'left of their own accord').toMatch(/role:master/)
  })

  // This test fails if `const asked =` becomes `if (master) return; const asked =` in src/redis/sentinels.ts, and
  // `if (sentinel.up)` becomes `if (false)` in src/redis/sentinels.ts: a client that has once lost its connection to a
  // sentinel receives no more messages from that sentinel. (With only one of these changes, the other line subscribes
  // again.)
  test('clients leave the master even if all sentinels had been restarted before, one after the other', async () => {
    const { servers, master, make, allAt } = await scene()
    const idle = make()
    const held = await idle.lock(freshKey())
    await servers.inSync()
    for (const sentinel of servers.sentinels) await servers.restart(sentinel)
    await servers.settled()
    const goOn = freeze(master)
    const next = await servers.movedFrom(master)
    await allAt(next)
    await servers.linger(LINGER)
    goOn()
    await held.renew()
    expect(await held.release()).toBe(true)
  })
})
