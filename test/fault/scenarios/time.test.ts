/** What a process may get wrong about time: its time of day, and when it last ran. */
import { describe, expect, test } from 'vitest'
import { park } from '../../kit/parking.ts'
import { client, freshKey, plainRedis } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { Agent } from './agent.ts'

const HOUR = 3_600_000

describe.each([HOUR, -HOUR])('a process whose time of day is off by %i ms', clockOffset => {
  test('waits in the same order, holds as long, and takes tokens from the same clock', async () => {
    const key = freshKey()
    const [before, after] = [client(), client()]
    const agent = new Agent({ clockOffset })
    expect(Math.abs((await agent.timeOfDay()) - Date.now() - clockOffset)).toBeLessThan(HOUR / 60)

    const first = await before.lock(key)
    await agent.queue(key, 1, { fair: true })
    const second = agent.lock(key, { fair: true, lease: 20_000 })
    await eventually(async () => (await before.inspect(key)).waiters.length === 2)
    const { lease: third } = await park(after, key, { fair: true })
    const waiters = (await before.inspect(key)).waiters
    for (const { waited, expiresIn } of waiters) {
      expect(waited).toBeLessThan(10_000)
      expect(expiresIn).toBeGreaterThan(1)
      expect(expiresIn).toBeLessThanOrEqual(10_000)
    }

    await first.release()
    // The agent's first waiter is never released: it is taken away, as from any holder.
    await eventually(async () => (await before.inspect(key)).waiters.length === 2)
    expect(await before.forceRelease(key)).toBe(true)
    const hold = await second
    const [seconds] = await plainRedis().time()
    expect(hold.token).toBeGreaterThan(first.fencingToken)
    expect(Math.abs(hold.token / 1_000_000 - Number(seconds))).toBeLessThan(60)
    expect(hold.remaining).toBeGreaterThan(10_000)
    expect(hold.remaining).toBeLessThanOrEqual(20_000)
    expect(await before.tryLock(key)).toBeNull()
    expect(await agent.release(hold.id)).toBe(true)
    expect((await third).fencingToken).toBeGreaterThan(hold.token)
  })

  test('renews its lease, and loses a fixed one at its end', async () => {
    const agent = new Agent({ clockOffset, lease: 900 })
    const [renewed, fixed] = [freshKey(), freshKey()]
    const [kept, lapsed] = [await agent.lock(renewed), await agent.lock(fixed, { lease: 900 })]
    const { lease: wait } = await park(client(), fixed)
    await wait
    await sleep(2 * 900)
    expect(await agent.state(lapsed.id)).toEqual({ held: false, aborted: true })
    expect(await agent.state(kept.id)).toEqual({ held: true, aborted: false })
    expect(await client().tryLock(renewed)).toBeNull()
  })
})

test.each([HOUR, -HOUR])(
  'a process whose time of day is set by %i ms keeps what it holds and its place',
  async offset => {
    const agent = new Agent({ lease: 900, waiterTtl: 900 })
    const [own, others] = [freshKey(), freshKey()]
    const first = await client().lock(others)
    const hold = await agent.lock(own)
    await agent.queue(others, 1, { fair: true })
    await agent.setClock(offset)
    const { lease: wait } = await park(client(), others, { fair: true })
    await sleep(2 * 900)
    expect(await agent.state(hold.id)).toEqual({ held: true, aborted: false })
    expect(await client().tryLock(own)).toBeNull()

    await first.release()
    const { waiters } = await client().inspect(others)
    expect(waiters, 'the agent was first').toHaveLength(1)
    await agent.kill()
    await wait
  },
)

describe.each([
  ['renewed', { lease: 600, renew: true }],
  ['fixed', { lease: 600 }],
])('a process that is blocked for longer than its %s lease', (_, options) => {
  test('finds its lease not held, was replaced meanwhile, and changes nothing any more', async () => {
    const key = freshKey()
    const agent = new Agent()
    const hold = await agent.lock(key, options)
    const { lease: wait } = await park(client(), key, { fair: true })
    let unblocked = false
    const blocked = agent.block(hold.id, 2_000).finally(() => {
      unblocked = true
    })

    const next = await wait
    expect(unblocked).toBe(false)
    expect(next.fencingToken).toBeGreaterThan(hold.token)

    expect(await blocked).toEqual({ held: false, remaining: 0 })
    await eventually(async () => (await agent.state(hold.id)).aborted)
    expect(await agent.release(hold.id)).toBe(false)
    expect(await client().inspect(key)).toMatchObject({ locked: true, owner: next.owner, holds: 1 })
    expect(next.held).toBe(true)
    expect(await next.release()).toBe(true)
  })
})
