/**
 * Tests the behaviour that only read-write locks have. Other tests cover waiting, leases and outages, for all kinds of
 * lock together.
 */
import { describe, expect } from 'vitest'
import { LockDeadlockError, LockError } from '../../src/index.ts'
import { promptly, rejection, settles } from '../kit/outcomes.ts'
import { parkAt } from '../kit/parking.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { sleep } from '../kit/time.ts'

describe('I1 any number of readers, or one writer', () => {
  test('by single attempts of several clients', async ({ key }) => {
    const [one, two] = clients(2).map(locks => locks.readWrite(key))
    const readers = await Promise.all([one!.read.tryLock(), two!.read.tryLock(), one!.read.tryLock()])
    expect(readers.every(lease => lease?.held)).toBe(true)
    expect(await two!.write.tryLock()).toBeNull()
    for (const lease of readers) expect(await lease!.release()).toBe(true)
    const writer = await two!.write.tryLock()
    expect(writer!.fencingToken).toBeGreaterThan(Math.max(...readers.map(lease => lease!.fencingToken)))
    expect([await one!.read.tryLock(), await one!.write.tryLock(), await two!.read.tryLock()]).toEqual([
      null,
      null,
      null,
    ])
    await writer!.release()
    expect(await one!.inspect()).toMatchObject({ kind: 'readWrite', locked: false, holders: [], waiters: [] })
  })

  test('a mutex and a semaphore of the same key are different locks', async ({ locks, key }) => {
    const leases = [
      await locks.lock(key),
      await locks.semaphore(key, 1).lock(),
      await locks.readWrite(key).write.lock(),
    ]
    for (const lease of leases) expect(await lease.release()).toBe(true)
  })

  test.for([false, true])('under contention, fair %s', async (fair, { key }) => {
    let [readers, writers, together] = [0, 0, 0]
    const tokens: number[] = []
    const work = clients(3).flatMap(locks =>
      Array.from({ length: 60 }, async (_, i) => {
        const { read, write } = locks.readWrite(key)
        if (i % 5 === 0) {
          await write.using({ fair }, async lease => {
            writers += 1
            expect([readers, writers], 'I1').toEqual([0, 1])
            expect(lease.fencingToken, 'I2').toBeGreaterThan(Math.max(0, ...tokens))
            tokens.push(lease.fencingToken)
            await sleep(1)
            writers -= 1
          })
        } else {
          await read.using({ fair }, async lease => {
            readers += 1
            together = Math.max(together, readers)
            expect(writers, 'I1').toBe(0)
            tokens.push(lease.fencingToken)
            await sleep(i % 4)
            readers -= 1
          })
        }
      }),
    )
    await Promise.all(work)
    expect(together).toBeGreaterThan(1)
    expect(await client().readWrite(key).inspect()).toMatchObject({ locked: false, waiters: [] })
  })
})

describe('I3 phases', () => {
  test('a writer that ends lets in all waiting readers; the next writer follows them', async ({ key }) => {
    const [one, two, three] = clients(3).map(locks => locks.readWrite(key))
    const first = await one!.write.lock()
    const second = await parkAt(two!.write, 1)
    const readers = [await parkAt(three!.read, 2), await parkAt(one!.read, 3), await parkAt(two!.read, 4)]
    expect(await one!.inspect()).toMatchObject({
      holders: [{ mode: 'write' }],
      waiters: [1, 2, 3, 4].map(position => ({ position, mode: position < 4 ? 'read' : 'write' })),
    })
    await first.release()
    const reading = await promptly(Promise.all(readers.map(({ lease }) => lease)))
    expect(await settles(second.lease, 50)).toBe(false)
    expect(await three!.read.tryLock()).toBeNull()
    const late = await parkAt(three!.read, 2)
    for (const lease of reading.slice(1)) await lease.release()
    expect(await settles(second.lease, 50)).toBe(false)
    await reading[0]!.release()
    const writing = await promptly(second.lease)
    expect(await settles(late.lease, 50)).toBe(false)
    await writing.release()
    await (await promptly(late.lease)).release()
  })

  test('a writer that gives up no longer keeps readers out', async ({ key }) => {
    const [one, two, three] = clients(3).map(locks => locks.readWrite(key))
    const reading = await one!.read.lock()
    const writing = await parkAt(two!.write, 1, { timeout: 1_000 })
    const reader = await parkAt(three!.read, 2)
    expect(await settles(reader.lease, 50)).toBe(false)
    await rejection(writing.lease, LockError)
    for (const lease of [await promptly(reader.lease), reading]) expect(await lease.release()).toBe(true)
  })

  test('an unfair writer gets its turn while readers keep coming', async ({ key }) => {
    const [reading, writing] = clients(2).map(locks => locks.readWrite(key))
    let over = false
    const readers = [0, 1, 2].map(async i => {
      await sleep(7 * i)
      while (!over) await reading!.read.using({ fairAfter: 200 }, () => sleep(20))
    })
    const lease = await promptly(writing!.write.lock({ fairAfter: 200 }))
    over = true
    await lease.release()
    await Promise.all(readers)
  })
})

