/**
 * `baton top` and `baton ui` have a watch, which reads all locks again and again. One reading is called a survey. Tests
 * how often the watch makes a survey, and what the watch does while Redis is away.
 */
import { expect, onTestFinished, test } from 'vitest'
import type { Connected } from '../../../cli/connection.ts'
import { type Watch, type WatchOptions, watch } from '../../../cli/live/watch.ts'
import type { LockClient } from '../../../src/index.ts'
import { faultProxy } from '../../kit/proxies.ts'
import { client, ownServer } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

/** Starts a watch, and closes it after the test. */
function watched(at: Connected, options: Partial<WatchOptions> = {}, changed: (live: Watch) => void = () => {}): Watch {
  const live: Watch = watch(at, { interval: 20, ...options }, () => changed(live))
  onTestFinished(() => live.close())
  return live
}

function at(url: string, locks: LockClient = client({}, url)): Connected {
  return { locks, where: new URL(url).host }
}

/**
 * Counts the surveys (readings of all locks) that have begun. `atOnce` is the largest number of surveys that ran at the
 * same time.
 */
function counted(locks: LockClient): { begun: number; atOnce: number } {
  const count = { begun: 0, atOnce: 0 }
  const list = locks.list.bind(locks)
  let now = 0
  locks.list = async function* (pattern) {
    count.begun += 1
    now += 1
    count.atOnce = Math.max(count.atOnce, now)
    try {
      yield* list(pattern)
    } finally {
      now -= 1
    }
  }
  return count
}

// Each test below uses a server of its own. The server that tests share may have ten thousand locks, and a survey of
// those takes seconds.

test('rests four times as long as a survey took, and never makes two at a time', async () => {
  const { url } = await ownServer()
  const proxy = await faultProxy(url)
  proxy.delay(20)
  const here = at(proxy.url)
  const count = counted(here.locks)
  const surveys: { ended: number; took: number }[] = []
  const live = watched(here, { interval: 1 }, ({ took }) => surveys.push({ ended: performance.now(), took }))
  const impatient = setInterval(() => live.resume(), 10)
  onTestFinished(() => clearInterval(impatient))
  await eventually(() => surveys.length >= 4, 15_000)
  surveys.slice(1).forEach(({ ended, took }, i) => {
    const before = surveys[i]!
    // The 5 ms allow for timers that fire slightly early.
    expect(ended - before.ended).toBeGreaterThan(4 * before.took + took - 5)
  })
  expect(surveys[0]!.took).toBeGreaterThan(40)
  expect(count.atOnce).toBe(1)
})
