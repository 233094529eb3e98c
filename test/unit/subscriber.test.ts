/** Tests the subscriptions of a client without a server: the test decides which server has a channel, and what it answers. */
import { describe, expect, test } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { type MessageServer, Subscriber } from '../../src/redis/subscriber.ts'
import { FakeClock } from './fake-clock.ts'
import { Calls } from './fake-kind.ts'
import { now, quiet, settled } from './promises.ts'

class FakeServer implements MessageServer {
  up = true
  readonly asked = new Calls<[], boolean>()
  readonly left: string[] = []

  subscribe(): Promise<boolean> {
    return this.asked.make()
  }

  unsubscribe(channel: string): void {
    this.left.push(channel)
  }

  probe(): Promise<boolean> {
    return this.asked.make()
  }
}

function scene() {
  const clock = new FakeClock()
  const at = { clock, server: new FakeServer() as FakeServer | undefined, refreshed: 0, told: [] as string[] }
  const servers = {
    serverOf: () => at.server,
    refresh: () => {
      at.refreshed += 1
    },
    keepOnly() {},
    close() {},
  }
  const subscriber = new Subscriber(clock, () => servers, {
    onResumed: channel => at.told.push(channel),
    onWhole: () => at.told.push('whole'),
  })
  return { at, subscriber }
}

/** A channel that is confirmed on its server. */
async function subscribed() {
  const { at, subscriber } = scene()
  const server = at.server as FakeServer
  const need = subscriber.need('a')
  await server.asked.next.answer(true)
  await need
  return { at, subscriber, server }
}

test('the users of a channel share one subscription; it ends a moment after the last of them has left', async () => {
  const { at, subscriber, server } = await subscribed()
  expect(subscriber.need('a')).toBeUndefined()
  subscriber.drop('a')
  await at.clock.advance(2_000)
  subscriber.drop('a')
  await at.clock.advance(900)
  expect(subscriber.need('a')).toBeUndefined()
  subscriber.drop('a')
  await at.clock.advance(900)
  expect(subscriber.need('a')).toBeUndefined()
  expect([server.left, server.asked.count, at.told]).toEqual([[], 1, []])
  subscriber.drop('a')
  await at.clock.advance(2_000)
  expect(server.left).toEqual(['a'])
  expect(subscriber.isSubscribed('a')).toBe(false)
  expect(at.clock.armed).toBe(0)
})

describe('messages may have been lost, which is told when the channel is confirmed again (I4):', () => {
  test('its connection was lost', async () => {
    const { at, subscriber, server } = await subscribed()
    server.up = false
    expect(subscriber.lost(server)).toBe(true)
    expect([subscriber.isSubscribed('a'), subscriber.whole]).toEqual([false, false])
    await server.asked.next.answer(true)
    expect([subscriber.isSubscribed('a'), subscriber.whole, at.told]).toEqual([true, true, ['whole', 'a']])
  })

  // This test fails if `!this.#servers.serverOf(name)?.up` becomes `false` in src/redis/subscriber.ts. It also fails if
  // `!server.up && !channel.at` becomes `false` there: a caller that has not waited for the confirmation misses a message,
  // and nobody reads the state of its lock.
  test.each(['is not up yet', 'is lost before it has confirmed'])('its connection %s', async how => {
    const { at, subscriber } = scene()
    const server = at.server as FakeServer
    if (how === 'is not up yet') server.up = false
    quiet(subscriber.need('a')!)
    if (server.up) {
      server.up = false
      subscriber.lost(server)
    }
    await server.asked.next.answer(true)
    expect(at.told).toEqual(['whole', 'a'])
  })

  test('another server has it: its subscription there counts, and the old one is ended', async () => {
    const { at, subscriber, server } = await subscribed()
    const other = new FakeServer()
    at.server = other
    subscriber.seek()
    expect(subscriber.isSubscribed('a')).toBe(true)
    other.up = false
    expect([subscriber.lost(other), subscriber.whole]).toEqual([false, true])
    await other.asked.next.answer(true)
    expect([server.left, at.told]).toEqual([['a'], ['a']])
  })
})

test('a server that does not have the channel is asked again after the servers were found out anew', async () => {
  const { at, subscriber } = scene()
  const need = subscriber.need('a')
  await at.server!.asked.next.answer(false)
  expect([at.refreshed, await now(need!)]).toEqual([1, 'pending'])
  subscriber.seek()
  await at.server!.asked.next.answer(true)
  expect(await now(need!)).toBeUndefined()
})

test('a refused subscription rejects for its callers, and is tried again', async () => {
  const { at, subscriber } = scene()
  const need = quiet(subscriber.need('a')!)
  await at.server!.asked.next.fail(new LockConnectionError('Redis refused', new Error('NOPERM')))
  expect(await now(need)).toMatchObject({ message: 'cannot subscribe to a: NOPERM' })
  await at.clock.advance(1_000)
  await at.server!.asked.next.answer(true)
  expect(subscriber.isSubscribed('a')).toBe(true)
})

// This test fails if `const idle = channel.users === 0` becomes `const idle = channel.users === 0 && !channel.need` in
// src/redis/subscriber.ts: the search goes on for ever.
test('I7 a channel that no server has is given up with its last user, and at close callers are rejected', async () => {
  const { at, subscriber } = scene()
  at.server = undefined
  quiet(subscriber.need('a')!)
  subscriber.drop('a')
  await at.clock.advance(5_000)
  expect(at.clock.armed).toBe(0)
  const need = quiet(subscriber.need('b')!)
  subscriber.close()
  await settled()
  expect(await now(need)).toMatchObject({ code: 'ERR_LOCK_CLOSED' })
  expect(at.clock.armed).toBe(0)
})
