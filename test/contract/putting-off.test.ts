/** Tests that every call settles by its deadline even if the server refuses every script (I6). */
import { describe, expect, test } from 'vitest'
import { type ClientOptions, type LockClient, LockConnectionError, LockTimeoutError } from '../../src/index.ts'
import { everyCall, PROMPT, rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { refusingProxy } from '../kit/proxies.ts'
import { client, freshKey, ownServer } from '../kit/redis.ts'
import { errorReply } from '../kit/refusing-proxy.ts'
import { eventually, sleep, stopwatch } from '../kit/time.ts'

const OUTAGE = 2_000
/**
 * How much later than its deadline a call may settle on a busy machine, in ms. A bug of an earlier version delayed
 * calls by more than 3,000 ms, and the tests must notice such a delay.
 */
const LATE = 2_500

/** Temporary refusals: the client repeats the call until outageTimeout. */
const passing = [
  'LOADING Redis is loading the dataset in memory',
  'BUSY Redis is busy running a script',
  'TRYAGAIN Multiple keys request during rehashing of slot',
  'CLUSTERDOWN Hash slot not served',
  'MASTERDOWN Link with MASTER is down',
  "READONLY You can't write against a read only replica.",
]

/** Permanent refusals: the client rejects the call at once. */
const definite = [
  "NOPERM this user has no permissions to run the 'evalsha' command",
  "OOM command not allowed when used memory > 'maxmemory'.",
  'NOREPLICAS Not enough good replicas to write.',
  'MISCONF Redis is configured to save RDB snapshots',
  "ERR unknown command 'evalsha'",
  'MOVED 1 127.0.0.1:1',
]

const scripts = /^(eval|evalsha|acquire|release|renew|leave|tend|inspect|pass|force-?release)$/i

interface Scene {
  readonly words: string
  readonly locks: LockClient
  readonly key: string
  /**
   * From now on, every script gets the error reply `words`. If `words` is 'none', a connection gets no more replies
   * after it has sent a script.
   */
  refuse(): void
  accept(): void
}

/** Runs `check` for each of the `answers`, all at the same time. If a check fails, its error names the answer. */
async function forEach(answers: readonly string[], options: ClientOptions, check: (at: Scene) => Promise<void>) {
  const { url } = await ownServer()
  await Promise.all(
    answers.map(async words => {
      const proxy = await refusingProxy(url)
      const locks = client(options, proxy.url)
      const key = freshKey()
      await locks.isLocked(key)
      const reply = words === 'none' ? words : errorReply(words)
      const refuse = () => proxy.answer(command => (scripts.test(command) ? reply : undefined))
      const accept = () => proxy.answer(() => undefined)
      await check({ words, locks, key, refuse, accept }).catch(error => {
        throw new Error(`to every script, ${words}`, { cause: error })
      })
      // Let the server accept scripts again, because closing takes long while it refuses them.
      accept()
      await locks.close()
    }),
  )
}

/** Measures how long the call takes to settle, in ms: as timers see it, and as a stopwatch does. */
async function time(call: PromiseLike<unknown>): Promise<{ took: number; own: number }> {
  const begun = performance.now()
  const elapsed = stopwatch()
  await call.then(
    () => {},
    () => {},
  )
  return { took: performance.now() - begun, own: elapsed() }
}

describe('a server that puts off every script', () => {
  const puttingOff = [...passing, 'none']

  test('I6: each call has outageTimeout from its own start, whichever calls are ahead of it', async () => {
    await forEach(puttingOff, { outageTimeout: OUTAGE }, async ({ locks, key, refuse }) => {
      refuse()
      const first = time(locks.tryLock(key, { timeout: 500 }))
      const calls: ReturnType<typeof time>[] = []
      for (let i = 0; i < 4; i++) {
        calls.push(time(locks.lock(key)), time(locks.lock(key, { fair: true })), time(locks.using(key, () => 'ran')))
        await sleep(250)
      }
      await first
      calls.push(time(locks.lock(key)), time(locks.inspect(key)), time(locks.forceRelease(key)))
      for (const { took, own } of await Promise.all(calls)) {
        expect(took).toBeGreaterThan(OUTAGE - 100)
        expect(own).toBeLessThan(OUTAGE + LATE)
      }
    })
  })

  test('I6: waiters that were parked before are rejected together, not one after another', async () => {
    await forEach(puttingOff, { outageTimeout: OUTAGE, waiterTtl: 900 }, async ({ locks, key, refuse }) => {
      await locks.lock(key)
      const parked = [(await park(locks, key)).lease, ...Array.from({ length: 5 }, () => locks.lock(key))]
      parked.push((await park(locks, key, { fair: true })).lease)
      refuse()
      // A parked call notices the refusals at its next heartbeat, after at most 300 ms. Its outageTimeout begins then.
      for (const { own } of await Promise.all(parked.map(time))) expect(own).toBeLessThan(OUTAGE + 300 + LATE)
    })
  })

  test('tryLock that times out gives the reason, and does not claim that the lock is held', async () => {
    await forEach(puttingOff, {}, async ({ words, locks, key, refuse }) => {
      refuse()
      const [tried, waited] = await Promise.all([
        rejection(locks.tryLock(key, { timeout: 400 }), LockConnectionError),
        rejection(locks.lock(key, { timeout: 400 }), LockTimeoutError),
      ])
      expect(tried.key).toBe(key)
      if (words === 'none') return
      for (const { cause } of [tried, waited]) expect((cause as Error).message).toBe(words)
    })
  })

  test('once scripts are accepted again, all calls work', async () => {
    // Only a cluster says TRYAGAIN. The call that follows may lack some keys, which only the scripts for a cluster expect.
    const bySingleServers = puttingOff.filter(words => !words.startsWith('TRYAGAIN'))
    await forEach(bySingleServers, {}, async ({ locks, key, refuse, accept }) => {
      refuse()
      const calls = [locks.lock(key, { fair: true }), locks.lock(key)]
      await sleep(300)
      accept()
      const released = await Promise.all(calls.map(call => call.then(lease => lease.release())))
      expect(released).toEqual([true, true])
    })
  })
})

describe('a server that refuses every script', () => {
  test('I6: every call is rejected at once', async () => {
    await forEach(definite, {}, async ({ locks, key, refuse }) => {
      refuse()
      for (const { own } of await Promise.all(everyCall(locks, key).map(time))) expect(own).toBeLessThan(PROMPT)
      expect(await rejection(locks.lock(key), LockConnectionError)).toMatchObject({ key })
    })
  })

  test('once scripts are accepted again, all calls work', async () => {
    await forEach(definite, {}, async ({ locks, key, refuse, accept }) => {
      refuse()
      await rejection(locks.lock(key), LockConnectionError)
      accept()
      const lease = await eventually(() => locks.tryLock(key).catch(() => undefined))
      expect(await lease?.release()).toBe(true)
    })
  })
})
