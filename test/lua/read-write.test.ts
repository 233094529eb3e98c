/** Tests lua/permits/ as a read-write lock: admission, messages, and re-entry. */
import { describe, expect } from 'vitest'
import { anonymous, caller } from './callers.ts'
import { type Asker, another, asker, TestSemaphore, test } from './semaphore.ts'

const reader = (name: string) => asker(anonymous(name), '1/999999999')
const writer = (name: string) => asker(anonymous(name), '1000000000/1000000000')
/** Returns the arguments of a second call by the same client, for another owner. */
function beside(who: Asker, wants = who.wants): Asker {
  const fresh = another(who)
  return { ...fresh, owner: fresh.id, wants }
}

/** Subscribes to the inboxes of these callers, and returns the messages received. */
async function heardBy(lock: TestSemaphore, ...callers: readonly Asker[]): Promise<string[]> {
  const ear = lock.redis.duplicate()
  const heard: string[] = []
  ear.on('message', (_, text: string) => heard.push(text))
  await ear.subscribe(...new Set(callers.map(({ client }) => `lock:inbox:${client}`)))
  return heard
}

async function holders(lock: TestSemaphore): Promise<string[]> {
  return (await lock.state()).holders
}

async function queued(lock: TestSemaphore, ...callers: readonly Asker[]): Promise<void> {
  for (const who of callers) expect((await lock.acquire(who, 'queue')).status).toBe('refused')
}

describe('phases', () => {
  test('I3 I4 the end of a writer admits all waiting readers, and then the next writer is first', async ({ lock }) => {
    const [first, second] = [writer('first'), writer('second')]
    const [ada, ben, late] = [reader('ada'), reader('ben'), reader('late')]
    await heardBy(lock, first, second, ada, ben, late)
    await lock.acquire(first)
    await queued(lock, second, ada, ben)
    await lock.release(first)
    expect(await holders(lock)).toEqual([ada.id, ben.id].sort())
    // A newcomer does not overtake the waiting writer.
    expect((await lock.acquire(reader('unfair'))).status).toBe('refused')
    await queued(lock, late)
    await lock.release(ada)
    expect(await holders(lock)).toEqual([ben.id])
    await lock.release(ben)
    expect(await holders(lock)).toEqual([second.id])
    await lock.release(second)
    expect(await holders(lock)).toEqual([late.id])
  })

  test('I3 the turn of a writer is over when its write ends, even if it goes on reading', async ({ lock }) => {
    const first = asker(caller('first'), '1000000000/1000000000')
    const [second, ada, late] = [writer('second'), reader('ada'), reader('late')]
    await heardBy(lock, second, ada, late)
    await lock.acquire(first)
    const kept = { ...another(first), wants: ada.wants }
    expect(await lock.acquire(kept)).toMatchObject({ status: 'reentered' })
    await queued(lock, second, ada)
    await lock.release(first)
    expect(await holders(lock)).toEqual([ada.id, kept.id].sort())
    await queued(lock, late)
    await lock.release(ada)
    await lock.release(kept)
    expect(await holders(lock)).toEqual([second.id])
  })

  test('I4 a waiting writer that gives up or dies no longer keeps readers out', async ({ lock }) => {
    const [ada, ben, cleo] = [reader('ada'), reader('ben'), reader('cleo')]
    const gone = writer('gone')
    const dead = { ...writer('dead'), ttl: 500 }
    await heardBy(lock, ben, cleo)
    await lock.acquire(ada)
    await queued(lock, gone, ben)
    await lock.leave(gone)
    expect(await holders(lock)).toEqual([ada.id, ben.id].sort())
    await lock.acquire(dead, 'queue')
    await expect.poll(() => lock.acquire(cleo, 'queue')).toMatchObject({ status: 'granted' })
  })

  test('I3 all waiting readers are admitted before the next writer, however many they are', async ({ lock }) => {
    const [first, second, crowd] = [writer('first'), writer('second'), reader('crowd')]
    const heard = await heardBy(lock, crowd, second)
    await lock.acquire(first)
    await queued(lock, second)
    const many = Array.from({ length: 2_100 }, () => beside(crowd))
    await Promise.all(many.map(who => lock.acquire(who, 'queue')))
    expect(await lock.release(first)).toEqual(['unfinished'])
    expect((await lock.state()).queue).toEqual([second.id])
    await lock.sweep()
    expect(await holders(lock)).toEqual(many.map(({ id }) => id).sort())
    // The release and the sweep each send one message.
    await expect.poll(() => heard.filter(text => text.startsWith('handoff')).length).toBe(2)
  })

  test('I3 a writer whose message reaches nobody gets no turn; the next live writer gets it, however many are passed over', async () => {
    const lock = await TestSemaphore.readWrite()
    const [ada, ben, deaf, next] = [reader('ada'), reader('ben'), writer('deaf'), writer('next')]
    await heardBy(lock, ben, next)
    await lock.acquire(ada)
    await Promise.all(Array.from({ length: 2_050 }, () => lock.acquire(beside(deaf), 'queue')))
    await queued(lock, next, ben)
    expect(await lock.release(ada)).toEqual(['unfinished'])
    expect(await lock.sweep()).toBe('swept')
    expect(await holders(lock)).toEqual([next.id])
  })
})

