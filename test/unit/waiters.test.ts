/** Tests how the waiters of a queue are shown by `inspect`. */
import { expect, test } from 'vitest'
import { decodeClaim, encodeClaim } from '../../src/kinds/claim.ts'
import { decodeQueue, waitersOf } from '../../src/kinds/state.ts'

// On a quorum, a ticket may be some ms ahead of the server's clock (src/compose/quorum/floor.ts).
test('a waiter whose ticket is ahead of the clock has waited 0 ms, and expires after its waiterTtl at the latest', () => {
  const now = 1_750_000_000_000_000
  const id = 'client-name_0123456789abcdef'
  const claim = encodeClaim({ id, owner: id, label: '', lease: 30_000, headStart: 0 }, 10_000)
  const queue = decodeQueue([claim, `${now + 5_000}`], decodeClaim)
  expect(waitersOf(queue, new Map(), now)).toMatchObject([{ id, waited: 0, expiresIn: 10_000 }])
})
