/** Tests spans and metrics of every kind of lock, and that kinds with the same key are kept apart. */
import { expect } from 'vitest'
import { collect } from '../../kit/outcomes.ts'
import { client, freshKey, plainRedis } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { activeSpan, Telemetry, test } from './telemetry.ts'

test('a semaphore: its waits and holds, by every call, also if the lock object was made before', async ({ key }) => {
  const telemetry = new Telemetry()
  const locks = client()
  const semaphore = locks.semaphore(key, 2)
  telemetry.instrument(locks)
  const inside = await semaphore.using({ permits: 2 }, async () => {
    expect(await semaphore.tryLock()).toBeNull()
    return activeSpan()
  })
  expect(await semaphore.wrap((what: string) => what)('done')).toBe('done')
  const lease = await semaphore.lock()
  await lease.release()

  const kind = { 'redis_baton.key': key, 'redis_baton.kind': 'semaphore' }
  const waits = telemetry.spans('lock.wait')
  for (const { attributes } of waits) expect(attributes).toMatchObject(kind)
  expect(waits.map(({ attributes }) => [attributes['db.operation.name'], attributes['redis_baton.outcome']])).toEqual([
    ['lock', 'granted'],
    ['tryLock', 'refused'],
    ['lock', 'granted'],
    ['lock', 'granted'],
  ])
  const holds = telemetry.spans('lock.hold')
  expect(holds.map(({ attributes }) => attributes['redis_baton.outcome'])).toEqual(['released', 'released', 'released'])
  expect(holds[0]!.attributes).toMatchObject(kind)
  expect(holds[2]!.attributes['redis_baton.fencing_token']).toBe(lease.fencingToken)
  expect(inside).toBe(holds[0]!.spanContext().spanId)
  expect(await telemetry.sum('redis_baton.grants')).toBe(3)
})

test('a read-write lock: also its mode', async ({ telemetry, traced: locks }) => {
  const { read, write } = locks.readWrite(freshKey())
  await write.using(() => read.using(() => {}))
  const sides = (name: string) =>
    telemetry.spans(name).map(({ attributes }) => [attributes['redis_baton.kind'], attributes['redis_baton.mode']])
  const [reading, writing] = ['read', 'write'].map(mode => ['readWrite', mode])
  expect(sides('lock.wait')).toEqual([writing, reading])
  expect(sides('lock.hold')).toEqual([reading, writing])
})

test('a wait for one kind is not linked to a hold of another, in this process or through Redis', async () => {
  const telemetry = new Telemetry()
  const redis = plainRedis()
  for (const links of [undefined, { redis }]) {
    const { locks } = telemetry.client(links && { links })
    const key = freshKey()
    const semaphore = locks.semaphore(key, 1)
    const [mutex, permit] = [await locks.lock(key), await semaphore.lock()]
    const waiting = semaphore.lock({ fair: true })
    await eventually(async () => (await semaphore.inspect()).waiters.length === 1)
    // The mutex is released last. If kinds were mixed up, the span of the waiting call would be linked to the mutex,
    // not to the permit.
    await permit.release()
    await mutex.release()
    await (await waiting).release()
    const all = await telemetry.ended('lock.hold', links ? 6 : 3)
    const [next] = all.filter(({ attributes }) => attributes['redis_baton.via'] === 'handoff').slice(-1)
    const before = next!.links.map(({ attributes }) => attributes?.['redis_baton.fencing_token'])
    expect(before).toEqual([permit.fencingToken])
    expect(await redis.keys(`lock-trace:*${key}*`)).toHaveLength(links ? 1 : 0)
    expect(await collect(locks.list(key))).toEqual([])
  }
})