describe('messages', () => {
  test('I4 grants in the queue of the call are in the reply; other waiters of its client get a message', async () => {
    const lock = await TestSemaphore.readWrite()
    const ada = reader('ada')
    const mine = beside(ada, writer('').wants)
    const heard = await heardBy(lock, ada)
    await lock.acquire(ada)
    await queued(lock, mine)
    expect(await lock.release(ada)).toEqual(['released'])
    await expect.poll(() => heard).toEqual([expect.stringContaining(mine.id)])
    const [one, two] = [beside(ada), beside(mine)]
    await queued(lock, one, two)
    await lock.lapse(mine)
    await lock.tend([two, 1])
    await expect.poll(() => heard.slice(1)).toEqual([expect.stringContaining(one.id)])
  })

  test('I4 a release that makes no room sends no message', async ({ lock }) => {
    const [ada, ben] = [reader('ada'), reader('ben')]
    const ear = lock.redis.duplicate()
    const heard: string[] = []
    ear.on('message', (_, text: string) => heard.push(text))
    await ear.subscribe(`${lock.names.lock}:unlock`)
    await lock.acquire(ada)
    await lock.acquire(ben)
    expect(await lock.release(ada)).toEqual(['released'])
    expect(await lock.release(ben)).toEqual(['released'])
    await expect.poll(() => heard).toEqual([`free ${ben.client}`])
  })
})

