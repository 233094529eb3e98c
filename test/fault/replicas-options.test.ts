/** Tests that the option `replicas` accepts only values with which a grant can be confirmed. */
import { expect, test } from 'vitest'
import { LockArgumentError } from '../../src/index.ts'
import { outcomeOf, within, wordsOf } from '../kit/outcomes.ts'
import { client, freshKey, ownServer } from '../kit/redis.ts'

// This test fails if `min: whole(1)` becomes `min: duration(0)` in src/settings.ts: 0 or 1.5 replicas are accepted. It
// also fails if `if (value === undefined) throw` becomes `if (false) throw` in src/settings.ts: a missing field is
// accepted. It also fails if `if (timeout > most)` becomes `if (false)` in src/settings.ts: the client would give up the
// connection before the server answers WAIT.
test.each([
  [{ min: 0, timeout: 100 }, 'min'],
  [{ min: 1.5, timeout: 100 }, 'min'],
  [{ timeout: 100 }, 'replicas.min'],
  [{ min: 1 }, 'replicas.timeout'],
  [{ min: 1, timeout: 0 }, 'timeout'],
  [{ min: 1, timeout: 5_000 }, 'replicas.timeout'],
  [{ min: 1, timeout: 100, fsync: 'yes' }, 'fsync'],
  [{ min: 1, timeout: 100, wait: true }, 'wait'],
  [1, 'replicas'],
])('unusable: %j', (unusable, option) => {
  expect(() => client({ replicas: unusable as never })).toThrow(LockArgumentError)
  expect(() => client({ replicas: unusable as never })).toThrow(option)
})

// This test fails if `Math.min(outageTimeout, 15_000) / 4` becomes `outageTimeout / 4` in src/settings.ts: with a larger
// outageTimeout the value is accepted, and the client would give up the connection before the server answers WAIT.
test.each([
  [15_000, 3_750],
  [8_000, 2_000],
  [40_000, 3_750],
])('unusable with an outageTimeout of %d: a timeout of more than %d', (outageTimeout, most) => {
  const made = (timeout: number) => client({ outageTimeout, replicas: { min: 1, timeout } })
  expect(() => made(most + 1)).toThrow(`expected at most ${most} ms: a quarter of outageTimeout`)
  expect(() => made(most)).not.toThrow()
})

// This test fails if `return Math.min(5_000, ` becomes `return Math.min(3_000, ` in src/redis/connection.ts: the client
// gives up each connection before WAIT is answered.
test('the client waits for a WAIT with the longest timeout', async () => {
  const { url } = await ownServer()
  const locks = client({ outageTimeout: 40_000, replicas: { min: 1, timeout: 3_750 } }, url)
  const { error } = await within(12_000, outcomeOf(locks.tryLock(freshKey())))
  expect(wordsOf(error)).toBe('0 of 1 required replicas confirmed the grant within 3750 ms')
})
