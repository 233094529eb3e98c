/** Tests I2 and I5 with servers that have different tokens for the same hold, or do not answer. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, onTestFinished } from 'vitest'
import { scriptCalls } from '../../kit/command-stats.ts'
import { promptly } from '../../kit/outcomes.ts'
import { forgetful, quorumScene, test } from '../../kit/quorum-scene.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { expectIncreasing } from '../../kit/witness.ts'

/** Collects the messages that `redis-baton:poll` publishes about this key while the test runs. */
function pollsOf(key: string): unknown[] {
  const polls: unknown[] = []
  const listen = (message: unknown) => {
    const { key: about, ...poll } = message as { key: string }
    if (about === key) polls.push(poll)
  }
  subscribe('redis-baton:poll', listen)
  onTestFinished(() => void unsubscribe('redis-baton:poll', listen))
  return polls
}

// This test fails if `tellOutcome(claim, 'granted', before !== undefined)` becomes `tellOutcome(claim, 'granted')` in
// src/compose/quorum/ballots.ts: no grant is reported as having needed a second round.
test('redis-baton:poll reports whether the servers had to agree on a token before the grant', async ({ key }) => {
  const scene = await quorumScene()
  const locks = scene.client({ label: 'mine' })
  const polls = pollsOf(key)
  const grantWith = async (clocks: readonly number[]) => {
    for (const [i, clock] of clocks.entries()) await scene.redis(i).hset(`lock:{${key}}`, 'clock', String(clock))
    const lease = await promptly(locks.lock(key))
    await scene.heldEverywhere(key, lease.id)
    expect(await lease.release()).toBe(true)
    await scene.nothingLeft(key)
    return lease.fencingToken
  }
  // If the `clock` field of a lock is ahead of the time of day, the server's next token follows from this field.
  const ahead = (Date.now() + 60_000) * 1_000
  const same = await grantWith([ahead, ahead, ahead])
  expect(polls).toEqual([{ label: 'mine', outcome: 'granted', secondRound: false }])
  const other = await grantWith([1, 2, 3].map(i => same + i * 1_000_000))
  expect(polls).toEqual([
    { label: 'mine', outcome: 'granted', secondRound: false },
    { label: 'mine', outcome: 'granted', secondRound: true },
  ])
  expect(other).toBeGreaterThan(same)
})

/**
 * `delays`: how long a request takes to each server, and an answer from it, in ms. For each use of a lock, each server
 * should receive two requests, because further requests would only correct tokens.
 */
// This test fails if `const SLOWEST = 400` becomes `const SLOWEST = 20` in src/compose/quorum/eligibility.ts: requests reach
// distant servers after the time that is their floor.
test.for([
  { far: '300 ms away', delays: [150, 150, 150] },
  { far: '1, 20 and 80 ms away', delays: [0, 10, 40] },
])('I9: servers that are $far issue the same token for a grant, in one round trip', async ({ delays }, { scene }) => {
  const locks = scene.client()
  for (const [i, delay] of delays.entries()) scene.delay(i, delay)
  const admin = scene.admin()
  const everyoneAnswers = () => sleep(2 * Math.max(...delays) + 100)
  const requests = async (uses: number) => {
    const before = await admin.calls()
    const use = () => locks.using(freshKey(), everyoneAnswers)
    await Promise.all(Array.from({ length: uses }, use))
    await everyoneAnswers()
    return scriptCalls(await admin.calls(before))
  }
  // At first the client is still connecting, and reads the servers' clocks. And on a busy machine, a request may be late.
  await eventually(async () => (await requests(5)) === 5 * 2 * scene.size, 15_000)
})

// This test fails if `return most ?? Math.max(...tokens)` becomes `return most ?? Math.min(...tokens)` in
// src/compose/quorum/ballots.ts: the client proposes the smallest token, but servers never lower a token, so they
// never agree.
test('I2: an owner does not get the token of a hold that has ended, even if a server does not answer', async () => {
  const scene = await quorumScene()
  const [one, two] = scene.clients(2)
  const key = freshKey()
  // The test sets the `clock` field of server 0 ahead, so that this server chooses larger tokens than the others. Then
  // the servers have to agree on a token.
  const first = await promptly(one!.lock(key))
  await scene.heldEverywhere(key, first.id)
  await first.release()
  await two!.isLocked(key)
  await eventually(async () => !(await scene.at(0).isLocked(key)))
  await scene.redis(0).hset(`lock:{${key}}`, 'clock', String(first.fencingToken + 60_000_000))
  scene.partition(2)
  const tokens: number[] = []
  for (const [locks, owner] of [
    [one!, 'somebody'],
    [two!, 'another'],
    [one!, 'somebody'],
    [two!, 'another'],
  ] as const) {
    const lease = await promptly(locks.lock(key, { owner }))
    tokens.push(lease.fencingToken)
    expect(await promptly(lease.release())).toBe(true)
  }
  expectIncreasing(tokens)
})

/**
 * The clock of server 0 is an hour ahead, so the token of a grant is an hour ahead, too. After the grant, server 1
 * restarts without its data, and server 0 is away. So the next grant comes from servers 1 and 2. If server 2 has not been
 * away at the first grant, it knows the token.
 */
