/** Tests the system clock and its timers. */
import { expect, test } from 'vitest'
import { awake, LONGEST, systemClock } from '../../src/clock.ts'
import { FakeClock } from './fake-clock.ts'

// According to performance.now(), a few percent of Node's timers fire up to 1 ms early.
test('a timer never fires before its time', async () => {
  const early: number[] = []
  const timers: Promise<void>[] = []
  for (let i = 0; i < 1_000; i++) {
    const begun = performance.now()
    while (performance.now() < begun + Math.random() / 2);
    const set = systemClock.now()
    const fired = new Promise<void>(resolve => {
      systemClock.after(10, () => {
        const passed = systemClock.now() - set
        if (passed < 10) early.push(passed)
        resolve()
      })
    })
    timers.push(fired)
    if (i % 5 === 0) await fired
  }
  await Promise.all(timers)
  expect(early).toEqual([])
})

test('a timer that is cancelled never fires', async () => {
  let fired = 0
  const timers = Array.from({ length: 10 }, (_, i) => systemClock.after(i, () => (fired += 1)))
  for (const timer of timers) timer.cancel()
  const last = new Promise<void>(resolve => systemClock.after(30, resolve))
  await last
  for (const timer of timers) timer.cancel()
  expect(fired).toBe(0)
})

test('a delay that is too long for a timer of Node, or negative, is accepted', async () => {
  const long = systemClock.after(10 * LONGEST, () => expect.unreachable())
  await new Promise<void>(resolve => systemClock.after(-1, resolve))
  long.cancel()
})

test('the clock of patience does not count a stall, and messages that arrived during the stall are read before any time is up', async () => {
  const clock = new FakeClock()
  const counted = awake(clock)
  expect(awake(clock)).toBe(counted)
  const fired: number[] = []
  for (const delay of [1_000, 10_000]) counted.after(delay, () => fired.push(delay))
  await clock.advance(900)
  clock.block(100_000)
  const begun = counted.now()
  await clock.advance(10)
  // Without the stall, the first timer would have fired by now. After a stall, due timers fire a little later, so that
  // the client first reads the messages that have arrived in the meantime.
  expect(fired).toEqual([])
  await clock.advance(990)
  expect(fired).toEqual([1_000])
  await clock.advance(20_000)
  expect(fired).toEqual([1_000, 10_000])
  expect(counted.now() - begun).toBeLessThanOrEqual(21_000)
  expect(clock.armed).toBe(0)
})
