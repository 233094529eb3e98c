/** Tests the system clock and its timers. */

import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { expect, onTestFinished, test, vi } from 'vitest'
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

const DAY = 86_400_000
// This test fails if `this.#coarse &&= Number.isInteger(seconds)` becomes `this.#coarse = Number.isInteger(seconds)` in
// src/clock.ts: one suspension in a hundred goes unnoticed.
// The first three times are by how many ms each clock has gone on.
test.each([
  { what: 'nothing', monotonic: 5_000, day: 5_000, up: 5_000, now: 5_000 },
  { what: 'a slow drift', monotonic: 500, day: 545, up: 500, now: 500 },
  { what: 'a suspension', monotonic: 1, day: 4_321, up: 4_320, now: 4_321 },
  { what: 'a suspension, by an uptime in whole seconds', monotonic: 1, day: 4_321, up: 5_000, now: 4_321 },
  { what: 'a suspension, with the time of day set back', monotonic: 1, day: -DAY, up: 4_000, now: 4_000 },
  { what: 'a suspension, with it set ahead', monotonic: 1, day: DAY, up: 4_000, now: 4_000, behind: DAY - 4_000 },
  { what: 'a suspension hidden by the time of day', monotonic: 1_001, day: 1_001, up: 5_000, now: 5_000 },
  { what: 'a short suspension', monotonic: 1, day: 1_005, up: 1_010, now: 1_005 },
  { what: 'one that ends at a whole second', monotonic: 1, day: 1_005, up: 1_010, now: 1_005, uptime: 49_990 },
  { what: 'a short one, by an uptime in whole seconds', monotonic: 1, day: 1_005, up: 1_000, now: 1, behind: 1_004 },
  { what: 'a suspension without a readable uptime', monotonic: 1, day: 4_001, up: Number.NaN, now: 1, behind: 4_000 },
  { what: 'a time of day set ahead', monotonic: 1, day: DAY, up: 1, now: 1, behind: DAY - 1 },
  { what: 'a time of day set back', monotonic: 1, day: -DAY, up: 1, now: 1 },
])('I1: the clock after $what', async each => {
  const { monotonic, day, up, now, behind = 0, uptime: booted = 50_000 } = each
  const times = { monotonic: 5_000, day: 10 * DAY, up: booted }
  const { uptime } = os
  onTestFinished(() => {
    vi.restoreAllMocks()
    os.uptime = uptime
    syncBuiltinESMExports()
  })
  vi.spyOn(performance, 'now').mockImplementation(() => times.monotonic)
  vi.spyOn(Date, 'now').mockImplementation(() => times.day)
  os.uptime = () => times.up / 1_000
  syncBuiltinESMExports()
  vi.resetModules()
  const { systemClock: clock } = await import('../../src/clock.ts')
  for (let round = 1; round <= 2; round++) {
    const before = clock.now()
    times.monotonic += monotonic
    times.day += day
    times.up += up
    expect(clock.now() - before).toBeCloseTo(now, 5)
    expect(clock.behind?.(before)).toBeCloseTo(behind, 5)
  }
  // Whatever has happened so far does not hide a later suspension.
  const before = clock.now()
  times.monotonic += 1
  for (const which of ['day', 'up'] as const) times[which] += 10_001
  const passed = clock.now() - before + (clock.behind?.(before) ?? 0)
  expect(passed).toBeGreaterThan(10_000)
  expect(passed).toBeLessThan(10_100)
  expect(clock.behind?.(clock.now())).toBe(0)
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
