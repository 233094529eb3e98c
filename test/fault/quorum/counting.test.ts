/** Tests which servers of a quorum count: not a replica, and not one that may have forgotten a lock's longest lease. */
import { expect, test } from 'vitest'
import { LockConnectionError, LockError, type LockOptions, LockTimeoutError } from '../../../src/index.ts'
import { reasonsOfServers } from '../../contract/refused.ts'
import { rejection, within } from '../../kit/outcomes.ts'
import { forgetful, type QuorumScene, quorumScene } from '../../kit/quorum-scene.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'

const portOf = (scene: QuorumScene, i: number) => scene.redis(i).options.port as number

async function copy(scene: QuorumScene, readOnly: 'yes' | 'no'): Promise<string[]> {
  await scene.redis(1).config('SET', 'replica-read-only', readOnly)
  await scene.redis(1).replicaof('127.0.0.1', portOf(scene, 0))
  await eventually(async () => /master_link_status:up/.test(await scene.redis(1).info('replication')), 15_000)
  return scene.source
}

const doubled = [
  { name: 'a replica', is: /replica/, make: (scene: QuorumScene) => copy(scene, 'yes') },
  {
    name: 'a replica that accepts writes',
    is: /is a replica of 127\.0\.0\.1:\d+/,
    make: (scene: QuorumScene) => copy(scene, 'no'),
  },
  {
    name: 'the same server at another address',
    is: /is the same one as server \d of 3/,
    make: async (scene: QuorumScene) => [scene.source[0]!, `redis://127.0.0.1:${portOf(scene, 0)}`, scene.source[2]!],
  },
]

// This test fails if `if (copies !== undefined) return` becomes `if (runs.length < 0) return` in
// src/compose/quorum/eligibility.ts: one machine has two votes.
test.each(doubled)(
  'I1: of three servers, one is $name and one is dead: no lock is granted',
  async ({ make, is }) => {
    const scene = await quorumScene()
    const sources = await make(scene)
    const locks = scene.client({ outageTimeout: 2_000 }, sources)
    const said: string[] = []
    locks.on('error', ({ error }) => said.push((error as Error).message))
    await locks.lock(freshKey()).then(
      lease => lease.release(),
      () => {},
    )
    await scene.kill(2)
    for (let i = 0; i < 20; i++) {
      const attempt = await locks.tryLock(freshKey()).catch((error: unknown) => error)
      expect(attempt).toBeInstanceOf(LockConnectionError)
    }
    const error = await rejection(locks.lock(freshKey()), LockConnectionError)
    expect(reasonsOfServers(error.cause).some(({ message }) => is.test(message))).toBe(true)
    await eventually(() => said.some(message => is.test(message)))
    // A replica is found in two ways, and may be reported in both wordings, but in each of them once.
    const told = said.filter(message => is.test(message))
    expect(new Set(told).size).toBe(told.length)
  },
  60_000,
)

/** Expects the call to reject, and its error to say for how long each server has been up. */
async function says(call: Promise<unknown>): Promise<void> {
  const { cause } = await rejection(call, LockError)
  const reasons = reasonsOfServers(cause instanceof LockConnectionError ? cause.cause : cause)
  expect(reasons.map(({ message }) => message)).toEqual(
    Array(3).fill(expect.stringMatching(/up for \d+ s .* its votes count only after another 3\d{6} ms/)),
  )
}

// This test fails if `if (this.counts === false) return this.eligibility.reason` is removed in
// src/compose/quorum/member.ts: the errors do not say why the servers give no votes.
test.each<LockOptions>([{ fair: true }, { fairAfter: Number.POSITIVE_INFINITY }, {}])(
  'I6: each of several calls whose votes will not count for long is rejected, with the reason (%o)',
  async options => {
    const scene = await quorumScene({ args: forgetful })
    const locks = scene.client({ lease: 3_600_000, outageTimeout: 1_000, waiterTtl: 900 })
    const key = freshKey()
    const terms = options
    await within(20_000, Promise.all([1, 2, 3].map(() => says(locks.lock(key, terms)))))
    await says(locks.lock(key, { ...terms, timeout: 500 }))
    await says(locks.tryLock(key, terms))
    await says(locks.tryLock(key, { ...terms, timeout: 500 }))
  },
  60_000,
)

