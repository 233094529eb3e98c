/** Tests the system clock and its timers. */

import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
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

/** How the machine reports its uptime, given the true uptime in ms. */
const readings = {
  'in hundredths': (ms: number) => Math.floor(ms / 10) / 100,
  'in whole seconds': (ms: number) => Math.floor(ms / 1_000),
  unreadable: (): number => {
    throw new Error('ERR_SYSTEM_ERROR')
  },
}

/** A machine that has run for `up` ms, and a clock of its own. Time passes in the machine only while the test says so. */
async function machine(up: number, reading: keyof typeof readings = 'in hundredths') {
  const at = { monotonic: 5_000, day: 10 * DAY, up, reading, clock: systemClock, pass }
  /** This many ms pass. Before that, the machine is suspended, and its other clocks are set: by so many ms. */
  function pass(awake: number, { slept = 0, day = 0, up = 0 } = {}): void {
    at.monotonic += awake
    at.day += awake + slept + day
    at.up += awake + slept + up
  }
  const { uptime } = os
  onTestFinished(() => {
    vi.restoreAllMocks()
    os.uptime = uptime
    syncBuiltinESMExports()
  })
  vi.spyOn(performance, 'now').mockImplementation(() => at.monotonic)
  vi.spyOn(Date, 'now').mockImplementation(() => at.day)
  os.uptime = () => readings[at.reading](at.up)
  syncBuiltinESMExports()
  vi.resetModules()
  at.clock = (await import('../../src/clock.ts')).systemClock
  at.clock.now()
  return at
}

/** Within how many ms of running time a suspension is noticed. */
const NOTICED = 100
const SLEPT = 4_321

describe.each(['in hundredths', 'in whole seconds', 'unreadable'] as const)(
  'I1: the clock, by an uptime %s',
  reading => {
    // By how many ms the machine was suspended, and its time of day and its uptime were set. `jumps`: by how many ms the
    // clock jumps ahead; `doubt`: by how many it may be behind; both if the uptime can be read. If it cannot, the time of
    // day is alone.
    test.each([
      { what: 'nothing', jumps: 0, doubt: 0 },
      { what: 'a suspension', slept: SLEPT, jumps: SLEPT, doubt: 0 },
      { what: 'a suspension, and a time of day set further ahead', slept: SLEPT, day: DAY, jumps: SLEPT, doubt: DAY },
      { what: 'a suspension, and an uptime set further ahead', slept: SLEPT, up: DAY, jumps: SLEPT, doubt: DAY },
      {
        what: 'a suspension, and a time of day set back by as much',
        slept: SLEPT,
        day: -SLEPT,
        jumps: 0,
        doubt: SLEPT,
      },
      { what: 'a suspension, and a time of day set back by more', slept: SLEPT, day: -DAY, jumps: 0, doubt: SLEPT },
      {
        what: 'a suspension, and a time of day set back by less',
        slept: SLEPT,
        day: -1_321,
        jumps: 3_000,
        doubt: 1_321,
      },
      { what: 'a suspension, and an uptime set back by as much', slept: SLEPT, up: -SLEPT, jumps: 0, doubt: SLEPT },
      { what: 'a suspension, and an uptime set back by more', slept: SLEPT, up: -DAY, jumps: 0, doubt: SLEPT },
      { what: 'a time of day set ahead', day: DAY, jumps: 0, doubt: DAY },
      { what: 'a time of day set back', day: -DAY, jumps: 0, doubt: 0 },
      { what: 'a time of day that drifts', day: 45, jumps: 0, doubt: 0 },
      { what: 'an uptime set ahead', up: DAY, jumps: 0, doubt: DAY },
      { what: 'an uptime set back', up: -DAY, jumps: 0, doubt: 0 },
      { what: 'both set back: the monotonic clock ahead alone', day: -DAY, up: -DAY, jumps: 0, doubt: 0 },
      { what: 'a time of day set ahead, and an uptime set back', day: DAY, up: -DAY, jumps: 0, doubt: DAY },
      { what: 'a time of day set back, and an uptime set ahead', day: -DAY, up: DAY, jumps: 0, doubt: DAY },
    ])('after $what', async ({ jumps, doubt, ...moves }) => {
      const { clock, pass } = await machine(50_000_050, reading)
      const alone = Math.max(0, (moves.slept ?? 0) + (moves.day ?? 0))
      const expected = reading === 'unreadable' ? { jumps: 0, doubt: alone < NOTICED ? 0 : alone } : { jumps, doubt }
      // A reading in whole seconds proves up to 1 s less. What it does not prove is in doubt.
      const error = reading === 'in whole seconds' ? 1_000 : 10
      for (let round = 1; round <= 2; round++) {
        // The clock needs a second to know the fraction of an uptime in whole seconds.
        for (let i = 0; i < 20; i++) {
          pass(NOTICED)
          clock.now()
        }
        const before = clock.now()
        pass(NOTICED, moves)
        const passed = clock.now() - before - NOTICED
        expect(passed).toBeLessThanOrEqual(expected.jumps + error)
        expect(passed).toBeGreaterThanOrEqual(expected.jumps - error)
        for (let i = 0; i < 20; i++) {
          pass(NOTICED)
          clock.now()
        }
        const behind = clock.behind!(before)
        expect(passed + behind).toBeLessThanOrEqual(expected.jumps + expected.doubt + error)
        expect(passed + behind).toBeGreaterThanOrEqual(expected.jumps + expected.doubt - error)
        if (expected.doubt === 0 && error < NOTICED) expect(behind).toBe(0)
        expect(clock.behind!(clock.now())).toBe(0)
      }
      // Whatever has happened so far does not hide a later suspension.
      const before = clock.now()
      pass(1, { slept: 10_000 })
      const passed = clock.now() - before + clock.behind!(before)
      expect(passed).toBeGreaterThan(9_990)
      expect(passed).toBeLessThan(10_100)
    })
  },
)

