/**
 * Tests `all`, which takes several locks: on a server that stops answering, beside callers that give parts back, and
 * with one signal for very many calls.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import { type Lock, type LockClient, LockTimeoutError } from '../../src/index.ts'
import { promptly, rejection, within } from '../kit/outcomes.ts'
import { bluntRedis, client, freshKey, ownServer, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

/** How long the server does not answer, in ms. Each tested call has to end before this time is over. */
const SILENCE = 6_000

async function silenced() {
  const { url } = await ownServer()
  const admin = bluntRedis(url)
  const silence = () => admin.call('CLIENT', 'PAUSE', String(SILENCE), 'ALL')
  return { locks: client({}, url), other: client({}, url), silence }
}

// This test fails if `      this.#giveBack(leases)` becomes `      await Promise.all(this.#giveBack(leases))` in
// src/compose/all.ts: the calls do not end until the server answers.
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

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')
const kindsOf = (locks: LockClient, key: string): Record<string, Lock> => ({
  mutex: locks.mutex(key),
  read: locks.readWrite(`${key}:read`).read,
  write: locks.readWrite(key).write,
  semaphore: locks.semaphore(key, 1),
  all: locks.all([`${key}:all`, locks.semaphore(key, 1)]) as unknown as Lock,
})

// This test fails if `for (const leave of this.#left.splice(0)) leave()` is removed in src/compose/follower.ts: each call
// of `all` leaves an entry on the signal.
test.for(['mutex', 'read', 'write', 'semaphore', 'all'])(
  'I7 calls that share one signal leave nothing on it, and nothing in memory: %s',
  async (kind, { locks, other }) => {
    const { signal } = new AbortController()
    const taken = freshKey()
    const { mutex, write, semaphore } = kindsOf(other, taken) as Record<string, Lock>
    for (const lock of [mutex!, write!, semaphore!, other.readWrite(`${taken}:read`).write]) await lock.lock()
    const ended: WeakRef<AbortSignal>[] = []
    for (let i = 0; i < 100; i++) {
      const free = kindsOf(locks, freshKey())[kind]!
      const held = kindsOf(locks, taken)[kind]!
      await free.using({ signal, timeout: 10_000 }, lease => {
        lease.signal.addEventListener('abort', () => {})
        ended.push(new WeakRef(lease.signal))
      })
      await Promise.all([held.tryLock({ signal }), held.tryLock({ signal, timeout: 5 }).catch(() => {})])
    }
    // A signal keeps its listeners in a collection, and Node 20 also keeps the signals that follow it in one.
    const kept = Object.getOwnPropertySymbols(signal).map(name => (signal as unknown as Record<symbol, unknown>)[name])
    const sizes = kept.flatMap(value => (value as { size?: number } | undefined)?.size ?? [])
    expect(sizes.length).toBeGreaterThan(0)
    expect(sizes).toEqual(sizes.map(() => 0))
    // The promises of the last call may still be on the stack.
    await eventually(async () => {
      collect()
      return ended.filter(signal => signal.deref()).length <= 1
    })
  },
)