// This test fails if `makeHolder(s, claim, lease, tick(s), nil)` becomes `makeHolder(s, claim, lease, stamp, nil)` in
// lua/mutex/acquire.lua: server 2 issues a token from its time of day.
test.each([
  ['is larger, if the server that remains was up at the grant before', true],
  ['is smaller by an hour, if no server that knows the grant before is left (not promised)', false],
])('I2: after a grant with a clock that is an hour ahead, the next token %s', async (_, larger) => {
  const scene = await quorumScene({ args: forgetful, stepped: true })
  const options = { lease: 1_000, outageTimeout: 20_000 }
  await scene.step(0, 3_600_000)
  const all = scene.client(options)
  const some = client(
    options,
    scene.source.map((url, i) => (i < 2 ? url : 'redis://127.0.0.1:1')),
  )
  const locks = larger ? all : some
  // Once the client has read the servers' clocks, they issue tokens that are not behind the one that is ahead. Before, the
  // two others might vote first, and agree on a token of their own.
  await (await locks.lock(freshKey())).release()
  const key = freshKey()
  const first = await locks.lock(key)
  if (larger) await scene.heldEverywhere(key, first.id)
  expect(first.fencingToken).toBeGreaterThan((Date.now() + 3_000_000) * 1_000)
  await first.release()
  await scene.nothingLeft(key)
  await scene.restartEmpty(1)
  scene.away(0)
  const second = await scene.client(options).lock(key)
  if (larger) expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
  else expect(second.fencingToken).toBeLessThan(first.fencingToken - 3_000_000_000)
})

/**
 * Server 0 votes with a larger token than server 1, so server 1 is asked to raise its token. It has done so, but its answer
 * and the vote of server 2, with the smaller token, are still on their way. The vote arrives first. If the lock were now
 * granted with the smaller token, soon only server 2 would have that token, and a nested hold would get the larger one.
 */
// This test fails if `shared ?? Math.max(this.#raised(ballot), commonToken(votes, this.majority))` becomes `shared ??
// commonToken(votes, this.majority)` in src/compose/quorum/ballots.ts: the outer hold has the smaller token.
test('I2: a nested hold has the token of the outer one, although servers stall while they agree on it', async () => {
  const scene = await quorumScene()
  // A call that joined the queue would send `acquire` once more.
  const { locks, links } = await scene.linked({ fairAfter: Number.POSITIVE_INFINITY })
  // Let all servers learn the scripts. Each releases the hold only once its own reply to `acquire` has passed the link.
  const warm = await locks.lock(freshKey())
  await scene.heldEverywhere(warm.key, warm.id)
  await warm.release()
  await scene.nothingLeft(warm.key)
  const key = freshKey()
  await scene.redis(0).hset(`lock:{${key}}`, 'clock', String((Date.now() + 60_000) * 1_000))
  const replies = { direction: 'down', name: 'acquire' } as const
  const vote = links[2]!.rule(replies, 'hold')
  links[1]!.rule({ ...replies, times: 1 }, { delay: 0 })
  const [raised, entered] = [1, 2].map(() => links[1]!.rule({ ...replies, times: 1 }, 'hold'))
  links[1]!.rule(replies, 'hold')
  const granted = locks.lock(key)
  await Promise.all([vote.happened, raised!.happened])
  links[0]!.rule({ direction: 'up' }, 'hold')
  vote.lift()
  const outer = await granted
  const entering = locks.lock(key, { owner: outer.owner })
  await entered!.happened
  raised!.lift()
  entered!.lift()
  const inner = await entering
  expect([inner.via, inner.fencingToken]).toEqual(['reentry', outer.fencingToken])
})

// This test fails if `if (undecided.length > 0 && rounds > 1 && changed) return this.renew(asked, rounds - 1)` is removed
// in src/compose/quorum/kind.ts: the client corrects the token on two servers, but then does not renew the hold
// there.
test('I5: a hold is renewed although most servers have another token for it', async ({ scene, key }) => {
  const locks = scene.client({ lease: 60_000 })
  const lease = await promptly(locks.lock(key, { lease: 30_000 }))
  const has = async (i: number) => (await scene.at(i).inspect(key)).fencingToken === lease.fencingToken
  for (const i of [0, 1, 2]) await eventually(() => has(i))
  // Change the stored token on two servers, as if these servers had chosen another token for the grant.
  for (const i of [0, 1]) {
    const name = `lock:{${key}}`
    const holder = (await scene.redis(i).hget(name, 'holder')) as string
    const token = Number(holder.slice(0, 16))
    await scene.redis(i).hset(name, 'holder', `${token + 1_000}${holder.slice(16)}`)
    expect((await scene.at(i).inspect(key)).fencingToken).toBe(token + 1_000)
  }
  await promptly(lease.renew(60_000))
  expect(lease.held).toBe(true)
  expect(lease.remaining()).toBeGreaterThan(50_000)
  expect(await lease.release()).toBe(true)
  await scene.nothingLeft(key)
})

/**
 * In this test, each server chooses its own token for the grant. The client selects one of these tokens, and writes it
 * to the servers that have another one. While one server has not received this token yet, the client renews the lease.
 * So this server confirms the token after the renewal.
 */
// This test fails if `confirmedDeadline(vote, grant.ends, asked, now)` becomes `asked` in
// src/compose/quorum/ballots.ts: the confirmation sets the deadline of the server's vote back to the end of the first
// lease.
test('I8: a lease that is renewed right after its grant is prolonged, although servers still agree on a token', async () => {
  const scene = await quorumScene()
  const left: number[] = []
  for (let i = 0; i < 100; i++) {
    const locks = scene.client({ lease: 60_000 })
    const lease = await promptly(locks.lock(freshKey(), { lease: 1_000 }))
    await promptly(lease.renew(60_000))
    left.push(lease.remaining())
    await locks.close()
  }
  expect(Math.min(...left)).toBeGreaterThan(30_000)
})