// This test fails if `const error = Number.isInteger(seconds) ? 1_000 : 0` becomes `const error = 0` in src/clock.ts: the
// fraction of a second that the uptime gains when it can be read again counts as a move.
test('the clock says nothing while the uptime cannot be read, or only in whole seconds', async () => {
  const at = await machine(50_000_990)
  const begun = at.clock.now()
  for (let i = 0; i < 300; i++) {
    at.reading = (['in hundredths', 'in whole seconds', 'unreadable'] as const)[Math.floor(i / 7) % 3]!
    at.pass(130)
    at.clock.now()
  }
  expect(at.clock.now() - begun).toBe(300 * 130)
  expect(at.clock.behind!(begun)).toBe(0)
  at.reading = 'in hundredths'
  at.pass(1, { slept: SLEPT })
  expect(at.clock.now() - begun).toBeCloseTo(300 * 130 + 1 + SLEPT)
})

test.each([49_999_990, 50_000_000, 50_000_010])(
  'I1: a suspension that ends when the uptime in hundredths has no fraction, or nearly: %i ms',
  async end => {
    const { clock, pass } = await machine(end - 1_006 - NOTICED)
    pass(NOTICED)
    const before = clock.now()
    pass(1, { slept: 1_005 })
    expect(clock.now() - before).toBe(1_006)
    expect(clock.behind!(before)).toBe(0)
  },
)

test('an uptime that cannot be read at first counts from its first reading', async () => {
  const at = await machine(50_000_050, 'unreadable')
  const before = at.clock.now()
  at.reading = 'in hundredths'
  at.pass(NOTICED)
  expect(at.clock.now() - before + at.clock.behind!(before)).toBe(NOTICED)
  at.pass(1, { slept: SLEPT })
  expect(at.clock.now() - before).toBeCloseTo(NOTICED + 1 + SLEPT)
})

test('the doubts of the clock are counted from any time, the oldest ones together', async () => {
  const { clock, pass } = await machine(50_000_050)
  const since: number[] = []
  for (let i = 0; i < 20; i++) {
    since.push(clock.now())
    pass(NOTICED, { day: 1_000 })
    clock.now()
  }
  expect(clock.behind!(since[0]!)).toBe(20_000)
  expect(clock.behind!(since[15]!)).toBe(5_000)
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