describe('re-entry', () => {
  test('I1 I4 an owner that reads may read again past a waiting writer, and may not write', async ({ lock }) => {
    const outer = reader('outer')
    const inner = { ...another(outer), owner: outer.id }
    const { token } = await lock.acquire(outer)
    const other = writer('other')
    await heardBy(lock, other)
    await queued(lock, other)
    expect(await lock.acquire(inner)).toEqual({ status: 'reentered', token, ttl: inner.lease, around: outer.id })
    const upgrade = { ...another(inner), wants: writer('').wants }
    expect((await lock.acquire(upgrade)).status).toBe('deadlock')
    expect((await lock.acquire(upgrade, 'queue')).status).toBe('deadlock')
    // The client has received an answer to an earlier request of this call: the call waits for its owner's other call.
    expect((await lock.acquire(upgrade, 'try', 1)).status).toBe('refused')
    expect(await lock.acquire(upgrade, 'queue', 1)).toMatchObject({ status: 'refused', position: 2 })
    await lock.leave(upgrade)
    // The owner can re-enter as long as one of its holds lasts.
    await lock.release(outer)
    const innermost = { ...another(inner), owner: outer.id }
    expect(await lock.acquire(innermost)).toMatchObject({ status: 'reentered', token })
    await lock.release(inner)
    await lock.release(innermost)
    expect((await lock.acquire({ ...another(inner), owner: outer.id })).status).toBe('refused')
  })

  test('I5 repeated, it is reported as a re-entry again, and takes no more', async ({ lock }) => {
    const named = asker(caller('outer'), '1/999999999')
    for (const outer of [reader('outer'), named]) {
      const { token } = await lock.acquire(outer)
      const inner = outer === named ? another(outer) : { ...another(outer), owner: outer.id }
      await lock.acquire(inner)
      const { taken } = await lock.state()
      expect(await lock.acquire(inner)).toMatchObject({ status: 'reentered', token, ttl: expect.any(Number) })
      expect(await lock.acquire(outer)).toMatchObject({ status: 'granted', token, ttl: expect.any(Number) })
      expect((await lock.state()).taken).toBe(taken)
    }
  })

  test('I5 repeated after its lease has ended, it enters again, while another hold of its owner lasts', async () => {
    const lock = await TestSemaphore.readWrite()
    for (const wants of [writer('').wants, reader('').wants]) {
      const outer = asker(caller('outer'), wants)
      const nameless = { ...outer, ...caller('nameless'), wants }
      for (const [first, owner] of [
        [outer, outer.owner],
        [{ ...nameless, owner: nameless.id }, nameless.id],
      ] as const) {
        const { token } = await lock.acquire(first)
        const inner = { ...another(first), owner }
        await lock.acquire(inner)
        const { taken } = await lock.state()
        for (const mode of [undefined, 'queue'] as const) {
          await lock.lapse(inner)
          expect(await lock.acquire(inner, mode)).toMatchObject({ status: 'reentered', token, ttl: inner.lease })
          expect((await lock.state()).taken).toBe(taken)
        }
        await lock.release(inner)
        await lock.release(first)
      }
    }
  })

  test('I2 all holds of an owner have one token, even those admitted together, or from the queue while it holds', async () => {
    const lock = await TestSemaphore.readWrite()
    const tokenOf = async ({ id }: Asker) => Number((await lock.redis.hget(lock.names.lock, id))?.slice(0, 16))
    const [first, other, last] = [writer('first'), reader('other'), writer('last')]
    const [one, two, late] = ['one', 'two', 'late'].map(name => asker(caller(name, { owner: 'y' }), '1/999999999'))
    await heardBy(lock, one!, other, two!, last)
    await lock.acquire(first)
    await queued(lock, one!, other, two!, late!, last)
    await lock.release(first)
    expect(await holders(lock)).toEqual([one!.id, other.id, two!.id].sort())
    const token = await tokenOf(one!)
    expect(await tokenOf(other)).toBeGreaterThan(token)
    expect(await tokenOf(two!)).toBe(token)
    // The reader `late` was passed over because its inbox has no subscriber. Its next heartbeat puts it into the queue
    // again.
    await lock.leave(last)
    expect(await lock.tend([late!, 1])).toEqual([[String(token), expect.any(Number), 'handoff']])
    expect(await tokenOf(late!)).toBe(token)
    // The owner keeps its token after its first hold has ended. The next grant to another owner has a larger token than
    // all earlier grants.
    await lock.release(one!)
    expect(await lock.acquire(another(two!))).toMatchObject({ status: 'reentered', token })
    expect((await lock.acquire(reader('next'))).token).toBeGreaterThan(await tokenOf(other))
  })

  test('I4 a heartbeat says which waiters may re-enter, whichever holder it names', async ({ lock }) => {
    const [named, other, next] = [asker(caller('named'), '1/999999999'), reader('other'), writer('next')]
    await heardBy(lock, next)
    await lock.acquire({ ...other, lease: 1_000 })
    await lock.acquire(named)
    await queued(lock, next)
    const [inside, upgrade] = [another(named), { ...another(named), wants: next.wants }]
    expect(await lock.tend([inside, 1], [beside(named), 2])).toEqual([-2, 3])
    expect(await lock.tend([upgrade, 1])).toEqual([1])
    expect(await lock.acquire(inside, 'try', 1)).toMatchObject({ status: 'reentered' })
  })

  test('I2 a call that first ends lapsed holds, and so admits a waiter of its own owner, gets the same token', async () => {
    const lock = await TestSemaphore.readWrite()
    const [first, waiting] = [writer('first'), asker(caller('waiting', { owner: 'y' }), '1/999999999')]
    await heardBy(lock, waiting)
    await lock.acquire(first)
    await queued(lock, waiting)
    await lock.lapse(first)
    const { token } = await lock.acquire({ ...another(waiting), wants: waiting.wants })
    expect((await lock.redis.hget(lock.names.lock, waiting.id))?.slice(0, 16)).toBe(String(token))
  })

  test('I1 a lapsed hold cannot be re-entered', async ({ lock }) => {
    const outer = asker(caller('outer'), writer('').wants)
    const { token } = await lock.acquire(outer)
    await lock.lapse(outer)
    const again = await lock.acquire({ ...another(outer), wants: reader('').wants })
    expect(again.status).toBe('granted')
    expect(again.token).toBeGreaterThan(token!)
  })

  test('a longer re-entry prolongs the first hold of its client, but only for the same mode', async ({ lock }) => {
    const outer = { ...writer('outer'), lease: 1_000 }
    await lock.acquire(outer)
    const ends = async () => Number(await lock.redis.zscore(lock.names.deadlines, outer.id))
    const before = await ends()
    const inner = { owner: outer.id, lease: 60_000 }
    const reading = await lock.acquire({ ...another(outer), ...inner, wants: reader('').wants })
    expect([reading, await ends()]).toEqual([expect.objectContaining({ around: undefined }), before])
    const again = { ...another(outer), ...inner }
    // If a reply names the outer hold in `around`, the client concludes that the script has prolonged this hold. So the
    // script must prolong it each time, even when the same call is repeated.
    for (const times of [1, 2]) {
      expect(await lock.acquire(again), `${times}`).toMatchObject({ status: 'reentered', around: outer.id })
      expect(await ends()).toBeGreaterThan(before + 50_000)
      await lock.redis.zadd(lock.names.deadlines, before, outer.id)
    }
  })
})