const untold = [
  {
    name: 'refuses INFO',
    begin: (scene: QuorumScene, i: number) => scene.redis(i).acl('SETUSER', 'default', '-info'),
    end: (scene: QuorumScene, i: number) => scene.redis(i).acl('SETUSER', 'default', '+info'),
  },
  {
    name: 'is busy for longer than outageTimeout',
    begin: async (scene: QuorumScene, i: number) => {
      await scene.redis(i).config('SET', 'busy-reply-threshold', '50')
      scene
        .redis(i)
        .duplicate()
        .eval('while true do end', 0)
        .catch(() => {})
      await sleep(200)
    },
    end: (scene: QuorumScene, i: number) => scene.redis(i).script('KILL'),
  },
]

// This test fails if `if (!this.useless) break` becomes `break` in src/compose/quorum/eligibility.ts: the servers are not
// asked again, so no lock is granted until they reconnect.
test.each(untold)(
  'I4: a majority that $name when a client connects is asked again',
  async ({ begin, end }) => {
    const scene = await quorumScene()
    const struck = [0, 1]
    for (const i of struck) await begin(scene, i)
    const locks = scene.client({ outageTimeout: 1_000 })
    await rejection(locks.lock(freshKey()), LockConnectionError)
    await sleep(1_000)
    for (const i of struck) await end(scene, i)
    await within(
      10_000,
      eventually(async () => (await locks.tryLock(freshKey()).catch(() => null))?.held === true, 10_000),
    )
  },
  40_000,
)

/** Server 0 knows a hold, and server 1 has come back empty since it began. The votes of servers 0 and 2 count. */
// This test fails if `(wanted === 'answer' || this.rejects || this.counts === true)` becomes `true` in
// src/compose/quorum/member.ts and `return !ballot.granted && !member.counts` becomes `return ballot.over && !member.counts` in
// src/compose/quorum/ballots.ts: the votes of servers 1 and 2 are a majority.
test('I4 I6: a lock is taken if a server that counts names its holder, whatever a server has that does not count yet', async () => {
  const scene = await quorumScene()
  const key = freshKey()
  const held = await scene.at(0).lock(key, { lease: 60_000, label: 'its holder' })
  await scene.restartEmpty(1)
  await scene.redis(1).config('SET', 'appendonly', 'no')
  const locks = scene.client({ lease: 60_000 })
  await locks.isLocked(key)
  const taken = async (options: LockOptions) => {
    // The votes of the call before may be on their way back.
    await eventually(async () => (await scene.holders(key)).filter(Boolean).length === 1)
    const { holder, cause } = await within(8_000, rejection(locks.lock(key, options), LockTimeoutError))
    expect([holder?.label, cause]).toEqual(['its holder', undefined])
  }
  await taken({ timeout: 0 })
  const before = await scene.admin().calls()
  await taken({ timeout: 1_000 })
  // The call makes an attempt, and another one when it receives messages. Each asks three servers up to four times,
  // because other callers could have the votes, and gives two of them their votes back.
  const { evalsha = 0 } = await scene.admin().calls(before)
  expect(evalsha).toBeLessThan(50)
  await taken({ timeout: 300, fair: true })
  for (const options of [{}, { timeout: 300 }, { timeout: 300, fair: true }])
    expect(await locks.tryLock(key, options)).toBeNull()
  const waiting = locks.lock(key)
  await eventually(async () => (await scene.at(0).inspect(key)).waiters.length === 1)
  await held.release()
  expect((await within(8_000, waiting)).held).toBe(true)
})

// This test fails if `this.members.some(({ up }) => up)` becomes `this.up` in src/compose/quorum/backend.ts: the votes stay.
test('I7: a client that closes takes its votes back from servers whose votes do not count', async () => {
  const scene = await quorumScene({ args: forgetful })
  const locks = scene.client({ outageTimeout: 1_000 })
  const key = freshKey()
  await rejection(locks.lock(key, { timeout: 800 }), Error)
  await locks.close()
  const kept = await Promise.all([0, 1, 2].map(i => scene.redis(i).hget(`lock:{${key}}`, 'holder')))
  expect(kept).toEqual([null, null, null])
})