describe('re-entry', () => {
  test('a writer may read, and may keep reading after it has stopped writing', async ({ locks, other, key }) => {
    const { read, write } = locks.readWrite(key)
    const kept = await write.using(async writing => {
      const reading = await read.lock()
      expect(reading).toMatchObject({ fencingToken: writing.fencingToken, via: 'reentry', owner: writing.owner })
      expect(await write.using(inner => inner.via)).toBe('reentry')
      expect(await other.readWrite(key).read.tryLock()).toBeNull()
      return reading
    })
    const beside = await other.readWrite(key).read.tryLock()
    expect(await other.readWrite(key).write.tryLock()).toBeNull()
    for (const lease of [kept, beside!]) expect(await lease.release()).toBe(true)
    expect(await other.readWrite(key).inspect()).toMatchObject({ locked: false })
  })

  test('an owner’s holds are shown in the same order to every client, the write hold first', async ({ key }) => {
    const locks = client().readWrite(key)
    await locks.write.using({ lease: 60_000 }, async () => {
      // Redis stores holds in the order in which their leases end. The lease of the read hold ends first, so Redis has
      // the read hold first. But `inspect` shows the write hold first.
      const reading = await locks.read.lock({ lease: 30_000 })
      expect((await locks.inspect()).holders.map(({ mode }) => mode)).toEqual(['write', 'read'])
      await reading.release()
    })
  })

  test('a downgrade lets other readers in, but no writer', async ({ locks, other, key }) => {
    const { read, write } = locks.readWrite(key)
    const waiting = await (async () => {
      const writing = await write.lock({ owner: 'me' })
      const reading = await read.lock({ owner: 'me' })
      const writer = await parkAt(other.readWrite(key).write, 1)
      await writing.release()
      return { reading, writer }
    })()
    expect(await settles(waiting.writer.lease, 50)).toBe(false)
    await waiting.reading.release()
    await (await promptly(waiting.writer.lease)).release()
  })

  test('a reader that asks to write is refused at once, by every method', async ({ locks, other, key }) => {
    const { read, write } = locks.readWrite(key)
    await read.using(async () => {
      const calls: (() => Promise<unknown>)[] = [
        () => write.lock(),
        () => write.lock({ fair: true }),
        () => write.tryLock(),
        () => write.using(() => {}),
      ]
      for (const call of calls) {
        const error = await rejection(promptly(call()), LockDeadlockError)
        expect(error).toMatchObject({ code: 'ERR_LOCK_DEADLOCK', key, keys: [key], name: 'LockDeadlockError' })
      }
    })
    const lease = await promptly(other.readWrite(key).write.lock())
    await lease.release()
  })

  test('nested reads are granted ahead of a waiting writer', async ({ locks, other, key }) => {
    const { read } = locks.readWrite(key)
    const writer = await read.using(async outer => {
      const waiting = await parkAt(other.readWrite(key).write, 1)
      await promptly(read.using(inner => expect(inner.fencingToken).toBe(outer.fencingToken)))
      return waiting
    })
    await (await promptly(writer.lease)).release()
  })

  test('another process re-enters by naming the owner', async () => {
    const [one, two, other] = clients(3).map(locks => locks.readWrite('of one owner'))
    const outer = await one!.write.lock({ owner: 'job' })
    const inner = await two!.read.lock({ owner: 'job' })
    expect(inner).toMatchObject({ via: 'reentry', fencingToken: outer.fencingToken })
    await outer.release()
    const reading = await other!.read.lock()
    for (const lease of [inner, reading]) expect(await lease.release()).toBe(true)
  })

  test('a longer nested read prolongs the outer read, and no other hold of the client', async () => {
    const { read } = client().readWrite(freshKey())
    const other = await read.lock({ lease: 800 })
    await read.using({ lease: 800 }, async outer => {
      const inner = await read.lock({ lease: 8_000 })
      await sleep(1_000)
      expect([other.held, outer.held, inner.held]).toEqual([false, true, true])
    })
  })

  test('separately waiting calls of one owner enter together', async () => {
    const [one, two, other] = clients(3).map(locks => locks.readWrite('of one owner, waiting'))
    const first = await other!.write.lock()
    const [a, b] = [await parkAt(one!.write, 1, { owner: 'job' }), await parkAt(two!.write, 2, { owner: 'job' })]
    await first.release()
    const leases = await promptly(Promise.all([a.lease, b.lease]))
    expect(leases[0].fencingToken).toBe(leases[1].fencingToken)
    for (const lease of leases) expect(await lease.release()).toBe(true)
  })

  test('I2 separately waiting reads of one owner, admitted together, have one token, and so do reads nested in them', async () => {
    const [one, two, other] = clients(3).map(locks => locks.readWrite('of one owner, about to read'))
    const writing = await other!.write.lock()
    const options = { owner: 'job' }
    const [a, b] = [await parkAt(one!.read, 1, options), await parkAt(two!.read, 2, options)]
    await writing.release()
    const [first, second] = await promptly(Promise.all([a.lease, b.lease]))
    expect(first.fencingToken).toBeGreaterThan(writing.fencingToken)
    expect(second.fencingToken).toBe(first.fencingToken)
    await first.release()
    const inner = await two!.read.lock({ owner: 'job' })
    expect(inner).toMatchObject({ via: 'reentry', fencingToken: second.fencingToken })
    for (const lease of [second, inner]) expect(await lease.release()).toBe(true)
  })
})

test('all() takes the write lock if both sides are given', async ({ locks, key }) => {
  const { read, write } = locks.readWrite(key)
  const both = await promptly(locks.all([read, write, `${key} too`]).lock())
  expect(both.leases.length).toBe(2)
  expect(await client().readWrite(key).read.tryLock()).toBeNull()
  await both.release()
})