test('I4 waiters hear of a lease that ends before their next heartbeat: a re-entry, a newcomer, one from the queue', async () => {
  const lock = await TestSemaphore.readWrite()
  const [brief, others] = [{ lease: 1_000 }, { lease: 60_000 }]
  const first = { ...asker(caller('first'), writer('').wants), ...others }
  const [dead, next] = [
    { ...writer('dead'), ttl: 60_000 },
    { ...reader('next'), ...others },
  ]
  const heard = await heardBy(lock, next)
  await lock.acquire(first)
  await queued(lock, dead, next)
  await lock.acquire({ ...another(first), ...brief })
  await lock.acquire({ ...another(first), ...others })
  await expect.poll(() => heard).toEqual([`ends 1000 ${lock.names.lock}`])
})

test('I4 a heartbeat passes over the first waiter if it keeps others waiting and is dead, and only then', async () => {
  const lock = await TestSemaphore.readWrite()
  const [held, dead, live] = [reader('held'), writer('dead'), writer('live')]
  const [ada, ben] = [reader('ada'), reader('ben')]
  const heard = await heardBy(lock, live)
  await lock.acquire(held)
  const { ticket } = await lock.acquire(dead, 'queue')
  await queued(lock, beside(dead), ada)
  expect(await lock.tend([dead, ticket!])).toEqual([1])
  expect(await lock.tend([ada, 1])).toEqual([[expect.any(String), ada.lease, 'handoff']])
  await queued(lock, live, ben)
  expect(await lock.tend([ben, 1])).toEqual([2])
  await expect.poll(() => heard).toEqual([`ends ${ben.ttl} ${lock.names.lock}`])
})

test('positions follow the order of grants', async ({ lock }) => {
  const position = async (who: Asker) => (await lock.acquire(who, 'queue')).position
  await heardBy(lock, reader(''))
  const first = writer('first')
  await lock.acquire(first)
  const [second, third] = [writer('second'), writer('third')]
  const [ada, ben] = [reader('ada'), reader('ben')]
  expect(await position(second)).toBe(1)
  expect(await position(ada)).toBe(1)
  expect(await position(ben)).toBe(2)
  expect(await position(second)).toBe(3)
  expect(await position(third)).toBe(4)
})

test('I7 both queues live as long as a waiter is queued in either', async ({ lock }) => {
  await lock.acquire(writer('first'))
  await lock.acquire({ ...writer('short'), ttl: 1_000 }, 'queue')
  await lock.acquire({ ...reader('long'), ttl: 60_000 }, 'queue')
  const lives = await Promise.all([lock.names.queue, lock.names.readers].map(name => lock.redis.pttl(name)))
  expect(Math.min(...lives)).toBeGreaterThan(100_000)
})

test('a call with a limit of waiters does not count a dead writer beside a living reader', async ({ lock }) => {
  const dead = { ...writer('dead'), ttl: 500 }
  await lock.acquire(writer('holder'))
  await queued(lock, dead)
  await new Promise(resolve => setTimeout(resolve, 550))
  await queued(lock, reader('living'))
  expect(await lock.acquire(reader('late'), 2)).toMatchObject({ status: 'refused', position: 2 })
})

test('a re-entry has no minHold of its own', async ({ lock }) => {
  const outer = asker(caller('ada'), writer('ada').wants)
  const inner = { ...another(outer), minHold: 60_000, lease: 1_000 }
  await lock.acquire(outer)
  expect(await lock.acquire(inner)).toMatchObject({ status: 'reentered', ttl: 1_000 })
  await lock.release(inner)
  expect(await holders(lock)).toEqual([outer.id])
})
