/** Tests the work for requests about one lock that the server puts off, as while it is busy. */
import { expect, test } from 'vitest'
import { Order, type Sent } from '../../src/redis/order.ts'

/** Makes a request. `looked` is called whenever a property of it is read. */
function requestOf(looked: () => void): Sent {
  const request = { request: { key: 'a' }, place: 0, waits: false, slot: -1, dueAt: Number.POSITIVE_INFINITY }
  return new Proxy(request, {
    get: (target, name) => {
      looked()
      return Reflect.get(target, name)
    },
  })
}

// This test fails if `if (line.behind.first) return none` is removed in src/redis/order.ts: the requests that are held
// back are sent too early.
test('an answer looks at few other requests, however many were refused or are held back', () => {
  const order = new Order()
  let looks = 0
  const make = () => requestOf(() => looks++)
  const [sent, held] = [Array.from({ length: 4_000 }, make), Array.from({ length: 4_000 }, make)]
  for (const request of sent) order.admits(request)
  for (let refusals = 0; refusals < 3; refusals++) {
    for (const request of sent) order.refused(request)
    for (const request of sent) order.admits(request)
  }
  for (const request of held) expect(order.admits(request)).toBe(false)
  for (const request of sent.slice(1)) expect(order.earlier(request)).toBe(sent[0])
  const free = sent.map(request => order.settled(request))
  expect(free.slice(0, -1).every(({ size }) => size === 0)).toBe(true)
  expect([...free.at(-1)!]).toEqual(held)
  expect(looks / sent.length).toBeLessThan(1_000)
})
