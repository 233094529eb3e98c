/** Tests how `Connection` hides short outages from callers: what it repeats, when it gives up, how it reconnects. */
import { describe, expect } from 'vitest'
import { LockClosedError, LockConnectionError } from '../../src/errors.ts'
import { Connected, OUTAGE, replyError, test } from './fake-redis.ts'
import { now, quiet, settled } from './promises.ts'

const socket = new Error('read ETIMEDOUT')

describe('a call', () => {
  test('waits for the connection, and reports when it was sent', async () => {
    const at = new Connected()
    const call = at.ask()
    at.connection.uplink.open()
    await at.clock.advance(300)
    expect(at.redis.asked.count).toBe(0)
    await at.redis.ready()
    const sent = at.clock.now()
    await at.clock.advance(200)
    await at.redis.asked.next.answer('yes')
    expect(await call).toEqual({ reply: 'yes', sent, repeated: false })
  })

  test('whose outcome is unknown is sent again on the next connection, and reported as repeated', async ({ at }) => {
    const call = at.ask()
    await settled()
    at.redis.break(socket)
    await at.clock.advance(500)
    expect(at.redis.asked.count).toBe(1)
    await at.redis.ready()
    const sent = at.clock.now()
    await at.redis.asked.next.answer('yes')
    expect(await call).toEqual({ reply: 'yes', sent, repeated: true })
  })

  test.each([
    ...['LOADING x', 'BUSY x', 'TRYAGAIN x', 'CLUSTERDOWN x', 'MASTERDOWN x', 'MOVED 1 x', 'ASK 1 x'],
    'ERR Script attempted to access a non local key in a cluster node script: x, on @user_script:1.',
  ])('that the server puts off is sent again after a pause, and does not count as repeated: %s', async message => {
    const at = await Connected.up()
    const call = at.ask()
    await settled()
    await at.redis.asked.next.fail(replyError(message))
    expect(at.redis.asked.open.length).toBe(0)
    await at.clock.advance(100)
    await at.redis.asked.next.answer('yes')
    expect(await call).toMatchObject({ reply: 'yes', repeated: false })
  })

  test.for(['NOPERM x', 'OOM x', 'NOREPLICAS x', 'WRONGTYPE x', 'ERR x', 'BUSYGROUP x'])(
    'that the server refuses rejects with the refusal, and is not repeated: %s',
    async (message, { at }) => {
      const call = quiet(at.ask())
      await settled()
      const cause = replyError(message)
      await at.redis.asked.next.fail(cause)
      expect(await now(call)).toMatchObject({ code: 'ERR_LOCK_CONNECTION', cause })
      await at.clock.advance(OUTAGE)
      expect(at.redis.asked.count).toBe(1)
    },
  )

  // This test fails if `if (request.place === 0) {` becomes `if (false) {` in src/redis/order.ts: the last request runs
  // between the two runs of the second one. If they are an attempt and the release of its hold, the second run queues a
  // waiter that nobody waits for.
  test('about a lock waits until earlier requests about it have run in their order; about another lock it does not', async () => {
    const at = await Connected.up()
    const calls = [at.ask({ key: 'a' }), at.ask({ key: 'a' })]
    await settled()
    await at.redis.asked.next.fail(replyError('MOVED 1 x'))
    await at.redis.asked.next.answer('too early')
    calls.push(at.ask({ key: 'a' }), at.ask({ key: 'b' }))
    await settled()
    expect(at.redis.asked.count).toBe(3)
    await at.redis.asked.next.answer('other')
    expect(await calls[3]).toMatchObject({ reply: 'other' })
    await at.clock.advance(100)
    expect(at.redis.asked.count).toBe(5)
    await at.redis.asked.next.answer('first')
    expect(at.redis.asked.open.length).toBe(1)
    await at.redis.asked.next.answer('second')
    await at.redis.asked.next.answer('third')
    const replies = ['first', 'second', 'third'].map(reply => ({ reply }))
    expect(await Promise.all(calls.slice(0, 3))).toMatchObject(replies)
  })

  test('that is refused for want of a password is sent on the next connection, because the password was accepted before', async () => {
    const at = await Connected.up()
    const before = at.ask()
    await settled()
    await at.redis.asked.next.answer('yes')
    await before
    const call = at.ask()
    await settled()
    await at.redis.asked.next.fail(replyError('NOAUTH x'))
    await at.clock.advance(100)
    expect(at.redis.asked.count).toBe(2)
    at.redis.emit('end')
    await at.clock.advance(100)
    await at.redis.ready()
    await at.redis.asked.next.answer('yes')
    expect(await call).toMatchObject({ reply: 'yes' })
  })
})

