/** Tests that the witness of keys, under which the contract runs (test/kit/global-setup.ts), sees each undeclared key. */
import { expect, onTestFinished, test } from 'vitest'
import { DeclaredKeys } from '../kit/declared-keys.ts'
import { ownServer, plainRedis } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

test('the witness sees each key that a script has not received, and no other', async () => {
  const { url } = await ownServer()
  const witness = new DeclaredKeys()
  onTestFinished(() => {
    witness.undeclared.clear()
    witness.end()
  })
  await witness.watch({ url })
  const redis = plainRedis(url)
  const script = "redis.call('TIME') redis.call('EXISTS', KEYS[1], KEYS[2]) redis.call('ZCARD', KEYS[2])"
  await redis.eval(script, 2, 'a', 'b')
  await redis.eval(`${script} redis.pcall('ZADD', KEYS[1] .. ':q', 1, 'x') redis.call('EXISTS', 'a', 'c')`, 2, 'a', 'b')
  await eventually(() => witness.undeclared.size === 2)
  expect([...witness.undeclared].map(line => line.split(' by ')[0])).toEqual(['ZADD a:q', 'EXISTS c'])
})
