/** Tests that a wait leaves nothing in the client, in whatever way it ends: no waiter, no timer and no channel (I7). */
import { describe, expect } from 'vitest'
import { LockClosedError, LockConnectionError } from '../../src/errors.ts'
import { Waiter } from '../../src/key/waiter.ts'
import { settled } from './promises.ts'
import { HEARTBEAT, KEY, NOTHING, OUTAGE, test, Waiting } from './waiting.ts'

const unreachable = new LockConnectionError('out of reach')

const endings: Record<string, (at: Waiting) => Promise<void>> = {
  'a grant at once': async at => {
    await at.start({ id: 'A' })
    await at.kind.attempts.next.answer(at.granted())
  },
  'a single attempt that is granted': async at => {
    await at.start({ id: 'A', mode: 'once' })
    await at.kind.attempts.next.answer(at.granted())
  },
  'a single attempt that is refused': async at => {
    await at.start({ id: 'A', mode: 'once' })
    await at.kind.attempts.next.answer(at.refused())
  },
  'a grant after a wake-up': async at => {
    await at.parkedHead({ id: 'A' })
    at.unlocked(KEY)
    await settled()
    await at.kind.attempts.next.answer(at.granted())
  },
  'a grant by message': async at => {
    await at.parkedFair({ id: 'A' })
    at.message('A', 100, 'handoff')
  },
  'a grant by message before the refusal': async at => {
    await at.start({ id: 'A', mode: 'queue' })
    at.message('A', 100, 'handoff')
    await at.kind.attempts.next.answer(at.refused({ position: 1, ticket: '5' }))
  },
  'a grant by heartbeat': async at => {
    await at.parkedFair({ id: 'A' })
    await at.clock.advance(HEARTBEAT)
    await at.kind.tends.next.answer(at.tended([at.granted()]))
  },
  'a grant in the queue after fairAfter': async at => {
    await at.parkedHead({ id: 'A', fairAfter: 1_000 })
    await at.clock.advance(1_000)
    await at.kind.attempts.next.answer(at.granted({ via: 'expiry' }))
  },
  'giving up while asking': async at => {
    const waiter = await at.start({ id: 'A' })
    at.requests.end(waiter, undefined)
    await at.kind.leaves.next.answer()
    await at.kind.attempts.next.answer(at.refused())
  },
  'giving up in the line': async at => {
    const waiters = [await at.parkedHead({ id: 'A' }), await at.start({ id: 'B' })]
    for (const waiter of waiters.reverse()) at.requests.end(waiter, undefined)
  },
  'giving up in the queue, during a heartbeat': async at => {
    const waiter = await at.parkedFair({ id: 'A' })
    await at.clock.advance(HEARTBEAT)
    at.requests.end(waiter, undefined)
    await at.kind.leaves.next.answer()
    await at.kind.tends.next.answer(at.tended([1]))
    await at.kind.leaves.next.answer()
  },
  'a failure': async at => {
    await at.start({ id: 'A' })
    await at.kind.attempts.next.fail(unreachable)
    await at.kind.leaves.next.answer()
  },
  'a failure to subscribe': async at => {
    at.channels.slow = true
    await at.start({ id: 'A' })
    await at.kind.attempts.next.answer(at.refused())
    await at.channels.hearings.next.fail(unreachable)
  },
  'an outage': async at => {
    await at.parkedHead({ id: 'A' })
    at.requests.onDisconnected(unreachable)
    await at.clock.advance(OUTAGE)
    at.requests.onReconnected()
    at.requests.look()
    for (const call of at.kind.attempts.open) await call.fail(unreachable)
    for (const call of at.kind.leaves.open) await call.answer()
  },
  'close, in every state of waiting': async at => {
    await at.parkedHead({ id: 'A', fairAfter: 60_000 })
    await at.start({ id: 'B' })
    await at.parkedFair({ id: 'C' })
    await at.start({ id: 'D', mode: 'queue' })
    const closed = at.close()
    for (const call of at.kind.leaves.open) await call.answer()
    await closed
    await at.kind.attempts.next.fail(new LockClosedError())
  },
}

describe('I7 nothing is left in the client after', () => {
  test.each(Object.keys(endings))('%s', async name => {
    const at = new Waiting()
    await endings[name]?.(at)
    await settled()
    expect(at.residue).toEqual(NOTHING)
    expect(['A', 'B', 'C', 'D'].filter(id => at.named.get(id) instanceof Waiter)).toEqual([])
    const sent = at.kind.attempts.count + at.kind.tends.count + at.kind.leaves.count
    await at.clock.advance(60_000)
    expect(at.kind.attempts.count + at.kind.tends.count + at.kind.leaves.count).toBe(sent)
  })
})

test('I7 a subscription that fails after its waiter has left does not take the channel from a waiter that came later', async () => {
  const at = new Waiting()
  at.channels.slow = true
  at.requests.end(await at.start({ id: 'A', mode: 'queue' }), undefined)
  await at.start({ id: 'B', mode: 'queue' })
  const [first, second] = at.channels.hearings.open
  await second?.answer()
  await first?.fail(unreachable)
  expect(at.channels.users).toEqual({ [`inbox of ${KEY}`]: 1 })
})

test('I7 a connection that is lost after close leaves no timer', async ({ at }) => {
  await at.parkedFair({ id: 'A' })
  const closed = at.close()
  at.requests.onDisconnected(unreachable)
  await at.kind.leaves.next.fail(unreachable)
  await closed
  expect(at.residue).toEqual(NOTHING)
})

test('I7 a close during an outage leaves no timer', async ({ at }) => {
  await at.parkedFair({ id: 'A' })
  at.requests.onDisconnected(unreachable)
  const closed = at.close()
  for (const call of at.kind.leaves.open) await call.fail(unreachable)
  for (const call of at.kind.tends.open) await call.fail(unreachable)
  await closed
  expect(at.residue).toEqual(NOTHING)
})
