/** Tests `all`, which takes several locks, on a server that stops answering. */
import { expect, test } from 'vitest'
import { LockTimeoutError } from '../../src/index.ts'
import { promptly, rejection, within } from '../kit/outcomes.ts'
import { bluntRedis, client, freshKey, ownServer } from '../kit/redis.ts'

/** How long the server does not answer, in ms. Each tested call has to end before this time is over. */
const SILENCE = 6_000

async function silenced() {
  const { url } = await ownServer()
  const admin = bluntRedis(url)
  const silence = () => admin.call('CLIENT', 'PAUSE', String(SILENCE), 'ALL')
  return { locks: client({}, url), other: client({}, url), silence }
}

// This test fails if `leases.entries()) giveBack(` becomes `leases.entries()) await giveBack(` in src/compose/all.ts:
// the calls do not end until the server answers.
test('I6 locks that were taken are given back in the background', async () => {
  const { locks, other, silence } = await silenced()
  const [a, b] = [freshKey(), freshKey()].sort() as [string, string]
  await other.lock(b)
  const parked = new Promise(resolve => locks.once('waiting', resolve))
  const abort = new AbortController()
  const calls = [locks.all([a, b]).lock({ timeout: 700 }), locks.all([b, a]).tryLock({ timeout: 700 })]
  const aborted = locks.all([a, b]).lock({ signal: abort.signal })
  await parked
  await silence()
  abort.abort(new RangeError('enough'))
  await promptly(expect(aborted).rejects.toThrow('enough'))
  await rejection(within(2_000, calls[0]!), LockTimeoutError)
  expect(await calls[1]).toBeNull()
})
