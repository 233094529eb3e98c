/** Tests how long a closing client waits for its holders to release. */
import { expect, test } from 'vitest'
import { Drain } from '../../src/key/drain.ts'
import { FakeClock } from './fake-clock.ts'
import { now } from './promises.ts'

function drain() {
  const clock = new FakeClock()
  const ends: number[] = []
  const drain: Drain = new Drain(clock, () => ends.push(clock.now()))
  return { clock, drain, ends, begin: clock.now() }
}

test('it ends at its time, and not before', async () => {
  const { clock, drain: it, ends, begin } = drain()
  it.within(100)
  await clock.advance(99)
  expect([ends, await now(it.over)]).toEqual([[], 'pending'])
  await clock.advance(1)
  expect([ends, await now(it.over)]).toEqual([[begin + 100], undefined])
})

test('if several ends are set, the earliest counts, and no timer is left', async () => {
  const { clock, drain: it, ends, begin } = drain()
  it.within(100)
  it.within(50)
  it.within(80)
  await clock.advance(1_000)
  expect(ends).toEqual([begin + 50])
  expect(clock.armed).toBe(0)
})

test('with 0 ms it ends at once', () => {
  const { drain: it, ends } = drain()
  it.within(0)
  expect(ends).toHaveLength(1)
})

test('it ends once, even if its listener ends it again', async () => {
  const clock = new FakeClock()
  let ends = 0
  const it: Drain = new Drain(clock, () => {
    ends += 1
    it.finish()
    it.within(0)
  })
  it.within(10)
  it.finish()
  it.finish()
  await clock.advance(100)
  expect([ends, clock.armed]).toEqual([1, 0])
})
