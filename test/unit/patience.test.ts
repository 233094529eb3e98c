/** A caller's time-out and signal. */
import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { patiently } from '../../src/wait/patience.ts'

const reason = new Error('enough')

function waits(count: number, signal: AbortSignal, timeout?: number) {
  const resolves: ((value: string) => void)[] = []
  const givenUp: number[] = []
  const ends = Array.from({ length: count }, (_, i) => {
    const outcome = new Promise<string>(resolve => resolves.push(resolve))
    const giveUp = () => {
      givenUp.push(i)
      return 'given up'
    }
    return patiently(outcome, { signal, timeout }, giveUp, systemClock).catch(error => error)
  })
  return { ends, resolves, givenUp }
}

describe('calls that share a signal', () => {
  // Node warns of an eleventh listener, and looks through all of them to remove one.
  test('share one listener, which is gone with the last of them', async () => {
    const { signal } = new AbortController()
    const listeners = () => getEventListeners(signal, 'abort').length
    const { ends, resolves, givenUp } = waits(1_000, signal)
    expect(listeners()).toBe(1)
    for (const resolve of resolves.splice(1)) resolve('granted')
    await Promise.all(ends.slice(1))
    expect(listeners()).toBe(1)
    resolves[0]?.('granted')
    expect(await ends[0]).toBe('granted')
    expect([listeners(), givenUp]).toEqual([0, []])

    const again = waits(1, signal)
    expect(listeners()).toBe(1)
    again.resolves[0]?.('granted')
    expect([await again.ends[0], listeners()]).toEqual(['granted', 0])
  })

  test('all reject with its reason when it aborts, but for those that have ended', async () => {
    const controller = new AbortController()
    const { ends, resolves, givenUp } = waits(3, controller.signal)
    resolves[1]?.('granted')
    await ends[1]
    controller.abort(reason)
    expect(await Promise.all(ends)).toEqual([reason, 'granted', reason])
    expect(givenUp).toEqual([0, 2])
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })

  test('one whose time is up gives up alone', async () => {
    const controller = new AbortController()
    const [short, long] = [waits(1, controller.signal, 1), waits(1, controller.signal, 60_000)]
    expect(await short.ends[0]).toBe('given up')
    controller.abort(reason)
    expect(await long.ends[0]).toBe(reason)
    expect([short.givenUp, long.givenUp]).toEqual([[0], [0]])
  })
})

test('an abort and the outcome at once: the first counts, and nothing is given up that was granted', async () => {
  const controller = new AbortController()
  const { ends, resolves, givenUp } = waits(1, controller.signal)
  resolves[0]?.('granted')
  await Promise.resolve()
  controller.abort(reason)
  expect([await ends[0], givenUp]).toEqual(['granted', []])
})