describe('a call that was refused and can be asked in another way', () => {
  const noScript = replyError('NOSCRIPT x')

  test('is sent on the next connection, if its own is gone', async ({ at }) => {
    const call = at.ask({ rephrase: () => true })
    await settled()
    const asked = at.redis.asked.next
    at.redis.emit('end')
    await asked.fail(noScript)
    expect(await now(call)).toBe('pending')
    await at.redis.ready()
    await at.redis.asked.next.answer('yes')
    expect(await call).toMatchObject({ reply: 'yes' })
  })

  test('rejects with its own explanation if there is no other way', async ({ at }) => {
    const said = new LockConnectionError('it needs more rights', noScript)
    const call = quiet(at.ask({ rephrase: () => false, explain: () => said }))
    await settled()
    await at.redis.asked.next.fail(noScript)
    expect(await now(call)).toBe(said)
  })
})

test.for(['NOSCRIPT x', 'BUSY x'])(
  'calls about one lock take effect in their order, if the first is refused: %s',
  async (refusal, { at }) => {
    const sent: string[] = []
    const ask = (name: string, key: string) =>
      at.ask({
        key,
        rephrase: error => error.message.startsWith('NOSCRIPT'),
        send: () => {
          sent.push(name)
          return at.redis.ask()
        },
      })
    const [first, second, other] = [ask('first', 'a'), ask('second', 'a'), ask('other', 'b')]
    await settled()
    const [one, two, three] = [...at.redis.asked.open]
    await one!.fail(replyError(refusal))
    await two!.answer('early')
    await three!.answer('yes')
    expect(await other).toMatchObject({ reply: 'yes', repeated: false })
    await at.clock.advance(50)
    expect(sent).toEqual(['first', 'second', 'other', 'first', 'second'])
    await at.redis.asked.next.answer('yes')
    await at.redis.asked.next.answer('late')
    expect(await first).toMatchObject({ reply: 'yes', repeated: false })
    expect(await second).toMatchObject({ reply: 'late', repeated: true })
  },
)

test('a reply that cannot be read rejects its own call, and no other', async ({ at }) => {
  const unreadable = new Error('not a reply')
  const first = quiet(
    at.ask({
      read() {
        throw unreadable
      },
    }),
  )
  const second = at.ask()
  await settled()
  await at.redis.asked.next.answer('?')
  await at.redis.asked.next.answer('yes')
  expect(await now(first)).toBe(unreadable)
  expect(await second).toMatchObject({ reply: 'yes' })
})

describe('I6 each call is given up exactly when its own patience is over,', () => {
  test.each(['without a connection', 'without an answer'])('%s', async how => {
    const at = new Connected()
    at.connection.uplink.open()
    if (how === 'without an answer') await at.redis.ready()
    const calls = []
    for (let i = 0; i < 4; i++) {
      calls.push(quiet(at.ask()))
      await at.clock.advance(1_700)
    }
    await at.clock.advance(OUTAGE - 4 * 1_700 - 1)
    for (const call of calls) {
      expect(await now(call)).toBe('pending')
      await at.clock.advance(1)
      expect(await now(call)).toMatchObject({ code: 'ERR_LOCK_CONNECTION' })
      await at.clock.advance(1_699)
    }
  })

  test('and a later answer changes nothing', async ({ at }) => {
    // The socket stays open for a while after `disconnect`.
    at.redis.disconnect = () => {}
    const call = quiet(at.ask())
    await at.clock.advance(OUTAGE)
    await at.redis.asked.next.answer('late')
    expect(await now(call)).toMatchObject({ code: 'ERR_LOCK_CONNECTION' })
  })
})

describe('a connection that is lost', () => {
  test('is made again, after pauses that double up to a second', async ({ at }) => {
    at.redis.break(socket)
    for (let attempt = 0; attempt < 12; attempt++) {
      const before = at.clock.now()
      while (at.redis.connects.length < attempt + 2) await at.clock.advance(1)
      const pause = Math.min(1_000, 10 * 2 ** attempt)
      expect(at.clock.now() - before).toBeGreaterThanOrEqual(Math.floor(pause * 0.75))
      expect(at.clock.now() - before).toBeLessThanOrEqual(Math.ceil(pause * 1.25))
      at.redis.break(socket)
    }
  })

  test('I6 ends all calls at once if the server refuses it, because the server will refuse it again', async () => {
    const at = new Connected()
    at.connection.uplink.open()
    const calls = [quiet(at.ask()), quiet(at.ask())]
    const cause = replyError('WRONGPASS invalid username-password pair')
    at.redis.break(cause)
    for (const call of calls) expect(await now(call)).toMatchObject({ code: 'ERR_LOCK_CONNECTION', cause })
  })

  test('I6 also ends calls that come before the next attempt is over, but none after an attempt that succeeds', async () => {
    const at = new Connected()
    at.connection.uplink.open()
    const cause = replyError('WRONGPASS invalid username-password pair')
    at.redis.break(cause)
    expect(await now(quiet(at.ask()))).toMatchObject({ code: 'ERR_LOCK_CONNECTION', cause })
    await at.clock.advance(20)
    expect(await now(quiet(at.ask()))).toMatchObject({ code: 'ERR_LOCK_CONNECTION', cause })
    await at.redis.ready()
    const call = at.ask()
    await settled()
    await at.redis.asked.next.answer('yes')
    expect(await now(call)).toMatchObject({ reply: 'yes' })
  })
})

