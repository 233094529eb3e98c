/**
 * Tests renewals and `list`, which use all masters of a cluster at once, also while one master does not answer.
 * Renewals are batched in the same way for all kinds of lock, so the first test uses mutexes only.
 */
import { Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { kindNames, lockOf } from '../../kit/kind-clients.ts'
import { collect, heard } from '../../kit/outcomes.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { clusterLocks, ownCluster, slotOf } from './cluster-crowd.ts'

const keys = Array.from({ length: 30 }, (_, i) => `job-${i}`)

// This test fails if `AT_ONCE + 1` becomes `AT_ONCE + 99` in src/redis/writes.ts: the client makes thirty socket
// writes, one for each lock. The unchanged code makes two writes, and then one more for each master.
test('I9: renewals that are due together take a few writes, not one per lock', async () => {
  const cluster = await ownCluster()
  const locks = clusterLocks(cluster, { lease: 6_000 })
  const leases = await Promise.all(keys.map(key => locks.lock(key)))
  // When a client has subscribed to the messages about its holds, it checks each hold once. Wait until these checks are
  // over.
  await sleep(1_000)
  const renewed = heard(locks, 'renewed')
  const writes: Socket[] = []
  for (const name of ['_write', '_writev'] as const) {
    const write = Socket.prototype[name] as (...args: unknown[]) => void
    vi.spyOn(Socket.prototype, name).mockImplementation(function (this: Socket, ...args: unknown[]) {
      writes.push(this)
      return write.apply(this, args)
    })
  }
  onTestFinished(() => {
    vi.restoreAllMocks()
  })
  await eventually(() => renewed.length >= leases.length, 10_000)
  const masters = new Set(cluster.addresses.map(({ port }) => port))
  expect(writes.filter(({ remotePort }) => masters.has(remotePort ?? 0)).length).toBeLessThan(keys.length / 2)
  for (const lease of leases) expect(lease.held).toBe(true)
})

// This test fails if `return this.#keys.placeOf(key)` becomes `return ''` in src/kinds/queued-kind.ts: one call has to
// renew all locks, and a cluster refuses such a call. It also fails if `if (!mastersOf(redis).includes(master)) return`
// becomes `return` in src/redis/listing.ts: the list omits locks that the client cannot reach.
test('I8: renewals on other masters continue, and `list` waits for the missing one', { timeout: 90_000 }, async () => {
  const cluster = await ownCluster('--cluster-require-full-coverage', 'no')
  const locks = clusterLocks(cluster, { lease: 4_000, outageTimeout: 15_000 })
  const leases = await Promise.all(keys.map((key, i) => lockOf(locks, kindNames[i % 3]!, key).lock()))
  const listed = async () => (await collect(locks.list('job-*'))).map(({ key }) => key).sort()
  expect(await listed()).toEqual([...keys].sort())

  const master = await cluster.masterOf(slotOf('job-0'))
  const replica = await cluster.replicaOf(master)
  const elsewhere = []
  for (const lease of leases) if ((await cluster.masterOf(slotOf(lease.key))) !== master) elsewhere.push(lease)
  expect(elsewhere.length).toBeLessThan(leases.length)
  await cluster.kill(replica)
  await cluster.kill(master)
  // Wait for more than two leases. Every lease that is still held after that has been renewed.
  await sleep(9_000)
  for (const lease of leases) expect([lease.key, lease.held]).toEqual([lease.key, elsewhere.includes(lease)])
  for (const lease of leases) expect(lease.signal.aborted).toBe(!lease.held)

  let settled = false
  const listing = listed().finally(() => {
    settled = true
  })
  await sleep(1_000)
  expect(settled).toBe(false)
  await cluster.restart(master, replica)
  expect(await listing).toEqual(elsewhere.map(({ key }) => key).sort())
  const again = await eventually(() => locks.tryLock('job-0', { timeout: 5_000 }), 15_000)
  expect(again?.held).toBe(true)
})
