/** Tests how a caller's timeout and signal end its wait. */
import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { limit } from '../../src/key/limits.ts'
import { sleep } from '../kit/time.ts'

/** Starts waits that share one signal. The test calls `ended[i]` when wait i has ended, for example by a grant. */
function waits(count: number, signal: AbortSignal, timeout?: number) {
  const givenUp: number[] = []
  const ended = Array.from({ length: count }, (_, i) => {
    const unlimited = limit(signal, timeout, systemClock, () => {
      unlimited()
      givenUp.push(i)
    }) as () => void
    return unlimited
  })
  return { ended, givenUp }
}

describe('calls that share a signal', () => {
  // With one listener for each wait, Node would warn at the eleventh listener, and would search all listeners to remove
  // one.
  test('share one listener, which is removed with the last of them', () => {
    const { signal } = new AbortController()
    const listeners = () => getEventListeners(signal, 'abort').length
    const { ended, givenUp } = waits(1_000, signal)
    expect(listeners()).toBe(1)
    for (const end of ended.splice(1)) end()
    expect(listeners()).toBe(1)
    ended[0]?.()
    expect([listeners(), givenUp]).toEqual([0, []])

    const again = waits(1, signal)
    expect(listeners()).toBe(1)
    again.ended[0]?.()
    expect(listeners()).toBe(0)
  })

  test('all give up when it aborts, except those that have ended', () => {
    const controller = new AbortController()
    const { ended, givenUp } = waits(3, controller.signal)
    ended[1]?.()
    controller.abort()
    expect(givenUp).toEqual([0, 2])
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })
})

test('a wait that has ended, or has no limits, is never given up', async () => {
  const controller = new AbortController()
  const { ended, givenUp } = waits(1, controller.signal, 1)
  ended[0]?.()
  await sleep(5)
  controller.abort()
  expect(givenUp).toEqual([])
  expect(limit(undefined, undefined, systemClock, () => {})).toBeUndefined()
})