// If the connection waited for the answer until `outageTimeout`, no time would be left to send the call again.
test('I6 if a server leaves commands unanswered, the connection is made again, well before patience is over', async () => {
  const at = await Connected.up()
  const call = at.ask()
  await at.clock.advance(OUTAGE / 2)
  expect(at.redis.connects.length).toBeGreaterThan(1)
  await at.redis.ready()
  await at.redis.asked.next.answer('yes')
  expect(await call).toMatchObject({ reply: 'yes', repeated: true })
})

describe('silence counts only time in which this process ran', () => {
  test.for([20_000, 4_000])(
    'replies that came during a stall of %i ms are read before anything is judged',
    async (stall, { at }) => {
      const call = at.ask()
      await settled()
      // Let a short stall begin so late that the time limit for an answer ends during the stall.
      await at.clock.advance(stall < 5_000 ? 4_900 : 0)
      at.clock.block(stall)
      await at.clock.advance(1)
      await at.redis.asked.next.answer('yes')
      expect(await now(call)).toMatchObject({ reply: 'yes', repeated: false })
      expect(at.redis.connects.length).toBe(1)
    },
  )

  test('the time of a greeting counts only while this process runs, too', async () => {
    const at = new Connected()
    at.connection.uplink.open()
    at.clock.block(60_000)
    await at.clock.advance(100)
    await at.redis.ready()
    expect(at.told).toEqual(['up'])
  })

  test('I6 the patience of a call counts only while this process runs, however often it stalls', async () => {
    const at = new Connected()
    at.connection.uplink.open()
    const call = quiet(at.ask())
    let ran = 0
    while ((await now(call)) === 'pending') {
      at.clock.block(3_000)
      await at.clock.advance(100)
      ran += 100
      expect(ran).toBeLessThan(2 * OUTAGE)
    }
    expect(await now(call)).toMatchObject({ code: 'ERR_LOCK_CONNECTION' })
  })
})

describe('the first call after a long pause', () => {
  test('I6 is sent again on a new connection if no answer comes soon; there it has as much time as other calls', async () => {
    const at = await Connected.up()
    await at.clock.advance(60_000)
    const call = at.ask()
    await at.clock.advance(500)
    expect(at.redis.connects.length).toBe(2)
    await at.redis.ready()
    await at.clock.advance(4_500)
    expect(at.redis.connects.length).toBe(2)
    await at.redis.asked.next.answer('yes')
    expect(await now(call)).toMatchObject({ reply: 'yes', repeated: true })
  })

  test('and its answer give the calls after it as much time as other calls, even if one of them is already under way', async () => {
    const at = await Connected.up()
    await at.clock.advance(20_000)
    const first = at.ask()
    const second = quiet(at.ask())
    await at.redis.asked.next.answer('yes')
    await first
    await at.clock.advance(1_000)
    expect(at.redis.connects).toHaveLength(1)
    await at.redis.asked.next.answer('yes')
    expect(await second).toMatchObject({ reply: 'yes', repeated: false })
  })
})

describe('close', () => {
  test.each(['up', 'down', 'not connected yet'])('rejects what is pending, and leaves no timer: %s', async state => {
    const at = state === 'not connected yet' ? new Connected() : await Connected.up()
    if (state === 'down') at.redis.break(socket)
    const call = quiet(at.ask())
    await settled()
    at.connection.close()
    expect(await now(call)).toBeInstanceOf(LockClosedError)
    await expect(at.ask()).rejects.toThrow(LockClosedError)
    expect(at.clock.armed).toBe(0)
    const made = at.redis.connects.length
    await at.clock.advance(60_000)
    expect(at.redis.connects.length).toBe(made)
    expect(at.told.filter(told => told.startsWith('down')).length).toBe(state === 'down' ? 1 : 0)
  })
})
